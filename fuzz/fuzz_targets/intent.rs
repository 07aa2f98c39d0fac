//! See `oblivio_fuzz::intent`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oblivio_fuzz::intent(data));
