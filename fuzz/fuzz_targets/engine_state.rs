//! See `oblivio_fuzz::engine_state`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oblivio_fuzz::engine_state(data));
