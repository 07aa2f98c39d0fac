//! See `oblivio_fuzz::quantum`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oblivio_fuzz::quantum(data));
