// Functions, methods, generics: each says how often it was called.
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static CALLS: [AtomicU64; 4] = [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)];

fn count(i: usize) {
    CALLS[i].fetch_add(1, Relaxed);
}

mod shop {
    use super::count;

    #[inline(never)]
    pub fn price(n: u64) -> u64 {
        count(0);
        n * 2
    }

    pub struct Basket(pub u64);

    impl Basket {
        #[inline(never)]
        pub fn add(&mut self, n: u64) -> u64 {
            count(1);
            self.0 += n;
            self.0
        }
    }

    pub trait Till {
        fn ring(&self) -> u64;
    }

    impl Till for Basket {
        #[inline(never)]
        fn ring(&self) -> u64 {
            count(2);
            self.0 + 1
        }
    }

    #[inline(never)]
    pub fn twice<T: std::ops::Add<Output = T> + Copy>(v: T) -> T {
        count(3);
        v + v
    }
}

fn main() {
    use shop::Till;
    let mut sum = 0;
    let mut basket = shop::Basket(0);
    for i in 0..70 {
        sum += shop::price(i) + basket.add(i);
        if i % 2 == 0 {
            sum += basket.ring() + shop::twice(i);
        }
        if i % 7 == 0 {
            sum += shop::twice(i as u32) as u64;
        }
    }
    let names = ["price", "add", "ring", "twice"];
    for (i, name) in names.iter().enumerate() {
        println!("{} {}", name, CALLS[i].load(Relaxed));
    }
    std::process::exit((sum == 1) as i32);
}
