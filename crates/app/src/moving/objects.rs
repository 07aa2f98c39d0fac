//! The objects of a volume, copied under their names between stores of whole objects.
//!
//! No name ever has two contents there, so a copy that was interrupted goes on where it was. The
//! header comes last: before it there is no volume.

use super::{Hear, Moved, stranger};
use oblivio_store::{Objects, PutMode, ReadAt};
use oblivio_volume::{Error, HEADER_OBJECTS, Result, has_header, is_header};
use std::collections::BTreeMap;

/// Bytes on their way at the same time, and objects.
const BYTES_AT_ONCE: u64 = 64 << 20;
const AT_ONCE: usize = 32;
/// The longest header.
const HEADER_BYTES: u64 = 1 << 16;

/// How sessions begin, which the names of their claims show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimForm {
    /// By creating an object that nobody else can create.
    Created,
    /// By being alone in a list.
    Listed,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectCounts {
    /// Objects that were copied, and their bytes.
    pub copied: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects that were there already.
    pub kept: u64,
}

/// A copy of objects at work.
pub struct ObjectCopy<'a> {
    from: &'a dyn Objects,
    to: &'a dyn Objects,
    /// What is at the new place, and known to be right or not.
    there: BTreeMap<String, (u64, bool)>,
    counts: ObjectCounts,
    moved: Moved,
}

impl<'a> ObjectCopy<'a> {
    /// Looks at the new place.
    ///
    /// # Errors
    /// `Exists` if there is a volume or something else at the new place.
    pub fn begin(from: &'a dyn Objects, to: &'a dyn Objects) -> Result<Self> {
        let listed = to.list()?;
        if listed.iter().any(|(name, _)| is_header(name)) {
            return Err(Error::Exists("a volume".into()));
        }
        if let Some(name) = stranger(&listed) {
            return Err(Error::Exists(format!("{name}, which is of no volume,")));
        }
        let there = listed.into_iter().map(|(name, len)| (name, (len, false))).collect();
        let (counts, moved) = (ObjectCounts::default(), Moved::default());
        Ok(Self { from, to, there, counts, moved })
    }

    /// Whether there is a copy of this volume at the new place: it has the same header. How much of
    /// the volume is there that does not say.
    ///
    /// # Errors
    /// Those of the stores.
    pub fn is_copy(from: &dyn Objects, to: &dyn Objects) -> Result<bool> {
        alike(from, to)
    }

    /// How sessions of the volume begin; `None` without any.
    ///
    /// # Errors
    /// Those of the store.
    pub fn claims(from: &dyn Objects) -> Result<Option<ClaimForm>> {
        let first = from.list_under("s-")?.into_iter().next();
        // `s-`, a number of twelve digits, and where sessions only list, a name of their own.
        Ok(first.map(|(name, _)| match name.len() > "s-".len() + 12 {
            true => ClaimForm::Listed,
            false => ClaimForm::Created,
        }))
    }

    /// Copies what is not there yet, but for the header. Gives the claims of sessions.
    ///
    /// # Errors
    /// Those of the stores.
    pub fn copy(&mut self, hear: Hear<'_>) -> Result<Vec<String>> {
        let mut all = self.from.list()?;
        all.retain(|(name, _)| !is_header(name));
        self.moved.total = Some(all.iter().map(|(_, len)| len).sum());
        self.moved.bytes = 0;
        self.remove_what_is_gone(&all)?;
        let mut rest = &all[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(first_of(rest));
            self.copy_some(now)?;
            self.moved.bytes += now.iter().map(|(_, len)| len).sum::<u64>();
            hear(self.moved);
            rest = later;
        }
        Ok(all.into_iter().map(|it| it.0).filter(|name| name.starts_with("s-")).collect())
    }

    /// The old place went on since an earlier copy, and needs these no more.
    fn remove_what_is_gone(&mut self, all: &[(String, u64)]) -> Result<()> {
        let names: Vec<&str> = self.there.keys().map(String::as_str).collect();
        let is_there = |name: &&str| all.binary_search_by(|it| it.0.as_str().cmp(name)).is_ok();
        let gone: Vec<String> =
            names.into_iter().filter(|name| !is_there(name)).map(str::to_owned).collect();
        if !gone.is_empty() {
            self.to.delete(&gone.iter().map(String::as_str).collect::<Vec<_>>())?;
            self.there.retain(|name, _| !gone.contains(name));
        }
        Ok(())
    }

    fn copy_some(&mut self, objects: &[(String, u64)]) -> Result<()> {
        let wanted =
            objects.iter().filter(|(name, len)| self.there.get(name) != Some(&(*len, true)));
        let wanted: Vec<&(String, u64)> = wanted.collect();
        let contents = read_all(self.from, &wanted)?;
        // Those of the right length may be whole: they are compared.
        let same_length =
            |it: &&(String, u64)| self.there.get(&it.0).is_some_and(|at| at.0 == it.1);
        let compared: Vec<&(String, u64)> = wanted.iter().copied().filter(same_length).collect();
        let mut found = read_all(self.to, &compared)?.into_iter();
        let mut new = Vec::new();
        for (object, data) in wanted.iter().zip(&contents) {
            let kept =
                same_length(object) && found.next().is_some_and(|it| digest(&it) == digest(data));
            match kept {
                true => self.counts.kept += 1,
                false => new.push((object.0.as_str(), data.as_slice())),
            }
        }
        if !new.is_empty() {
            self.to.begin(&new)?;
            let names: Vec<&str> = new.iter().map(|it| it.0).collect();
            self.to.settle(&names)?;
            self.counts.copied += new.len() as u64;
            self.counts.bytes += new.iter().map(|it| it.1.len() as u64).sum::<u64>();
        }
        for (name, len) in wanted {
            self.there.insert(name.clone(), (*len, true));
        }
        Ok(())
    }

    /// Copies the header, which makes it a volume.
    ///
    /// # Errors
    /// Those of the stores; `Exists` if there is one now.
    pub fn finish(self) -> Result<ObjectCounts> {
        if !has_header(self.from)? {
            return Err(Error::Unsupported("the header is gone".into()));
        }
        // As they are: which of the copies counts is for those who know the passphrase.
        let mut made = false;
        for object in HEADER_OBJECTS {
            let Some(header) = header_of(self.from, object)? else { continue };
            match self.to.put(object, &header, PutMode::IfAbsent) {
                Ok(()) => made = true,
                // With one of them it is a volume, and its next session makes the other one.
                Err(_) if made => {}
                // Perhaps it was done, and only the answer was lost.
                Err(error) if error.may_pass() && header_of(self.to, object)? == Some(header) => {
                    made = true;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.counts)
    }
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    oblivio_crypto::digest(bytes)
}

/// How many of the first objects go together.
fn first_of(objects: &[(String, u64)]) -> usize {
    let (mut bytes, mut count) = (0u64, 0);
    for (_, len) in objects.iter().take(AT_ONCE) {
        bytes = bytes.saturating_add(*len);
        if count > 0 && bytes > BYTES_AT_ONCE {
            break;
        }
        count += 1;
    }
    count
}

/// The bytes of a copy of the header; `None` if it is not there, or longer than any.
fn header_of(store: &dyn Objects, object: &str) -> Result<Option<Vec<u8>>> {
    let Some(len) = store.len(object)?.filter(|&len| len <= HEADER_BYTES) else {
        return Ok(None);
    };
    let mut bytes = vec![0; len as usize];
    store.read(&mut [ReadAt { object, offset: 0, buf: &mut bytes }])?;
    Ok(Some(bytes))
}

/// Whether two stores have the same header.
fn alike(one: &dyn Objects, other: &dyn Objects) -> Result<bool> {
    let mut same = false;
    for object in HEADER_OBJECTS {
        let header = header_of(one, object)?;
        same |= header.is_some() && header == header_of(other, object)?;
    }
    Ok(same)
}

fn read_all(store: &dyn Objects, objects: &[&(String, u64)]) -> Result<Vec<Vec<u8>>> {
    let mut contents: Vec<Vec<u8>> =
        objects.iter().map(|(_, len)| vec![0; *len as usize]).collect();
    let pairs = objects.iter().zip(&mut contents).filter(|((_, len), _)| *len > 0);
    let mut reads: Vec<ReadAt<'_>> =
        pairs.map(|((name, _), buf)| ReadAt { object: name, offset: 0, buf }).collect();
    if !reads.is_empty() {
        store.read(&mut reads)?;
    }
    drop(reads);
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_go_together_within_limits() {
        let objects = |len: u64, count: usize| vec![("a".to_owned(), len); count];
        assert_eq!(first_of(&objects(1, 100)), AT_ONCE);
        assert_eq!(first_of(&objects(BYTES_AT_ONCE / 2, 5)), 2);
        assert_eq!(first_of(&objects(2 * BYTES_AT_ONCE, 5)), 1);
    }
}
