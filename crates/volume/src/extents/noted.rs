//! Which files of the folder this computer has read and found whole: an opening need not read all
//! of a folder again.
//!
//! It saves reads, and nobody relies on it: a check reads every file.

use super::base::readable;
use crate::Result;
use oblivio_crypto::digest;
use oblivio_store::{Objects, PutMode};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The object beside the folder.
const SEEN_OBJECT: &str = "seen";

/// Files that were whole, each with its fingerprint then.
#[derive(Debug, Default)]
pub struct SeenFiles {
    files: BTreeMap<String, u64>,
    changed: bool,
}

impl SeenFiles {
    /// Reads it. What is missing or damaged is nothing seen.
    ///
    /// # Errors
    /// Those of the store.
    pub fn read(beside: &dyn Objects) -> Result<Self> {
        let bytes = readable(beside, SEEN_OBJECT)?.unwrap_or_default();
        Ok(Self { files: parse(&bytes).unwrap_or_default(), changed: false })
    }

    /// Writes it, if it changed.
    ///
    /// # Errors
    /// Those of the store.
    pub fn write(&mut self, beside: &dyn Objects) -> Result<()> {
        if !std::mem::take(&mut self.changed) {
            return Ok(());
        }
        let mut text = String::new();
        for (name, print) in &self.files {
            let _ = writeln!(text, "{name} {print:016x}");
        }
        let bytes = [&digest(text.as_bytes())[..], text.as_bytes()].concat();
        Ok(beside.put(SEEN_OBJECT, &bytes, PutMode::Replace)?)
    }

    /// Whether a file was whole and has not changed since.
    pub fn has(&self, name: &str, print: Option<u64>) -> bool {
        print.is_some() && self.files.get(name).copied() == print
    }

    /// Notes a file that is whole, with its fingerprint from before it was read.
    pub fn note(&mut self, name: &str, print: Option<u64>) {
        let Some(print) = print else { return };
        self.changed |= self.files.insert(name.to_owned(), print) != Some(print);
    }

    /// Forgets all other files.
    pub fn keep_only(&mut self, names: &BTreeSet<String>) {
        let before = self.files.len();
        self.files.retain(|name, _| names.contains(name));
        self.changed |= self.files.len() != before;
    }
}

fn parse(bytes: &[u8]) -> Option<BTreeMap<String, u64>> {
    let (sum, text) = bytes.split_first_chunk::<32>()?;
    let text = std::str::from_utf8(text).ok().filter(|_| *sum == digest(text))?;
    let line = |line: &str| {
        let (name, print) = line.split_once(' ')?;
        Some((name.to_owned(), u64::from_str_radix(print, 16).ok()?))
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_store::MemoryStore;

    #[test]
    fn what_was_seen_is_kept_and_damage_is_nothing_seen() {
        let store = MemoryStore::new();
        let mut seen = SeenFiles::read(&store).unwrap();
        seen.note("x-1", Some(7));
        seen.note("x-2", None);
        seen.write(&store).unwrap();
        let again = || SeenFiles::read(&store).unwrap();
        assert!(again().has("x-1", Some(7)) && !again().has("x-1", Some(8)));
        assert!(!again().has("x-1", None) && !again().has("x-2", None));
        store.corrupt(SEEN_OBJECT, 40, |byte| *byte ^= 1).unwrap();
        assert!(!again().has("x-1", Some(7)));
        seen.keep_only(&BTreeSet::new());
        seen.write(&store).unwrap();
        assert!(!again().has("x-1", Some(7)));
    }
}
