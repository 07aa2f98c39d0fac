//! The parts of the memory in the store: read, and made again where one is lost.

use super::ledger::WindowLedger;
use super::parity::{Parity, missing_part};
use super::pending::Checkpoints;
use super::places::Places;
use super::state::Commit;
use crate::damage::DamagedPlace;
use crate::{Error, Result};
use oblivio_crypto::{SEAL_HEADER, SEAL_OVERHEAD, digest};
use oblivio_store::{Objects, ReadAt, StoreError};

/// No part has as many bytes.
const MOST_BYTES: u64 = 1 << 30;

/// An object to read, with its length and digest.
pub(super) type Expected = (String, u64, [u8; 32]);
/// What was read, or what is wrong with it.
type Found = std::result::Result<Vec<u8>, String>;

/// Reads what the last checkpoint says is stored.
pub(super) struct PartReader<'a> {
    pub store: &'a dyn Objects,
    pub places: &'a Places,
    pub commits: &'a Checkpoints,
}

impl PartReader<'_> {
    /// The object of a stored part.
    pub fn expected(&self, number: u64) -> Result<Expected> {
        let (object, _) = self.places.part(number)?;
        let at = number.checked_sub(self.commits.first_part());
        let found = at.and_then(|at| self.commits.parts.get(at as usize));
        let fits = |bytes: u64| (SEAL_OVERHEAD as u64..MOST_BYTES).contains(&bytes);
        let found = found.filter(|(bytes, _)| fits(*bytes));
        let (bytes, digest) = found.ok_or_else(|| Error::Tampered(format!("{object}: length")))?;
        Ok((object, *bytes, *digest))
    }

    /// The object of a parity.
    pub fn expected_parity(&self, of: &Parity) -> Result<Expected> {
        let object = Places::parity_of(of.session, of.last);
        match of.bytes < MOST_BYTES {
            true => Ok((object, of.bytes, of.digest)),
            false => Err(Error::Tampered(format!("{object}: length"))),
        }
    }

    /// Reads objects as a whole, side by side.
    pub fn read(&self, expected: &[Expected]) -> Result<Vec<Found>> {
        let mut bufs: Vec<Vec<u8>> =
            expected.iter().map(|(_, bytes, _)| vec![0; *bytes as usize]).collect();
        let reads = expected.iter().zip(&mut bufs);
        let mut reads: Vec<ReadAt<'_>> =
            reads.map(|((object, ..), buf)| ReadAt { object, offset: 0, buf }).collect();
        // One that is gone or short fails them all: then each by itself.
        let whole = match self.store.read(&mut reads) {
            Ok(()) => true,
            Err(StoreError::Missing { .. } | StoreError::Short { .. }) => false,
            Err(error) => return Err(error.into()),
        };
        let mut found = Vec::new();
        for ((object, _, sum), mut buf) in expected.iter().zip(bufs) {
            let mut alone = || self.store.read(&mut [ReadAt { object, offset: 0, buf: &mut buf }]);
            let read = if whole { Ok(()) } else { alone() };
            found.push(match read {
                Ok(()) if digest(&buf) == *sum => Ok(buf),
                Ok(()) => Err("it is not what was stored".into()),
                Err(StoreError::Missing { .. }) => Err("it is gone".into()),
                Err(StoreError::Short { len, .. }) => Err(format!("it ends after {len} bytes")),
                Err(error) => return Err(error.into()),
            });
        }
        Ok(found)
    }

    /// Reads one.
    pub fn read_one(&self, expected: &Expected) -> Result<Found> {
        let mut found = self.read(std::slice::from_ref(expected))?;
        found.pop().ok_or_else(|| Error::Closed("one object was read".into()))
    }

    /// Makes a part again from the others of its group, if these are there.
    pub fn again(&self, number: u64) -> Result<Option<Vec<u8>>> {
        let Some(of) = self.commits.parities.with(number) else { return Ok(None) };
        let mut expected = vec![self.expected_parity(&of)?];
        for other in (of.first..=of.last).filter(|it| *it != number) {
            expected.push(self.expected(other)?);
        }
        let (_, bytes, sum) = self.expected(number)?;
        self.missing(&expected, (bytes, sum))
    }

    /// Makes a parity again from all of its parts, if these are there.
    pub fn parity_again(&self, of: &Parity) -> Result<Option<Vec<u8>>> {
        let parts = (of.first..=of.last).map(|number| self.expected(number));
        let parts: Vec<Expected> = parts.collect::<Result<_>>()?;
        self.missing(&parts, (of.bytes, of.digest))
    }

    /// What is missing beside these, with this length and digest.
    fn missing(
        &self,
        others: &[Expected],
        (bytes, sum): (u64, [u8; 32]),
    ) -> Result<Option<Vec<u8>>> {
        let found: std::result::Result<Vec<_>, _> = self.read(others)?.into_iter().collect();
        Ok(found.ok().and_then(|others| missing_part(others, (bytes as usize, sum))))
    }
}

impl WindowLedger {
    /// Reads what is stored of the memory.
    pub(super) fn part_reader(&self) -> PartReader<'_> {
        PartReader { store: &*self.store, places: &self.places, commits: &self.commits }
    }

    /// Loads the memory from the kept parts.
    pub(super) fn restore(&mut self, commit: &Commit) -> Result<()> {
        let kept = self.places.rule.kept(self.engine.config().blocks_per_bucket);
        let kept = kept.min(commit.number) as usize;
        let Some(passed) = commit.parts.len().checked_sub(kept) else {
            return Err(Error::Tampered("a commit keeps too few parts".into()));
        };
        let numbers = self.commits.first_part() + passed as u64..=commit.number;
        let plains = self.read_parts(&numbers.clone().collect::<Vec<_>>())?;
        self.commits.parities.forget_complete();
        let payload = SEAL_HEADER..;
        let parts: Vec<(u64, &[u8])> = numbers
            .zip(&plains)
            .map(|(number, plain)| (number, &plain[payload.clone()][..plain.len() - SEAL_OVERHEAD]))
            .collect();
        Ok(self.engine.restore_parts(&parts)?)
    }

    /// Reads and opens some parts, and adds them to the parities. One that is lost is made again.
    fn read_parts(&mut self, numbers: &[u64]) -> Result<Vec<Vec<u8>>> {
        let reader = self.part_reader();
        let expected = numbers.iter().map(|number| reader.expected(*number));
        let expected: Vec<Expected> = expected.collect::<Result<_>>()?;
        let near = self.commits.near.as_ref();
        let kept = |(object, bytes, sum): &Expected| near?.part(object, *bytes, sum);
        let mut found_near: Vec<Option<Vec<u8>>> = expected.iter().map(kept).collect();
        let far = expected.iter().zip(&found_near).filter(|(_, found)| found.is_none());
        let far: Vec<Expected> = far.map(|(of, _)| of.clone()).collect();
        let mut read = if far.is_empty() { Vec::new() } else { reader.read(&far)? }.into_iter();
        for ((object, ..), found) in far.iter().zip(read.as_slice()) {
            if let (Some(near), Ok(part)) = (near, found) {
                near.keep(object, part);
            }
        }
        let found = found_near.iter_mut().map(|near| match near.take() {
            Some(part) => Ok(part),
            None => read.next().unwrap_or_else(|| Err("it was not read".into())),
        });
        let found: Vec<Found> = found.collect();
        let mut plains = Vec::new();
        for ((&number, (object, ..)), found) in numbers.iter().zip(expected).zip(found) {
            let mut part = match found {
                Ok(part) => part,
                Err(why) => made_again(self, number, (object.clone(), why))?,
            };
            self.commits.parities.add(number, &part);
            let (_, session) = self.places.part(number)?;
            if !self.open_part(number, session, &mut part) {
                return Err(Error::Tampered(format!("{object} is not what was stored")));
            }
            plains.push(part);
        }
        Ok(plains)
    }
}

/// Makes a part again from its group. The next checkpoint stores it again.
fn made_again(
    ledger: &mut WindowLedger,
    number: u64,
    (object, why): (String, String),
) -> Result<Vec<u8>> {
    let Some(part) = ledger.part_reader().again(number)? else {
        let why = format!("{object}: {why}, and its group does not make it again");
        return Err(Error::Tampered(why));
    };
    let why = format!("{why}; its group made it again");
    ledger.past.damaged.push(DamagedPlace { object: object.clone(), bytes: 0..0, why });
    ledger.commits.heal(object, part.clone());
    Ok(part)
}
