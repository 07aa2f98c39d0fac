//! Parities: of the files of a group any one can be made again from the others.
//!
//! A sync client may lose a file, and a computer that holds nothing has no other place to take it
//! from. The extents of the log are one group, since nothing opens without all of them; all others
//! are the second. A parity is the exclusive or of what the files of its group hold, so it tells
//! nothing to a provider that has these files. What is made again counts only if it has the digest
//! that the entry names.

use super::entry::HeldExtent;
use super::shape::ExtentLayout;
use crate::Result;
use oblivio_crypto::digest;
use std::collections::BTreeMap;

/// A table of an entry.
pub type HeldTable = [Option<HeldExtent>];

/// A file of a table.
pub fn held(table: &HeldTable, file: u64) -> Option<HeldExtent> {
    table.get(file as usize).copied().flatten()
}

fn add(sum: &mut [u8], bytes: &[u8]) {
    sum.iter_mut().zip(bytes).for_each(|(sum, byte)| *sum ^= byte);
}

/// The files among these that can be made again: no other one of their group is among them.
pub fn lone(shape: &ExtentLayout, files: &[u64]) -> Vec<u64> {
    let mut of_group: BTreeMap<u64, u64> = BTreeMap::new();
    for file in files {
        *of_group.entry(shape.parity_of(*file)).or_default() += 1;
    }
    let is_lone = |file: &u64| of_group.get(&shape.parity_of(*file)) == Some(&1);
    files.iter().copied().filter(is_lone).collect()
}

/// What a file held, from all others of its group. `read` gives bytes with a digest, if they are
/// anywhere.
///
/// # Errors
/// Those of `read`.
pub fn recovered(
    shape: &ExtentLayout,
    table: &HeldTable,
    file: u64,
    read: &mut dyn FnMut(u64, HeldExtent) -> Result<Option<Vec<u8>>>,
) -> Result<Option<Vec<u8>>> {
    let parity = shape.parity_of(file);
    let (Some((_, expected)), Some(_)) = (held(table, file), held(table, parity)) else {
        return Ok(None);
    };
    let Some(mut sum) = sum_of(shape, table, (parity, Some(file)), read)? else { return Ok(None) };
    sum.truncate(shape.bytes_of(file) as usize);
    Ok((digest(&sum) == expected).then_some(sum))
}

/// The sum of the files of a group but one; `None` if another one is nowhere.
fn sum_of(
    shape: &ExtentLayout,
    table: &HeldTable,
    (parity, but): (u64, Option<u64>),
    read: &mut dyn FnMut(u64, HeldExtent) -> Result<Option<Vec<u8>>>,
) -> Result<Option<Vec<u8>>> {
    let mut sum = vec![0; shape.bytes_of(parity) as usize];
    for other in shape.group(parity).filter(|other| Some(*other) != but) {
        let Some(file) = held(table, other) else { continue };
        match read(other, file)? {
            Some(bytes) => add(&mut sum, &bytes),
            None => return Ok(None),
        }
    }
    Ok(Some(sum))
}

/// The parities of an epoch that is being made.
pub struct NextParities<'a> {
    shape: &'a ExtentLayout,
    /// The table of the epoch before.
    before: &'a HeldTable,
    /// Those that can be made from the ones before and from what changed.
    sums: BTreeMap<u64, Option<Vec<u8>>>,
}

impl<'a> NextParities<'a> {
    /// After an epoch with this table.
    pub fn after(shape: &'a ExtentLayout, before: &'a HeldTable) -> Self {
        Self { shape, before, sums: BTreeMap::new() }
    }

    /// Adds what an extent holds from now on. `read` is as in [`recovered`].
    ///
    /// # Errors
    /// Those of `read`.
    pub fn change(
        &mut self,
        extent: u64,
        bytes: &[u8],
        read: &mut dyn FnMut(u64, HeldExtent) -> Result<Option<Vec<u8>>>,
    ) -> Result<()> {
        let parity = self.shape.parity_of(extent);
        if !self.sums.contains_key(&parity) {
            let sum = match held(self.before, parity) {
                Some(file) => read(parity, file)?,
                None if self.shape.group(parity).all(|it| held(self.before, it).is_none()) => {
                    Some(vec![0; self.shape.bytes_of(parity) as usize])
                }
                None => None,
            };
            self.sums.insert(parity, sum);
        }
        let Some(sum @ Some(_)) = self.sums.get_mut(&parity) else { return Ok(()) };
        let old = match held(self.before, extent) {
            Some(file) => read(extent, file)?,
            None => Some(Vec::new()),
        };
        match (old, sum.as_mut()) {
            (Some(old), Some(sum)) => {
                add(sum, &old);
                add(sum, bytes);
            }
            _ => *sum = None,
        }
        Ok(())
    }

    /// The parities that are new, each with its bytes. Those without bytes are known no more. One
    /// that cannot be made from the one before is made from all files, unless that was `tried`
    /// before: it reads all of them.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn finish(
        mut self,
        table: &HeldTable,
        tried: &mut bool,
        read: &mut dyn FnMut(u64, HeldExtent) -> Result<Option<Vec<u8>>>,
    ) -> Result<BTreeMap<u64, Option<Vec<u8>>>> {
        let anew = !*tried;
        for parity in self.shape.parities() {
            let none = held(self.before, parity).is_none();
            if none {
                self.sums.entry(parity).or_insert(None);
            }
            if let Some(sum @ None) = self.sums.get_mut(&parity)
                && anew
            {
                *tried = true;
                *sum = sum_of(self.shape, table, (parity, Some(parity)), read)?;
            }
        }
        Ok(self.sums)
    }
}
