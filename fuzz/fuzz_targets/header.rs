//! See `oblivio_fuzz::header`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oblivio_fuzz::header(data));
