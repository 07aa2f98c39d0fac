//! Keeps what the storage was shown, for an audit.

use anyhow::{Context, Result};
use oblivio_audit::{Request, Trace};
use oblivio_volume::{OnShown, Shown};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A trace that grows while a volume is at work.
#[derive(Debug)]
pub struct Recorder {
    trace: Arc<Mutex<Trace>>,
    file: Option<File>,
}

impl Recorder {
    /// Keeps the trace in memory.
    pub fn in_memory() -> Self {
        Self { trace: Arc::default(), file: None }
    }

    /// Writes the trace to a file in the end; a file that cannot be written fails now.
    pub fn to_file(path: &Path) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("the trace {}", path.display()))?;
        Ok(Self { file: Some(file), ..Self::in_memory() })
    }

    /// What the volume calls after each batch.
    pub fn callback(&self) -> OnShown {
        let trace = Arc::clone(&self.trace);
        Box::new(move |shown: &Shown| {
            let mut trace = trace.lock().unwrap_or_else(PoisonError::into_inner);
            if trace.requests.is_empty() {
                trace.depth = shown.depth;
            }
            trace.requests.push(request(shown));
        })
    }

    /// The trace since the last call.
    pub fn take(&self) -> Trace {
        std::mem::take(&mut *self.trace.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes the file, if there is one.
    pub fn finish(mut self) -> Result<()> {
        let trace = self.take();
        match &mut self.file {
            Some(file) => Ok(file.write_all(trace.to_text().as_bytes())?),
            None => Ok(()),
        }
    }
}

fn request(shown: &Shown) -> Request {
    Request {
        leaves: shown.leaves.clone(),
        depth: shown.depth,
        reads: shown.reads,
        writes: shown.writes,
        bytes_read: shown.bytes_read,
        bytes_written: shown.bytes_written,
    }
}
