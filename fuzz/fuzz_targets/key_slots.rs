//! See `oblivio_fuzz::key_slots`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oblivio_fuzz::key_slots(data));
