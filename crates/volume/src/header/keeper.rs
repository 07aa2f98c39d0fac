//! Keeps the header of an open volume whole.

use super::fields::FIRST_FORMAT;
use super::objects::{HEADER_OBJECT, put_second};
use super::{Header, HeaderCopies};
use crate::around::Repeats;
use crate::damage::{DamagedPlace, may_be_damage};
use crate::{Error, Result};
use oblivio_crypto::{Mac, MasterKey};
use oblivio_store::{AnyStore, Objects, PutMode};

/// The copies of an open volume's header.
pub(crate) struct HeaderKeeper {
    store: AnyStore,
    /// Whether the layer below may repeat reads: no copy is worth waiting for.
    repeats: Repeats,
    mac: Mac,
    /// The header that was opened.
    opened: Header,
    /// Whether a copy is not whole.
    pending: bool,
    /// The copies that the store failed to read.
    unreadable: [bool; 2],
    /// Whether the store has no place for a second copy.
    single: bool,
    damaged: Vec<DamagedPlace>,
}

impl HeaderKeeper {
    /// Of a header that was opened from these copies.
    pub fn new(
        (store, repeats): (AnyStore, Repeats),
        copies: &HeaderCopies,
        opened: Header,
        master: &MasterKey,
    ) -> Self {
        let mac = master.header_mac(opened.volume());
        let wrong = copies.wrong(&mac, &opened.to_bytes());
        let pending = !wrong.is_empty() || opened.format() == FIRST_FORMAT;
        let damaged = wrong.into_iter();
        // Whether the second may be there at all shows when it is to be stored.
        let missing = |at: usize| at == 1 && !copies.is_there(at);
        let damaged = damaged.filter(|it| !missing(it.0)).filter_map(|it| it.1).collect();
        let unreadable = copies.unreadable();
        Self { store, repeats, mac, opened, pending, unreadable, single: false, damaged }
    }

    /// Another header than the one that was opened is stored now.
    pub fn replaced(&mut self) {
        self.pending = false;
    }

    /// Makes both copies whole after a commit. What fails is tried again with the next one: the
    /// commit itself is done.
    pub fn heal(&mut self) {
        if self.pending && !self.single {
            drop(self.try_to_heal());
        }
    }

    fn try_to_heal(&mut self) -> Result<()> {
        let copies = self.read_again()?;
        // Others may have changed it meanwhile, and a store may show an older one.
        let header = match copies.newest(&self.mac) {
            Some(newest) if newest.format() == FIRST_FORMAT => {
                (*newest == self.opened).then(|| newest.clone().changed(&self.mac))
            }
            newest => newest.filter(|it| it.is_not_before(&self.opened)).cloned(),
        };
        let Some(header) = header else {
            self.pending = false;
            return Ok(());
        };
        let bytes = header.to_bytes();
        // The second first: without a place for it, the header stays as it is.
        for (at, damage) in copies.wrong(&self.mac, &bytes).into_iter().rev() {
            if at == 0 {
                self.store.put(HEADER_OBJECT, &bytes, PutMode::Replace)?;
            } else if !put_second(&self.store, &bytes)? {
                self.single = true;
                return Ok(());
            }
            self.damaged.extend(damage.filter(|_| at == 1 && !copies.is_there(at)));
        }
        (self.pending, self.unreadable) = (false, [false; 2]);
        Ok(())
    }

    fn read_again(&self) -> Result<HeaderCopies> {
        self.repeats.forbidden(|| HeaderCopies::read_again(&self.store, self.unreadable))
    }

    /// Reads both copies again; gives the first that is not as it was written.
    ///
    /// # Errors
    /// Those of the store.
    pub fn inspect(&mut self) -> Result<Option<DamagedPlace>> {
        if self.single {
            return Ok(None);
        }
        let copies = match self.read_again() {
            // Everything else was read just now.
            Err(Error::Store(error)) if may_be_damage(&error) => {
                let (object, why) = (HEADER_OBJECT.to_owned(), error.to_string());
                return Ok(Some(DamagedPlace { object, bytes: 0..0, why }));
            }
            copies => copies?,
        };
        let Some(newest) = copies.newest(&self.mac) else { return Ok(None) };
        let wrong = copies.wrong(&self.mac, &newest.to_bytes());
        self.pending |= !wrong.is_empty();
        Ok(wrong.into_iter().find_map(|it| it.1))
    }

    /// The damaged copies that were met.
    pub fn damaged(&self) -> &[DamagedPlace] {
        &self.damaged
    }
}
