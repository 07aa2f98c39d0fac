//! The memory beside the controller: buckets, and what was done with them.

use super::shape::{LINE, Shape};
use std::collections::HashMap;

/// A line that was read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Whether it was written.
    pub write: bool,
    /// Its number.
    pub line: u64,
    /// Its bytes.
    pub bytes: [u8; LINE],
}

/// Lines of memory; what was never written is zeros.
#[derive(Default)]
pub struct Memory {
    buckets: HashMap<u64, Vec<u8>>,
    /// The lines read and written since they were last taken; none if it is not kept.
    pub trace: Option<Vec<Transfer>>,
}

impl Memory {
    /// A bucket's bytes, read line by line.
    pub fn read(&mut self, shape: &Shape, bucket: u64) -> Vec<u8> {
        let lines = shape.bucket_lines();
        let bytes = self.buckets.get(&bucket).cloned().unwrap_or_else(|| vec![0; lines * LINE]);
        self.note(false, bucket, &bytes);
        bytes
    }

    /// Writes a bucket line by line.
    pub fn write(&mut self, bucket: u64, bytes: Vec<u8>) {
        self.note(true, bucket, &bytes);
        self.buckets.insert(bucket, bytes);
    }

    /// The stored bytes of a bucket, to tamper with.
    pub fn stored(&mut self, shape: &Shape, bucket: u64) -> &mut Vec<u8> {
        self.buckets.entry(bucket).or_insert_with(|| vec![0; shape.bucket_lines() * LINE])
    }

    fn note(&mut self, write: bool, bucket: u64, bytes: &[u8]) {
        let Some(trace) = &mut self.trace else { return };
        let first = bucket * (bytes.len() / LINE) as u64;
        for (at, line) in bytes.chunks_exact(LINE).enumerate() {
            let bytes = line.try_into().expect("a line");
            trace.push(Transfer { write, line: first + at as u64, bytes });
        }
    }
}
