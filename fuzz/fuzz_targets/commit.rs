//! See `oblivio_fuzz::commit`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oblivio_fuzz::commit(data));
