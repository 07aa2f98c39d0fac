//! See `oblivio_fuzz::fs_root`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oblivio_fuzz::fs_root(data));
