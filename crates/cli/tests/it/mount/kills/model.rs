//! The possible states of one writer's files after a kill.
//!
//! A sync is an acknowledgement: from then on the bytes of that file and all names so far are sure.
//! Later changes may have happened or not. Each byte is the sure one or one written over it since.
//! Each name leads to its sure file or to one that it got since.

use std::collections::{BTreeMap, BTreeSet};

/// Bytes at the front of each file that identify it; they are never overwritten.
pub const HEAD: usize = 8;

/// One file, whatever its name.
#[derive(Default)]
pub struct File {
    sure: Vec<u8>,
    /// Writes since the last sync, in order.
    since: Vec<(usize, Vec<u8>)>,
}

impl File {
    /// A file that was found after a kill.
    fn found(bytes: Vec<u8>) -> Self {
        File { sure: bytes, since: Vec::new() }
    }

    /// Its current length.
    pub fn len(&self) -> usize {
        let ends = self.since.iter().map(|(at, bytes)| at + bytes.len());
        ends.max().unwrap_or(0).max(self.sure.len())
    }

    /// Notes a write; call it before the write begins.
    pub fn write(&mut self, at: usize, bytes: Vec<u8>) {
        self.since.push((at, bytes));
    }

    /// Notes that a sync of all writes has succeeded; returns the bytes that it acknowledged.
    pub fn synced(&mut self) -> usize {
        let written = self.since.iter().map(|(_, bytes)| bytes.len()).sum();
        for (at, bytes) in self.since.drain(..) {
            let end = at + bytes.len();
            self.sure.resize(self.sure.len().max(end), 0);
            self.sure[at..end].copy_from_slice(&bytes);
        }
        written
    }

    /// Why these bytes cannot be the file after a kill.
    fn refuses(&self, bytes: &[u8]) -> Option<String> {
        let (least, most) = (self.sure.len(), self.len());
        if bytes.len() < least || bytes.len() > most {
            return Some(format!("{} bytes of {least} to {most}", bytes.len()));
        }
        let mut fine: Vec<bool> = bytes
            .iter()
            .enumerate()
            .map(|(at, &byte)| byte == self.sure.get(at).copied().unwrap_or(0))
            .collect();
        for (at, written) in &self.since {
            for (offset, &byte) in written.iter().enumerate() {
                if bytes.get(at + offset) == Some(&byte) {
                    fine[at + offset] = true;
                }
            }
        }
        let wrong = fine.iter().filter(|&&fine| !fine).count();
        let first = fine.iter().position(|&fine| !fine)?;
        Some(format!("{wrong} bytes are wrong, the first at {first} of {}", bytes.len()))
    }
}

/// The files of one writer.
#[derive(Default)]
pub struct Model {
    pub files: BTreeMap<u64, File>,
    /// For each name its sure file and those it got since; `None` is no file. The last one is its
    /// current file.
    names: BTreeMap<String, Vec<Option<u64>>>,
}

impl Model {
    /// The names that lead to a file now.
    pub fn names(&self) -> impl Iterator<Item = (&str, u64)> {
        let now = |may: &Vec<Option<u64>>| may.last().copied().flatten();
        self.names.iter().filter_map(move |(name, may)| Some((name.as_str(), now(may)?)))
    }

    /// Notes that the name leads to another file; call it before the change.
    pub fn point(&mut self, name: &str, to: Option<u64>) {
        self.names.entry(name.to_owned()).or_insert_with(|| vec![None]).push(to);
    }

    /// Notes that some sync has succeeded: all names are sure.
    pub fn names_synced(&mut self) {
        for may in self.names.values_mut() {
            may.drain(..may.len() - 1);
        }
        self.names.retain(|_, may| may != &[None]);
        let named: BTreeSet<u64> = self.names.values().flatten().flatten().copied().collect();
        self.files.retain(|id, _| named.contains(id));
    }

    /// Compares with the files found, which are sure from now on.
    pub fn settle(&mut self, found: BTreeMap<String, Vec<u8>>) -> Result<(), String> {
        let mut places: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
        for (name, may) in &self.names {
            let candidates: BTreeSet<u64> = may.iter().flatten().copied().collect();
            let Some(bytes) = found.get(name) else {
                if !may.contains(&None) {
                    return Err(format!("{name} is gone; it may be {candidates:?}"));
                }
                continue;
            };
            let mut reasons = Vec::new();
            let fits = candidates.into_iter().find(|id| {
                let refused = self.files[id].refuses(bytes);
                let fits = refused.is_none();
                reasons.extend(refused.map(|why| format!("{id}: {why}")));
                fits
            });
            let Some(id) = fits else { return Err(format!("{name}: {}", reasons.join(", "))) };
            // A file without bytes of its own cannot be identified.
            if bytes.len() >= HEAD && bytes[..HEAD].iter().any(|&byte| byte != 0) {
                places.entry(id).or_default().push(name);
            }
        }
        if let Some((id, twice)) = places.iter().find(|(_, names)| names.len() > 1) {
            return Err(format!("file {id} is in two places: {twice:?}"));
        }
        if let Some(name) = found.keys().find(|name| !self.names.contains_key(*name)) {
            return Err(format!("{name} was never there"));
        }
        // A rename must not lose the file between its two names.
        let moved = self.names.values().filter_map(|may| may.first().copied().flatten());
        for id in moved {
            let sure = self.files[&id].sure.len() >= HEAD;
            if sure && !self.may_be_gone(id) && !places.contains_key(&id) {
                return Err(format!("file {id} is under none of its names"));
            }
        }
        let mut files = BTreeMap::new();
        let mut names = BTreeMap::new();
        for (name, bytes) in found {
            let head = bytes.get(..HEAD).and_then(|head| head.try_into().ok());
            let id = head.map_or(0, u64::from_le_bytes);
            // Files without a head get numbers that no writer uses.
            let id = if id == 0 { u64::MAX - files.len() as u64 } else { id };
            names.insert(name, vec![Some(id)]);
            files.insert(id, File::found(bytes));
        }
        (self.files, self.names) = (files, names);
        Ok(())
    }

    /// Whether an operation since the last sync removes the file.
    fn may_be_gone(&self, id: u64) -> bool {
        !self.names.values().any(|may| may.last() == Some(&Some(id)))
    }
}

#[test]
fn the_model_finds_what_was_lost() {
    let start = || {
        let mut model = Model::default();
        model.files.entry(1).or_default().write(0, [1u64.to_le_bytes(), [7; 8]].concat());
        model.point("a", Some(1));
        model.files.get_mut(&1).expect("made").synced();
        model.names_synced();
        model
    };
    let whole = [1u64.to_le_bytes(), [7; 8]].concat();
    let under = |name: &str, bytes: &[u8]| BTreeMap::from([(name.to_owned(), bytes.to_vec())]);
    assert!(start().settle(under("a", &whole)).is_ok());
    assert!(start().settle(BTreeMap::new()).is_err(), "lost");
    assert!(start().settle(under("a", &whole[..12])).is_err(), "cut off");
    assert!(start().settle(under("a", &[whole[..12].to_vec(), vec![0; 4]].concat())).is_err());
    let renamed = || {
        let mut model = start();
        model.point("b", Some(1));
        model.point("a", None);
        model
    };
    assert!(renamed().settle(under("a", &whole)).is_ok());
    assert!(renamed().settle(under("b", &whole)).is_ok());
    assert!(renamed().settle(BTreeMap::new()).is_err(), "lost between two names");
    let both = [under("a", &whole), under("b", &whole)].into_iter().flatten().collect();
    assert!(renamed().settle(both).is_err(), "twice");
    let mut written = start();
    written.files.get_mut(&1).expect("made").write(12, vec![9; 8]);
    assert!(written.settle(under("a", &[whole[..12].to_vec(), vec![9; 6]].concat())).is_ok());
}
