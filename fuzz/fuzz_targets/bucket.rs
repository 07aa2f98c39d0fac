//! See `oblivio_fuzz::bucket`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oblivio_fuzz::bucket(data));
