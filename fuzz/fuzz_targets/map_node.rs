//! See `oblivio_fuzz::map_node`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oblivio_fuzz::map_node(data));
