//! See `oblivio_fuzz::watch`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oblivio_fuzz::watch(data));
