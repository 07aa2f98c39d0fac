//! See `oblivio_fuzz::sequential_state`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oblivio_fuzz::sequential_state(data));
