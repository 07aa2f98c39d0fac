//! Files of which something is lost to damage: each is named once, and the command goes on.

use crate::exit::{Code, fault};
use crate::human;
use anyhow::{Error, Result};
use oblivio_volume::{Error as VolumeError, LostBytes};
use serde::Serialize;
use std::ops::Range;

/// What to do about files that were left out.
const ADVICE: &str = "The lines above name them. `oblivio check VOLUME` tells more, and `oblivio repair \
                      VOLUME` makes it writable and clean again.";

/// A damaged file.
#[derive(Clone, Debug, Serialize)]
pub struct LostFile {
    pub path: String,
    /// The first and the last byte of each part that is lost; none where all of it is.
    pub ranges: Vec<[u64; 2]>,
}

impl LostFile {
    /// A file by its path, and what is lost of it.
    pub fn of(path: impl Into<String>, lost: &LostBytes) -> Self {
        let ends = |range: &Range<u64>| [range.start, range.end - 1];
        Self { path: path.into(), ranges: lost.ranges.iter().map(ends).collect() }
    }

    /// `lost: PATH, bytes A to B, C to D`.
    pub fn line(&self) -> String {
        let mut line = format!("lost: {}", human::plain(&self.path));
        for (index, [first, last]) in self.ranges.iter().enumerate() {
            let before = if index == 0 { ", bytes" } else { "," };
            line += &format!("{before} {first} to {last}");
        }
        line
    }
}

/// What an error says is lost, if it does.
pub fn lost_in(error: &Error) -> Option<&LostBytes> {
    error.chain().find_map(|cause| match cause.downcast_ref::<VolumeError>() {
        Some(VolumeError::Lost(lost)) => Some(lost),
        _ => None,
    })
}

/// The damaged files that a command met.
#[derive(Debug, Default)]
pub struct DamagedFiles(Vec<LostFile>);

impl DamagedFiles {
    /// Takes an error that says that something of this file is lost, and names the file.
    ///
    /// # Errors
    /// Any other error, as it is.
    pub fn take(&mut self, path: impl Into<String>, error: Error) -> Result<()> {
        match lost_in(&error) {
            Some(lost) => {
                let file = LostFile::of(path, lost);
                eprintln!("{}", file.line());
                self.0.push(file);
                Ok(())
            }
            None => Err(error),
        }
    }

    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// The files, in the order in which they were met.
    pub fn files(&self) -> &[LostFile] {
        &self.0
    }

    /// Ends after this many others; all is well if none was damaged.
    pub fn finish(&self, whole: u64, verb: &str) -> Result<()> {
        match self.count() {
            0 => Ok(()),
            lost => {
                let all = human::count(lost + whole, "file");
                let are = if lost == 1 { "is" } else { "are" };
                let what = format!("{lost} of {all} {are} damaged; {whole} {verb}");
                Err(fault(Code::Lost, what, ADVICE))
            }
        }
    }
}
