//! See `oblivio_fuzz::partition_table`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oblivio_fuzz::partition_table(data));
