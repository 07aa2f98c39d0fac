//! See `oblivio_fuzz::volume_state`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oblivio_fuzz::volume_state(data));
