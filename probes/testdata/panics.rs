// A panic passes through a function, each time:  panics N
use std::panic;

#[no_mangle]
#[inline(never)]
pub fn source(i: u32) {
    panic::resume_unwind(Box::new(i));
}

#[no_mangle]
#[inline(never)]
pub fn passed(i: u32) {
    source(i);
    std::hint::black_box(i);
}

fn main() {
    let n: u32 = std::env::args().nth(1).map_or(1, |a| a.parse().unwrap());
    let caught = (0..n).filter(|&i| panic::catch_unwind(|| passed(i)).is_err()).count();
    println!("caught {}", caught);
}
