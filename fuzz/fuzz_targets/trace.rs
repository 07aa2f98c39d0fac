//! See `oblivio_fuzz::trace`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oblivio_fuzz::trace(data));
