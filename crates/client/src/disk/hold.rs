//! Who serves the disk: one process at a time.
//!
//! A block names the holder and its session. All asks of a holder are asks of that session alone,
//! and a computer that takes the disk over ends the session first. The engine refuses what an ended
//! session asks, so nothing of an old holder is carried out after the block named a new one. No ask
//! compares the block for that: such an ask would cost one more, and show reads and writes apart.
//!
//! A computer that slept finds its session ended. It goes on in a new one if the block still names
//! it: then nobody wrote in between.

use super::names::{HOLDER, change};
use crate::carried::Carried;
use crate::client::Client;
use crate::presence;
use oblivio_crypto::{Entropy, OsEntropy};
use oblivio_engine::Action;
use oblivio_engine::pyramid::share::{Ask, Compare, Session};
use oblivio_volume::{Error, Result};
use std::sync::{Mutex, MutexGuard, PoisonError};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Others took the block this often between two asks: something is wrong.
const MOST_TRIES: u32 = 50;

/// Who wants to hold a disk.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// This computer's name for itself. A process of it that held the disk is known to have ended.
    pub computer: [u8; 16],
    /// Take it from another computer that holds it. What that one did not flush is lost.
    pub take_over: bool,
}

/// As stored. It is short enough for a comparison.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Holder {
    session: U64,
    process: [u8; 16],
    computer: [u8; 16],
}

/// The disk in the hand of this process.
pub struct DiskHold {
    process: [u8; 16],
    computer: [u8; 16],
    /// None: another one has the disk now.
    session: Mutex<Option<Session>>,
}

impl DiskHold {
    /// For a disk that is being made.
    pub fn by_nobody() -> Self {
        Self { process: [0; 16], computer: [0; 16], session: Mutex::new(None) }
    }

    /// Takes the disk, if nobody has it who lives, or if it is to be taken over.
    ///
    /// # Errors
    /// `Busy` if another computer has it; those of the line.
    pub fn take(client: &Client, claim: Claim) -> Result<Self> {
        let Claim { computer, take_over } = claim;
        let mut process = [0; 16];
        OsEntropy.fill(&mut process);
        let this = Self { process, computer, session: Mutex::new(None) };
        let session = this.be_named(client, |holder| {
            let session = Session(holder.session.get());
            // One process of a computer has a volume at a time, so an earlier one has ended.
            if !take_over && holder.computer != computer && lives(client, session)? {
                return Err(Error::Busy);
            }
            client.end(session)
        })?;
        *this.session() = Some(session);
        Ok(this)
    }

    /// Fails once it is known that another one has the disk.
    ///
    /// # Errors
    /// `Closed`.
    pub fn expect(&self) -> Result<Session> {
        self.session().ok_or_else(lost)
    }

    /// Carries out transactions as the holder, in flight together.
    ///
    /// # Errors
    /// `Closed` once another one has the disk; as [`Client::carry_out_each`].
    pub fn carry_out(&self, client: &Client, all: &[Vec<Ask>]) -> Result<Vec<Carried>> {
        loop {
            let session = self.expect()?;
            if let Some(answers) = client.carry_out_each_in(session, all)? {
                return Ok(answers);
            }
            self.go_on(client, session)?;
        }
    }

    fn session(&self) -> MutexGuard<'_, Option<Session>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on in a new session after this one, which ended.
    fn go_on(&self, client: &Client, ended: Session) -> Result<()> {
        let mut session = self.session();
        if *session != Some(ended) {
            return Ok(());
        }
        let named = self.be_named(client, |holder| match holder.process == self.process {
            true => Ok(()),
            false => Err(lost()),
        });
        if matches!(named, Err(Error::Closed(_))) {
            *session = None;
        }
        *session = Some(named?);
        Ok(())
    }

    /// Makes the block name this process, if `may` allows it for the holder before.
    fn be_named(&self, client: &Client, may: impl Fn(&Holder) -> Result<()>) -> Result<Session> {
        for _ in 0..MOST_TRIES {
            let before = client.carry_out(&[Ask::read(HOLDER)])?.pop();
            let compare = match before.and_then(|answer| answer.content) {
                None => Compare::Absent,
                Some(block) => {
                    let damaged = |_| Error::Tampered("who holds the disk".into());
                    let (holder, _) = Holder::read_from_prefix(&block).map_err(damaged)?;
                    may(&holder)?;
                    Compare::Bytes(0, holder.as_bytes().to_vec())
                }
            };
            let session = client.session();
            let (process, computer) = (self.process, self.computer);
            let holder = Holder { session: U64::new(session.0), process, computer };
            let named = change(HOLDER, Action::Write(holder.as_bytes().to_vec()));
            // A session without its block would be taken for ended.
            let asks = vec![presence::come(session), named.only_if(compare)];
            let done = client.carry_out_in(session, &[asks])?;
            if done.is_some_and(|all| all.iter().flatten().all(|answer| answer.done)) {
                return Ok(session);
            }
        }
        Err(Error::Busy)
    }
}

fn lives(client: &Client, session: Session) -> Result<bool> {
    let asked = client.carry_out(&[presence::look(session)])?;
    Ok(asked.first().is_none_or(|answer| answer.content.is_some()))
}

fn lost() -> Error {
    Error::Closed("another computer serves the disk now".into())
}
