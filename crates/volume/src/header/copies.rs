//! The two copies of a header, as they are found, and which of them counts.
//!
//! Both are read once. Before a passphrase is known, the first that is whole counts. The passphrase
//! is tried on each, if they differ, whichever it opens: so the time tells nothing. What it opens
//! says which copies are authentic, and the newest of these counts: it must be among those that the
//! passphrase opens. So a change counts from the moment at which one copy has it, and a passphrase
//! that was removed opens nothing that stands beside a newer header.

use super::objects::HEADER_OBJECTS;
use super::{HEADER_BYTES, Header};
use crate::around::read_place;
use crate::damage::{DamagedPlace, may_be_damage};
use crate::{Error, Result};
use oblivio_crypto::{Mac, MasterKey, Passphrase};
use oblivio_store::{Objects, ReadAt, StoreError};

/// The longest header that is read.
const LONGEST: u64 = 1 << 16;

/// A copy, as it is found.
struct HeaderCopy {
    /// None if it is missing or cannot be read.
    bytes: Option<Vec<u8>>,
    /// It, and whether its checksum is right.
    parsed: Option<(Header, bool)>,
    /// Why it is not whole.
    error: Option<Error>,
}

impl HeaderCopy {
    fn of(bytes: Option<Vec<u8>>) -> Self {
        let parsed = bytes.as_deref().map(Header::parse_parts);
        let wrong = || Error::Tampered("the header is damaged: its checksum is wrong".into());
        let (parsed, error) = match parsed {
            Some(Ok(parsed)) => (Some(parsed.clone()), (!parsed.1).then(wrong)),
            Some(Err(error)) => (None, Some(error)),
            None => (None, None),
        };
        Self { bytes, parsed, error }
    }

    fn failed(error: StoreError) -> Self {
        let error = match error {
            StoreError::Missing { .. } => None,
            error => Some(error.into()),
        };
        Self { bytes: None, parsed: None, error }
    }

    fn whole(&self) -> Option<&Header> {
        self.parsed.as_ref().filter(|parsed| parsed.1).map(|parsed| &parsed.0)
    }
}

/// Both copies.
pub(crate) struct HeaderCopies {
    copies: [HeaderCopy; 2],
    /// The one that counts before a passphrase is known.
    public: usize,
}

/// What came of work on the header that counts.
pub(crate) struct ChosenHeader<T> {
    /// It, after the work.
    pub header: Header,
    /// Its master key.
    pub master: MasterKey,
    /// What the work gave.
    pub value: T,
}

impl HeaderCopies {
    /// Reads both copies. The first counts that is whole and that `judge` accepts; gives what that
    /// says of it.
    ///
    /// # Errors
    /// `Unsupported` when there is none; those of `judge` and of the store.
    pub fn read<T>(store: &dyn Objects, judge: impl Fn(&Header) -> Result<T>) -> Result<(Self, T)> {
        Self::of(read_copies(store, [false; 2])?, judge)
    }

    /// Reads those copies again that could be read before: a layer that outlasts outages would try
    /// the other for ever.
    pub(super) fn read_again(store: &dyn Objects, unreadable: [bool; 2]) -> Result<Self> {
        Self::of(read_copies(store, unreadable)?, |_| Ok(())).map(|(copies, ())| copies)
    }

    fn of<T>(
        mut copies: [HeaderCopy; 2],
        judge: impl Fn(&Header) -> Result<T>,
    ) -> Result<(Self, T)> {
        let (mut counts, mut first) = (None, None);
        // With none that is whole, one may still open.
        for (is_whole, at) in [(true, 0), (true, 1), (false, 0), (false, 1)] {
            let parsed = copies[at].parsed.as_ref().filter(|parsed| parsed.1 == is_whole);
            match parsed.map(|parsed| judge(&parsed.0)) {
                Some(Ok(value)) if counts.is_none() => counts = Some((at, value)),
                Some(Err(error)) => first = first.or(Some(error)),
                _ => {}
            }
        }
        if let Some((public, value)) = counts {
            return Ok((Self { copies, public }, value));
        }
        let none = || Error::Unsupported("no volume here: there is no header".into());
        let found = copies.iter_mut().find_map(|copy| copy.error.take());
        Err(first.or(found).unwrap_or_else(none))
    }

    /// The header that counts before a passphrase is known. Nothing of it is authenticated.
    pub fn public(&self) -> &Header {
        let parsed = self.copies[self.public].parsed.as_ref();
        &parsed.expect("the one that was judged").0
    }

    /// Those that may be tried: of the same volume and engine as the public one, so that what was
    /// decided by that holds. Those that are whole, or else the public one.
    pub(crate) fn candidates(&self) -> Vec<&Header> {
        let public = self.public();
        let same = |header: &&Header| {
            (header.volume(), header.engine()) == (public.volume(), public.engine())
        };
        let mut found: Vec<_> =
            self.copies.iter().filter_map(HeaderCopy::whole).filter(same).collect();
        if found.is_empty() {
            found.push(public);
        }
        found.dedup();
        found
    }

    /// Does work on the header that counts; the work opens the header with a passphrase.
    ///
    /// # Errors
    /// Those of the work on it; `WrongPassphrase` if the passphrase opens an older copy only;
    /// `Tampered` if the passphrase is right and no copy is what was written.
    pub fn choose<T>(
        &self,
        work: impl Fn(&mut Header) -> Result<(T, MasterKey)>,
    ) -> Result<ChosenHeader<T>> {
        let candidates = self.candidates();
        let mut outcomes: Vec<Result<ChosenHeader<T>>> = Vec::new();
        for candidate in &candidates {
            let mut header = (*candidate).clone();
            outcomes.push(match work(&mut header) {
                Ok((value, master)) => Ok(ChosenHeader { header, master, value }),
                Err(error) => Err(error),
            });
        }
        let lenient = self.copies.iter().all(|copy| copy.whole().is_none());
        let mut newest: Option<(u64, usize)> = None;
        for opened in outcomes.iter().flatten() {
            let mac = opened.master.header_mac(opened.header.volume());
            for (at, header) in candidates.iter().enumerate() {
                // Of equal ones the first.
                let newer = newest.is_none_or(|newest| newest.0 < header.sequence());
                if newer && (lenient || header.is_authentic(&mac)) {
                    newest = Some((header.sequence(), at));
                }
            }
        }
        if let Some((_, at)) = newest {
            return outcomes.swap_remove(at);
        }
        let opened = outcomes.iter().any(Result::is_ok);
        let failed = outcomes.into_iter().filter_map(Result::err);
        match opened {
            true => Err(Error::Tampered("the header's fields or slots were changed".into())),
            // What is not only a wrong passphrase says more.
            false => {
                let more = |one, two| if matches!(one, Error::WrongPassphrase) { two } else { one };
                Err(match failed.reduce(more).unwrap_or(Error::WrongPassphrase) {
                    Error::WrongPassphrase if lenient => Error::Tampered(
                        "the header is damaged: the passphrase opens nothing of what is left of it"
                            .into(),
                    ),
                    error => error,
                })
            }
        }
    }

    /// Opens the header that counts.
    ///
    /// # Errors
    /// Those of [`Self::choose`].
    pub fn unlock(&self, passphrase: &Passphrase) -> Result<(Header, MasterKey)> {
        let chosen = self.choose(|header| header.open(passphrase).map(|master| ((), master)))?;
        Ok((chosen.header, chosen.master))
    }

    /// The same with the master key.
    ///
    /// # Errors
    /// Those of [`Self::choose`].
    pub fn unlock_with(&self, master: &MasterKey) -> Result<(Header, MasterKey)> {
        let chosen = self.choose(|header| Ok(((), header.open_with(master)?)))?;
        Ok((chosen.header, chosen.master))
    }

    /// The newest copy that is whole and authentic.
    pub fn newest(&self, mac: &Mac) -> Option<&Header> {
        let whole = self.copies.iter().filter_map(HeaderCopy::whole);
        let authentic = whole.filter(|header| header.is_authentic(mac));
        authentic.reduce(|one, two| if two.sequence() > one.sequence() { two } else { one })
    }

    /// The objects that do not have these bytes, and why that is damage; a crash leaves one that
    /// is older, and volumes of the first format have one copy.
    pub(super) fn wrong(&self, mac: &Mac, bytes: &[u8]) -> Vec<(usize, Option<DamagedPlace>)> {
        let wrong = (0..2).filter(|&at| self.copies[at].bytes.as_deref() != Some(bytes));
        wrong.map(|at| (at, self.damage(at, mac))).collect()
    }

    /// Which copies the store failed to read.
    pub(super) fn unreadable(&self) -> [bool; 2] {
        [0, 1].map(|at| matches!(self.copies[at].error, Some(Error::Store(_))))
    }

    /// Whether there is an object.
    pub(super) fn is_there(&self, at: usize) -> bool {
        self.copies[at].bytes.is_some() || self.copies[at].error.is_some()
    }

    fn damage(&self, at: usize, mac: &Mac) -> Option<DamagedPlace> {
        let copy = &self.copies[at];
        let twofold = self.newest(mac).is_some_and(|newest| newest.sequence() > 0);
        let why = match (&copy.error, copy.whole()) {
            (Some(Error::Tampered(why) | Error::Unsupported(why)), _) => why.clone(),
            (Some(error), _) => error.to_string(),
            (None, Some(header)) if header.is_authentic(mac) => return None,
            (None, Some(_)) => "the header's fields or slots were changed".into(),
            (None, None) if at == 0 || twofold => "the header is missing".into(),
            (None, None) => return None,
        };
        Some(DamagedPlace { object: HEADER_OBJECTS[at].into(), bytes: 0..0, why })
    }
}

/// Reads both copies, in one trip unless one cannot be read; but for those that are known to be
/// unreadable. An outage between the two reads damages neither.
fn read_copies(store: &dyn Objects, unreadable: [bool; 2]) -> Result<[HeaderCopy; 2]> {
    if !store.capabilities().writes_over
        && unreadable == [false; 2]
        && let Some(copies) = read_unasked(store)
    {
        return Ok(copies);
    }
    let mut lens = match store.lens(&HEADER_OBJECTS) {
        Ok(lens) => [0, 1].map(|at| Ok(lens.get(at).copied().flatten())),
        Err(_) => HEADER_OBJECTS.map(|object| store.len(object)),
    };
    for (at, len) in lens.iter_mut().enumerate().filter(|(at, _)| unreadable[*at]) {
        *len = Err(StoreError::refused(HEADER_OBJECTS[at], "it cannot be read"));
    }
    let mut found = lens.map(|len| match len {
        Ok(Some(len)) if len > LONGEST => Ok(Some(Vec::new())),
        Ok(len) => Ok(len.map(|len| vec![0; len as usize])),
        Err(error) => Err(error),
    });
    let mut reads = Vec::new();
    for (object, found) in HEADER_OBJECTS.into_iter().zip(&mut found) {
        if let Ok(Some(buf)) = found {
            reads.push(ReadAt { object, offset: 0, buf });
        }
    }
    let together = reads.is_empty() || store.read(&mut reads).is_ok();
    let (mut at, mut outage) = (0, None);
    let copies = found.map(|copy| {
        let object = HEADER_OBJECTS[at];
        at += 1;
        match copy {
            Ok(Some(mut buf)) if !together => {
                let once = || store.read(&mut [ReadAt { object, offset: 0, buf: &mut buf }]);
                match read_place(once, || reads_any(store)) {
                    Ok(None) => HeaderCopy::of(Some(buf)),
                    Ok(Some(error)) => HeaderCopy::failed(error),
                    Err(error) if may_be_damage(&error) => {
                        outage = Some(error);
                        HeaderCopy::of(None)
                    }
                    Err(error) => HeaderCopy::failed(error),
                }
            }
            Ok(bytes) => HeaderCopy::of(bytes),
            Err(error) => HeaderCopy::failed(error),
        }
    });
    match outage {
        Some(error) => Err(error.into()),
        None => Ok(copies),
    }
}

/// Reads both copies of a store that is far away without asking for their lengths: nearly all
/// headers have the same. `None` if that does not do.
fn read_unasked(store: &dyn Objects) -> Option<[HeaderCopy; 2]> {
    let mut bufs = [(); 2].map(|()| vec![0; HEADER_BYTES]);
    let reads = HEADER_OBJECTS.into_iter().zip(&mut bufs);
    let mut reads: Vec<ReadAt<'_>> =
        reads.map(|(object, buf)| ReadAt { object, offset: 0, buf }).collect();
    store.read(&mut reads).ok()?;
    let copies = bufs.map(|buf| HeaderCopy::of(Some(buf)));
    // Another form has another length, and a longer one is none.
    copies.iter().all(|copy| copy.whole().is_some()).then_some(copies)
}

/// Whether any copy can be read.
fn reads_any(store: &dyn Objects) -> bool {
    let mut byte = [0];
    let mut reads = |object| store.read(&mut [ReadAt { object, offset: 0, buf: &mut byte }]);
    HEADER_OBJECTS.into_iter().any(|object| reads(object).is_ok())
}
