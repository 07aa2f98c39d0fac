//! The positional part: which extents a range of an object lies in. All of it follows from the
//! header.

use super::names::MOST;
use crate::{Error, Result};
use std::ops::Range;

/// Files behind those of the extents: a parity for each group of extents.
const PARITIES: u64 = 2;

/// A part of a range: an extent, the offset in it, and where in the range the part begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtentPiece {
    pub extent: u64,
    pub offset: u64,
    /// Begin and end in the range.
    pub from: usize,
    pub to: usize,
}

/// An object that is cut into extents, the first of which has this number.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cut {
    object: &'static str,
    bytes: u64,
    first: u64,
}

/// The objects, end to end; each begins an extent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtentLayout {
    extent_bytes: u64,
    cuts: Vec<Cut>,
    /// Objects that stay on this computer, whole.
    own: Vec<(&'static str, u64)>,
    /// The extents of the first group; all others are the second.
    apart: Range<u64>,
}

impl ExtentLayout {
    /// Of these objects. The `own` ones are not cut: they can be made again from the others.
    ///
    /// # Errors
    /// `Invalid` if there would be too many extents.
    pub fn new(objects: &[(&'static str, u64)], own: &[&str], extent_bytes: u64) -> Result<Self> {
        let (mut cuts, mut kept, mut first) = (Vec::new(), Vec::new(), 0);
        for &(object, bytes) in objects {
            if own.contains(&object) {
                kept.push((object, bytes));
                continue;
            }
            cuts.push(Cut { object, bytes, first });
            first += bytes.div_ceil(extent_bytes);
        }
        if first + PARITIES > MOST {
            return Err(Error::Invalid("that is too large for one folder".into()));
        }
        Ok(Self { extent_bytes, cuts, own: kept, apart: 0..0 })
    }

    /// The same with a parity of its own for this object: nothing opens without all of it.
    #[must_use]
    pub fn apart(self, object: &str) -> Self {
        Self { apart: self.of(object), ..self }
    }

    /// All extents.
    pub fn extents(&self) -> u64 {
        self.cuts.last().map_or(0, |cut| cut.first + cut.bytes.div_ceil(self.extent_bytes))
    }

    /// All files of an epoch: those of the extents, then the parities.
    pub fn files(&self) -> u64 {
        self.extents() + PARITIES
    }

    /// The parity of an extent, or the file itself if it is one.
    pub fn parity_of(&self, file: u64) -> u64 {
        match file.checked_sub(self.extents()) {
            Some(_) => file,
            None => self.extents() + u64::from(!self.apart.contains(&file)),
        }
    }

    /// The parities.
    pub fn parities(&self) -> Range<u64> {
        self.extents()..self.files()
    }

    /// The files of a parity's group, itself included.
    pub fn group(&self, parity: u64) -> impl Iterator<Item = u64> + '_ {
        (0..self.files()).filter(move |file| self.parity_of(*file) == parity)
    }

    /// Bytes of a file: those of an object are all as long, but for its last; a parity is as long
    /// as the longest of its group.
    pub fn bytes_of(&self, extent: u64) -> u64 {
        if extent >= self.extents() {
            let group = self.group(extent).filter(|file| *file < self.extents());
            return group.map(|file| self.bytes_of(file)).max().unwrap_or(0);
        }
        let cut = self.cuts.iter().rfind(|cut| cut.first <= extent);
        cut.map_or(0, |cut| {
            let from = (extent - cut.first) * self.extent_bytes;
            cut.bytes.saturating_sub(from).min(self.extent_bytes)
        })
    }

    /// The length of an object; `None` for one that the volume does not have.
    pub fn len(&self, object: &str) -> Option<u64> {
        let cut = self.cuts.iter().map(|cut| (cut.object, cut.bytes));
        cut.chain(self.own.iter().copied()).find(|it| it.0 == object).map(|it| it.1)
    }

    /// All objects, by name, with their lengths.
    pub fn objects(&self) -> Vec<(String, u64)> {
        let cut = self.cuts.iter().map(|cut| (cut.object, cut.bytes));
        let all = cut.chain(self.own.iter().copied());
        let mut all: Vec<_> = all.map(|(object, bytes)| (object.to_owned(), bytes)).collect();
        all.sort();
        all
    }

    /// Whether an object stays on this computer.
    pub fn is_own(&self, object: &str) -> bool {
        self.own.iter().any(|own| own.0 == object)
    }

    /// The extents of an object.
    pub fn of(&self, object: &str) -> Range<u64> {
        let cut = self.cuts.iter().find(|cut| cut.object == object);
        cut.map_or(0..0, |cut| cut.first..cut.first + cut.bytes.div_ceil(self.extent_bytes))
    }

    /// The pieces of a range of an object; `None` if it is not within it.
    pub fn pieces(&self, object: &str, offset: u64, len: usize) -> Option<Vec<ExtentPiece>> {
        let cut = self.cuts.iter().find(|cut| cut.object == object)?;
        offset.checked_add(len as u64).filter(|end| *end <= cut.bytes)?;
        let (mut pieces, mut from) = (Vec::new(), 0);
        while from < len {
            let at = offset + from as u64;
            let within = at % self.extent_bytes;
            let to = len.min(from + (self.extent_bytes - within) as usize);
            let extent = cut.first + at / self.extent_bytes;
            pieces.push(ExtentPiece { extent, offset: within, from, to });
            from = to;
        }
        Some(pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_testkit::Dice;

    /// A model: each byte of each object has one place, and all places of an extent are used.
    #[test]
    fn every_byte_is_in_one_place() {
        for seed in 0..200 {
            let mut dice = Dice::new(seed);
            let mut len = || 1 + dice.below(300);
            let objects = [("a", len()), ("b", len()), ("own", len()), ("c", len())];
            let bytes = 1 + Dice::new(seed ^ 9).below(64);
            let shape = ExtentLayout::new(&objects, &["own"], bytes).expect("small");
            let mut seen = vec![Vec::new(); shape.extents() as usize];
            for (object, len) in objects.into_iter().filter(|it| it.0 != "own") {
                let pieces = shape.pieces(object, 0, len as usize).expect("within");
                let mut at = 0;
                for piece in pieces {
                    assert_eq!(piece.from, at);
                    at = piece.to;
                    assert!(shape.of(object).contains(&piece.extent));
                    let range = piece.offset..piece.offset + (piece.to - piece.from) as u64;
                    seen[piece.extent as usize].extend(range);
                }
                assert_eq!(at as u64, len);
                assert_eq!(shape.len(object), Some(len));
                assert_eq!(shape.pieces(object, 1, len as usize), None, "beyond the end");
                let (from, some) = (len / 3, (len - len / 3) as usize);
                let pieces = shape.pieces(object, from, some).expect("within");
                let first = shape.of(object).start;
                assert_eq!((pieces[0].extent - first) * bytes + pieces[0].offset, from);
            }
            for (extent, places) in seen.into_iter().enumerate() {
                assert_eq!(places, (0..shape.bytes_of(extent as u64)).collect::<Vec<_>>());
            }
            assert!(shape.is_own("own") && shape.pieces("own", 0, 1).is_none());
        }
    }
}
