//! What this computer notes of files of the folder, beside it: a number for each.
//!
//! Nobody relies on it. What is lost of it costs reads, or a file that is put back too early.

use super::base::readable;
use crate::Result;
use oblivio_crypto::digest;
use oblivio_store::{Objects, PutMode};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Files that were read and found whole, each with its fingerprint then: an opening need not read
/// all of a folder again. A check reads every file.
pub const SEEN_OBJECT: &str = "seen";
/// Files that had not arrived when they were needed, each with the date at which it was missed
/// first.
pub const LATE_OBJECT: &str = "late";
/// More than such notes ever have.
const MOST_BYTES: u64 = 1 << 30;

/// A number for each of some files.
#[derive(Debug)]
pub struct NotedFiles {
    object: &'static str,
    files: BTreeMap<String, u64>,
    changed: bool,
}

impl NotedFiles {
    /// Reads an object of them. What is missing or damaged is nothing noted.
    ///
    /// # Errors
    /// Those of the store.
    pub fn read(beside: &dyn Objects, object: &'static str) -> Result<Self> {
        let bytes = readable(beside, object, MOST_BYTES)?.unwrap_or_default();
        Ok(Self { object, files: parse(&bytes).unwrap_or_default(), changed: false })
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
        for (name, number) in &self.files {
            let _ = writeln!(text, "{name} {number:016x}");
        }
        let bytes = [&digest(text.as_bytes())[..], text.as_bytes()].concat();
        Ok(beside.put(self.object, &bytes, PutMode::Replace)?)
    }

    /// The number of a file.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.files.get(name).copied()
    }

    /// Whether this number was noted of a file.
    pub fn has(&self, name: &str, number: Option<u64>) -> bool {
        number.is_some() && self.get(name) == number
    }

    /// Notes a number of a file.
    pub fn note(&mut self, name: &str, number: Option<u64>) {
        let Some(number) = number else { return };
        self.changed |= self.files.insert(name.to_owned(), number) != Some(number);
    }

    /// Forgets a file.
    pub fn forget(&mut self, name: &str) {
        self.changed |= self.files.remove(name).is_some();
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
        let (name, number) = line.split_once(' ')?;
        Some((name.to_owned(), u64::from_str_radix(number, 16).ok()?))
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_store::MemoryStore;

    #[test]
    fn what_was_noted_is_kept_and_damage_is_nothing_noted() {
        let store = MemoryStore::new();
        let mut seen = NotedFiles::read(&store, SEEN_OBJECT).unwrap();
        seen.note("x-1", Some(7));
        seen.note("x-2", None);
        seen.write(&store).unwrap();
        let again = || NotedFiles::read(&store, SEEN_OBJECT).unwrap();
        assert!(again().has("x-1", Some(7)) && !again().has("x-1", Some(8)));
        assert!(!again().has("x-1", None) && !again().has("x-2", None));
        store.corrupt(SEEN_OBJECT, 40, |byte| *byte ^= 1).unwrap();
        assert!(!again().has("x-1", Some(7)));
        seen.note("x-3", Some(3));
        seen.forget("x-3");
        assert_eq!(seen.get("x-3"), None);
        seen.keep_only(&BTreeSet::new());
        seen.write(&store).unwrap();
        assert!(!again().has("x-1", Some(7)));
    }
}
