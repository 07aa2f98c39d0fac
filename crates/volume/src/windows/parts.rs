//! The parts of the memory in the store: sealed, read, and made again where one is lost.

use super::ledger::WindowLedger;
use super::parity::{Parity, missing_part};
use super::places::Places;
use super::state::Commit;
use crate::damage::DamagedPlace;
use crate::{Error, Result};
use oblivio_crypto::{Kind, Place, SEAL_HEADER, SEAL_OVERHEAD, digest};
use oblivio_store::{ReadAt, StoreError};

/// Parts read at a time.
const AT_ONCE: usize = 8;
/// No part has as many bytes.
const MOST_BYTES: u64 = 1 << 30;

/// An object to read, with its length and digest.
type Expected = (String, u64, [u8; 32]);

impl WindowLedger {
    fn place_of_part(&self, number: u64, session: u64) -> Place {
        Place { volume: self.volume, kind: Kind::Part, index: number, version: session }
    }

    /// Seals a part, between the bytes of its seal.
    pub(super) fn seal_part(&mut self, number: u64, session: u64, part: &mut [u8]) -> Result<()> {
        let sealed = self.sealer.seal(&self.place_of_part(number, session), part);
        sealed.map(drop).map_err(|error| Error::Closed(error.to_string()))
    }

    /// Loads the memory from the kept parts.
    pub(super) fn restore(&mut self, commit: &Commit) -> Result<()> {
        let kept = self.places.rule.kept(self.engine.config().blocks_per_bucket);
        let kept = kept.min(commit.number) as usize;
        let Some(passed) = commit.parts.len().checked_sub(kept) else {
            return Err(Error::Tampered("a commit keeps too few parts".into()));
        };
        let mut plains = Vec::new();
        let numbers = self.commits.first_part() + passed as u64..=commit.number;
        for some in numbers.clone().collect::<Vec<_>>().chunks(AT_ONCE) {
            plains.append(&mut self.read_parts(some)?);
        }
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
        let expected = numbers.iter().map(|number| self.expected_part(*number));
        let expected: Vec<Expected> = expected.collect::<Result<_>>()?;
        let found = self.read_whole(&expected)?;
        let mut plains = Vec::new();
        for ((&number, (object, ..)), found) in numbers.iter().zip(expected).zip(found) {
            let mut part = match found {
                Ok(part) => part,
                Err(why) => self.make_again(number, object.clone(), why)?,
            };
            self.commits.parities.add(number, &part);
            let (_, session) = self.places.part(number)?;
            let place = self.place_of_part(number, session);
            let opened = self.sealer.open(&place, &mut part);
            opened.map_err(|_| Error::Tampered(format!("{object} is not what was stored")))?;
            plains.push(part);
        }
        Ok(plains)
    }

    /// The object of a stored part.
    pub(super) fn expected_part(&self, number: u64) -> Result<Expected> {
        let (object, _) = self.places.part(number)?;
        let at = number.checked_sub(self.commits.first_part());
        let found = at.and_then(|at| self.commits.parts.get(at as usize));
        let fits = |bytes: u64| (SEAL_OVERHEAD as u64..MOST_BYTES).contains(&bytes);
        let found = found.filter(|(bytes, _)| fits(*bytes));
        let (bytes, digest) = found.ok_or_else(|| Error::Tampered(format!("{object}: length")))?;
        Ok((object, *bytes, *digest))
    }

    /// The object of a parity.
    pub(super) fn expected_parity(&self, of: &Parity) -> Result<Expected> {
        let object = Places::parity_of(of.session, of.last);
        match of.bytes < MOST_BYTES {
            true => Ok((object, of.bytes, of.digest)),
            false => Err(Error::Tampered(format!("{object}: length"))),
        }
    }

    /// Reads objects as a whole, side by side; of each that is not what was stored, why.
    pub(super) fn read_whole(
        &self,
        expected: &[Expected],
    ) -> Result<Vec<std::result::Result<Vec<u8>, String>>> {
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
                Err(error @ StoreError::Short { .. }) => Err(error.to_string()),
                Err(error) => return Err(error.into()),
            });
        }
        Ok(found)
    }

    /// The same of one.
    pub(super) fn read_one(
        &self,
        expected: &Expected,
    ) -> Result<std::result::Result<Vec<u8>, String>> {
        let mut found = self.read_whole(std::slice::from_ref(expected))?;
        found.pop().ok_or_else(|| Error::Closed("one object was read".into()))
    }

    /// Makes a parity again from all of its parts, if they are there. The next checkpoint stores it
    /// again.
    pub(super) fn make_parity_again(&mut self, of: &Parity) -> Result<()> {
        let parts = (of.first..=of.last).map(|number| self.expected_part(number));
        let parts: Vec<Expected> = parts.collect::<Result<_>>()?;
        let found: std::result::Result<Vec<_>, _> = self.read_whole(&parts)?.into_iter().collect();
        let Ok(parts) = found else { return Ok(()) };
        let (object, bytes, sum) = self.expected_parity(of)?;
        if let Ok(parity) = missing_part(Vec::new(), parts, (bytes as usize, sum)) {
            self.past.healed.push((object, parity));
            self.commits.heals = true;
        }
        Ok(())
    }

    /// Makes a part again from the others of its group. The next checkpoint stores it again.
    pub(super) fn make_again(
        &mut self,
        number: u64,
        object: String,
        why: String,
    ) -> Result<Vec<u8>> {
        let lost = || Error::Tampered(format!("{object}: {why}, and no parity makes it again"));
        let of = self.commits.parities.with(number).ok_or_else(lost)?;
        let mut expected = vec![self.expected_parity(&of)?];
        for other in (of.first..=of.last).filter(|it| *it != number) {
            expected.push(self.expected_part(other)?);
        }
        let found =
            self.read_whole(&expected)?.into_iter().collect::<std::result::Result<Vec<_>, _>>();
        let mut found = found.map_err(|_| lost())?.into_iter();
        let (parity, (_, bytes, sum)) =
            (found.next().ok_or_else(lost)?, self.expected_part(number)?);
        let part = missing_part(parity, found, (bytes as usize, sum))?;
        let why = format!("{why}; its group made it again");
        self.places.lacking.tell(DamagedPlace { object: object.clone(), bytes: 0..0, why });
        self.past.healed.push((object, part.clone()));
        self.commits.heals = true;
        Ok(part)
    }
}
