//! Reads of buckets in objects, also where the store lacks some of them.
//!
//! # What counts as damage
//!
//! A window writes a path anew from what it read, so a bucket that is taken for lost is lost from
//! then on. An object counts as gone, or as cut, only if all of this holds:
//! - the store answered that it is so, twice: to the read, and to the question for its length. An
//!   outage, a refusal and an expired token are other errors, and end the read;
//! - the store then shows what this session stored itself at its beginning. A service that answers
//!   "not there" to everything, another bucket, and an older copy of this one do not;
//! - after that, no later session is seen: one that took over deletes what it replaced.
//!
//! Which objects are asked for in all this follows from the read that failed and from the store's
//! answers. What is known to be lacking is not asked for again in the session.

use crate::session::{self, OwnSession};
use crate::{Error, Result};
use oblivio_store::{Objects, ReadAt, StoreError};
use std::collections::BTreeMap;
use std::io::ErrorKind;

/// How often the store may say that an object is there which it did not read.
const CONTRADICTIONS: u32 = 2;

/// Current objects that the store lacks or has cut, as far as this session noticed, with the bytes
/// that are left of each.
#[derive(Default)]
pub(super) struct Lacking(BTreeMap<String, u64>);

impl Lacking {
    /// The bytes that are left of an object; `None` if nothing is known to be lacking.
    pub fn left(&self, object: &str) -> Option<u64> {
        self.0.get(object).copied()
    }

    /// Forgets an object that is no longer current.
    pub fn forget(&mut self, object: &str) {
        self.0.remove(object);
    }
}

/// The reads of one object.
#[derive(Default)]
pub(super) struct Wanted<'a> {
    pub bucket_bytes: usize,
    /// By their place in the object.
    pub buckets: Vec<(u64, &'a mut [u8])>,
}

impl Wanted<'_> {
    /// Takes the buckets out of their object.
    pub fn fill(&mut self, object: &[u8]) -> Result<()> {
        for (index, buf) in &mut self.buckets {
            let at = *index as usize * self.bucket_bytes;
            let bucket = object.get(at..at + self.bucket_bytes);
            let bucket = bucket.ok_or_else(|| Error::Closed("a short object".into()))?;
            buf.copy_from_slice(bucket);
        }
        Ok(())
    }
}

/// Where buckets are fetched from: a store, of which this session knows what it lacks.
pub(super) struct Source<'a> {
    pub store: &'a dyn Objects,
    pub session: &'a mut OwnSession,
    pub lacking: &'a mut Lacking,
    /// Buckets in an object.
    pub turns: u64,
}

impl Source<'_> {
    /// Reads from the store. Objects of which all buckets are wanted are read as a whole. What the
    /// store lacks are zeros.
    pub fn fetch(&mut self, objects: &mut [(String, Wanted<'_>)]) -> Result<()> {
        let mut contradictions = 0;
        loop {
            if self.read(objects)? {
                return Ok(());
            }
            if !self.ask(objects)? {
                contradictions += 1;
            }
            if contradictions > CONTRADICTIONS {
                let why = "the service says that an object is there, and does not show it";
                let object = objects.first().map_or("", |it| &it.0);
                return Err(unclear(object, why));
            }
        }
    }

    /// Reads once what is not known to be lacking; whether all of it was there.
    fn read(&self, objects: &mut [(String, Wanted<'_>)]) -> Result<bool> {
        let mut whole: Vec<(&mut Wanted<'_>, Vec<u8>)> = Vec::new();
        let mut reads = Vec::new();
        let mut named = Vec::new();
        for (object, wanted) in objects {
            let bytes = wanted.bucket_bytes as u64;
            let left = self.lacking.left(object);
            if left.is_none() && self.turns > 1 && wanted.buckets.len() as u64 == self.turns {
                whole.push((wanted, vec![0; (bytes * self.turns) as usize]));
                named.push(&*object);
                continue;
            }
            for (index, buf) in &mut wanted.buckets {
                if left.is_some_and(|left| (*index + 1) * bytes > left) {
                    buf.fill(0);
                } else {
                    reads.push(ReadAt { object, offset: *index * bytes, buf });
                }
            }
        }
        for (object, (_, buf)) in named.into_iter().zip(&mut whole) {
            reads.push(ReadAt { object, offset: 0, buf });
        }
        if !reads.is_empty() && !session::found(self.store.read(&mut reads))? {
            return Ok(false);
        }
        drop(reads);
        whole.into_iter().try_for_each(|(wanted, bytes)| wanted.fill(&bytes))?;
        Ok(true)
    }

    /// Finds out which of the objects the store lacks; whether there is one that was not known.
    fn ask(&mut self, objects: &[(String, Wanted<'_>)]) -> Result<bool> {
        let known = |it: &&(String, Wanted<'_>)| self.lacking.left(&it.0).is_some();
        let asked: Vec<_> = objects.iter().filter(|it| !known(it)).collect();
        let names: Vec<String> = asked.iter().map(|(name, _)| name.clone()).collect();
        let lens = names.iter().zip(session::lens(self.store, &names)?);
        let left = lens.zip(&asked).filter_map(|((name, len), (_, wanted))| {
            let (left, whole) = (len.unwrap_or(0), wanted.bucket_bytes as u64 * self.turns);
            (left < whole).then(|| (name.clone(), left))
        });
        let left: BTreeMap<String, u64> = left.collect();
        if left.is_empty() {
            return Ok(false);
        }
        if !self.session.is_shown()? {
            let why = "the service does not even show what was stored at the beginning of this \
                       session";
            return Err(unclear(&self.session.id().entry(1), why));
        }
        self.session.look()?;
        self.lacking.0.extend(left);
        Ok(true)
    }
}

fn unclear(object: &str, why: &str) -> Error {
    Error::Store(StoreError::service(object, ErrorKind::Other, why.into()))
}
