//! See `oblivio_fuzz::share_notice`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oblivio_fuzz::share_notice(data));
