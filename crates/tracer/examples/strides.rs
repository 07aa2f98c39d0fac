//! Fills a table once, then reads it again and again: for tests, whose loads and stores are known.
//!
//! `strides LINES TIMES`, with 64 bytes in a line.

use std::hint::black_box;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let (Some(Ok(lines)), Some(Ok(times))) = (numbers.next(), numbers.next()) else {
        eprintln!("strides LINES TIMES");
        std::process::exit(2);
    };
    let mut table = vec![[0_u64; 8]; lines];
    for (at, line) in table.iter_mut().enumerate() {
        line[0] = at as u64;
    }
    for _ in 0..times {
        let sum: u64 = black_box(&table).iter().map(|line| line[0]).sum();
        black_box(sum);
    }
}
