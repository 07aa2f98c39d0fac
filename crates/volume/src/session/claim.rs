//! Claims: a session takes its number by one exclusive act.
//!
//! Where a store creates exclusively, the claim of a number has one name. Where it only stores and
//! lists, each session's claim has a name of its own: it stores the claim, then lists all claims to
//! the number. If it sees itself alone, it has begun. Of two sessions at most one sees itself
//! alone, or each list would have come before the other one's store. Claims are never deleted.
//!
//! A claim that is lost would hide its session, so each has a second copy, stored once the number
//! is taken. A session that begins looks for both. A look of a session under way asks for the claim
//! alone: a store that loses it just then is one that hides it.

use super::ask::{found, there};
use super::names::{self, CLAIM_COPIES, CLAIMS, SessionId};
use super::search::{GONE, largest};
use super::vault::Vault;
use crate::trust::ComputerId;
use crate::{Error, Result};
use oblivio_crypto::{Kind, SEAL_HEADER, SEAL_OVERHEAD};
use oblivio_store::{Objects, PutMode, ReadAt, StoreError};
use std::collections::BTreeSet;
use std::ops::Range;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of a claim.
pub const CLAIM_BYTES: usize = 1024;
const HOST_BYTES: usize = 255;
/// How often a store is asked anew that did not answer a claim.
const TRIES: usize = 3;

/// How sessions begin in a store. All computers must go the same way: it is a property of the
/// volume, not of how one of them reaches the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimMode {
    /// The store creates exclusively.
    Create,
    /// The store stores and lists.
    Alone,
}

/// Who begins a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    pub computer: ComputerId,
    /// What its owner calls it.
    pub host: String,
}

/// The plaintext of a claim, and of what asks a session for its volume.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Claim {
    random: U64,
    computer: [u8; 16],
    host_len: u8,
    host: [u8; HOST_BYTES],
    zeros: [u8; CLAIM_BYTES - SEAL_OVERHEAD - 8 - 16 - 1 - HOST_BYTES],
}

/// The sealed claim of a session, or the sealed wish of somebody for its volume.
///
/// # Errors
/// Those of the sealer.
pub fn seal(vault: &mut Vault, kind: Kind, id: SessionId, who: &Who) -> Result<Vec<u8>> {
    let end = (0..=HOST_BYTES).rev().find(|&end| who.host.is_char_boundary(end)).unwrap_or(0);
    let named = &who.host.as_bytes()[..end.min(who.host.len())];
    let mut claim = Claim::new_zeroed();
    claim.random = U64::new(id.random);
    claim.computer = who.computer.0;
    claim.host_len = named.len() as u8;
    claim.host[..named.len()].copy_from_slice(named);
    let mut out = vec![0; CLAIM_BYTES];
    out[SEAL_HEADER..SEAL_HEADER + size_of::<Claim>()].copy_from_slice(claim.as_bytes());
    vault.seal(kind, id.number, 0, &mut out)?;
    Ok(out)
}

/// Opens a claim to a number, or a wish for the volume of the session that has it; `None` if none
/// was sealed for that.
pub fn open(
    vault: &mut Vault,
    kind: Kind,
    number: u64,
    bytes: &mut [u8],
) -> Option<(SessionId, Who)> {
    let plain = vault.open(kind, number, 0, bytes)?;
    let claim = Claim::ref_from_bytes(plain).ok()?;
    let host = claim.host.get(..usize::from(claim.host_len))?;
    let who = Who {
        computer: ComputerId(claim.computer),
        host: String::from_utf8_lossy(host).into_owned(),
    };
    Some((SessionId { number, random: claim.random.get() }, who))
}

/// A store's claims.
pub struct Claims<'a> {
    pub store: &'a dyn Objects,
    pub way: ClaimMode,
}

impl Claims<'_> {
    /// The largest number that was ever claimed; 0 if none. `hint` may be it.
    ///
    /// # Errors
    /// Those of the store.
    pub fn largest(&self, hint: u64) -> Result<u64> {
        match self.way {
            ClaimMode::Create => largest(hint, names::MOST_NUMBER, |numbers| {
                let both = |&at: &u64| [names::claim(at), names::claim_copy(at)];
                let both: Vec<String> = numbers.iter().flat_map(both).collect();
                let there = there(self.store, &both)?;
                Ok(there.chunks(2).map(|pair| pair.contains(&true)).collect())
            }),
            ClaimMode::Alone => {
                Ok(self.listed()?.iter().map(|id| id.number).max().unwrap_or_default())
            }
        }
    }

    /// Whether a session is there and no other one follows it, where the store creates exclusively.
    /// If it `ended`, the next number is about to be claimed, and the store refuses that if it is
    /// taken: then only the second copy of its claim is asked for, as the first may be lost.
    ///
    /// # Errors
    /// Those of the store.
    pub fn is_last(&self, number: u64, ended: bool) -> Result<bool> {
        let later = number + 1..=number + GONE;
        let first = later.clone().skip(usize::from(ended)).map(names::claim);
        let names = [names::claim(number)].into_iter().chain(first);
        let names: Vec<String> = names.chain(later.map(names::claim_copy)).collect();
        let there = there(self.store, &names)?;
        Ok(there[0] && !there[1..].contains(&true))
    }

    /// The sessions whose claims are listed, or their second copies, where each has its own name.
    ///
    /// # Errors
    /// Those of the store.
    pub fn listed(&self) -> Result<BTreeSet<SessionId>> {
        let mut all = self.store.list_under(CLAIMS)?;
        all.append(&mut self.store.list_under(CLAIM_COPIES)?);
        Ok(all.iter().filter_map(|(name, _)| names::parse_claim(name)).collect())
    }

    /// Whether a number was claimed.
    ///
    /// # Errors
    /// Those of the store.
    pub fn claimed(&self, number: u64) -> Result<bool> {
        let name = names::claim(number);
        match self.way {
            ClaimMode::Create => Ok(self.store.len(&name)?.is_some()),
            // What does not parse counts too: it may be a claim of a later version.
            ClaimMode::Alone => Ok(!self.store.list_under(&name)?.is_empty()),
        }
    }

    /// The session that claimed a number, where only one can: `None` if its claim does not open.
    ///
    /// # Errors
    /// Those of the store.
    pub fn read(&self, vault: &mut Vault, number: u64) -> Result<Option<SessionId>> {
        let read = self.read_many(vault, number..number + 1)?;
        Ok(read.first().and_then(|(_, id)| *id))
    }

    /// The same for several numbers, side by side.
    ///
    /// # Errors
    /// Those of the store.
    pub fn read_many(
        &self,
        vault: &mut Vault,
        numbers: Range<u64>,
    ) -> Result<Vec<(u64, Option<SessionId>)>> {
        let mut ids = self.read_named(vault, numbers, names::claim)?;
        for (number, id) in ids.iter_mut().filter(|(_, id)| id.is_none()) {
            let copies = self.read_named(vault, *number..*number + 1, names::claim_copy)?;
            *id = copies.first().and_then(|(_, copy)| *copy);
        }
        Ok(ids)
    }

    fn read_named(
        &self,
        vault: &mut Vault,
        numbers: Range<u64>,
        name: fn(u64) -> String,
    ) -> Result<Vec<(u64, Option<SessionId>)>> {
        let names: Vec<String> = numbers.clone().map(name).collect();
        let mut buffers = vec![[0; CLAIM_BYTES]; names.len()];
        let claims = names.iter().zip(&mut buffers);
        let mut reads: Vec<ReadAt<'_>> =
            claims.map(|(object, buf)| ReadAt { object, offset: 0, buf }).collect();
        // One that is gone or short fails them all: then each by itself.
        let whole = found(self.store.read(&mut reads))?;
        let mut ids = Vec::new();
        for ((number, object), buf) in numbers.zip(&names).zip(&mut buffers) {
            let there = whole || found(self.store.read(&mut [ReadAt { object, offset: 0, buf }]))?;
            let claim = there.then(|| open(vault, Kind::Claim, number, buf)).flatten();
            ids.push((number, claim.map(|(id, _)| id)));
        }
        Ok(ids)
    }

    /// Who claimed a number in this session; `None` if that does not open.
    ///
    /// # Errors
    /// Those of the store.
    pub fn who(&self, vault: &mut Vault, id: SessionId) -> Result<Option<Who>> {
        for object in self.names(id) {
            let mut buf = [0; CLAIM_BYTES];
            let read = self.store.read(&mut [ReadAt { object: &object, offset: 0, buf: &mut buf }]);
            let there = found(read)?;
            let claim = there.then(|| open(vault, Kind::Claim, id.number, &mut buf)).flatten();
            if let Some((_, who)) = claim.filter(|(of, _)| *of == id) {
                return Ok(Some(who));
            }
        }
        Ok(None)
    }

    /// The names of a session's claim and of its second copy.
    pub fn names(&self, id: SessionId) -> [String; 2] {
        match self.way {
            ClaimMode::Create => [names::claim(id.number), names::claim_copy(id.number)],
            ClaimMode::Alone => [id.claim(), id.claim_copy()],
        }
    }

    /// Claims a number. Whether this session has it now, and it alone.
    ///
    /// # Errors
    /// Those of the store. Then the claim may still come to be; it is of a session without entries.
    pub fn claim(&self, vault: &mut Vault, id: SessionId, who: &Who) -> Result<bool> {
        let bytes = seal(vault, Kind::Claim, id, who)?;
        match self.way {
            ClaimMode::Create => self.create(vault, id, &bytes),
            ClaimMode::Alone => self.list_after_put(id, &bytes),
        }
    }

    fn create(&self, vault: &mut Vault, id: SessionId, bytes: &[u8]) -> Result<bool> {
        let name = names::claim(id.number);
        for left in (0..TRIES).rev() {
            match self.store.put(&name, bytes, PutMode::IfAbsent) {
                Ok(()) => return Ok(true),
                Err(error) if error.may_pass() || matches!(error, StoreError::Exists { .. }) => {
                    // Perhaps it was done. What stands there now stands there for ever.
                    if self.claimed(id.number)? {
                        let holder = self.read(vault, id.number)?;
                        return Ok(holder == Some(id));
                    }
                    if left == 0 {
                        return Err(error.into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }

    fn list_after_put(&self, id: SessionId, bytes: &[u8]) -> Result<bool> {
        let name = id.claim();
        let mut tries = TRIES;
        // The list counts only after an answered store.
        while let Err(error) = self.store.put(&name, bytes, PutMode::Replace) {
            tries -= 1;
            if tries == 0 || !error.may_pass() {
                return Err(error.into());
            }
        }
        let there = self.store.list_under(&names::claim(id.number))?;
        if !there.iter().any(|(shown, _)| *shown == name) {
            let why = format!("{name}: the store does not list what it stored");
            return Err(Error::Unsupported(why));
        }
        Ok(there.len() == 1)
    }
}
