// A Rust name whose hash is not shown.
mod shop {
    #[inline(never)]
    pub fn price(n: usize) -> usize {
        [3, 5, 7][n]
    }
}

fn main() {
    println!("{}", shop::price(std::env::args().count()));
}
