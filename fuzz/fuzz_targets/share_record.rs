//! See `oblivio_fuzz::share_record`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oblivio_fuzz::share_record(data));
