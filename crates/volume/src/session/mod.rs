//! Sessions of a volume in an online store, which several computers use, one at a time.
//!
//! No clock decides about safety, and nothing is ever locked:
//! - A session begins by one exclusive act: it claims the next number ([`claim`]). Claims stay.
//! - Only then it reads what the sessions before it stored ([`history`]). Where the newest one is
//!   looked for first, this computer knows, or a hint in the store says ([`hint`]).
//! - What it stores are entries in a chain ([`entry`]), each once, under names that no other
//!   session has ([`names`]).
//! - An entry is acknowledged when it is stored and no later session is seen *afterwards*. A later
//!   session then began after that look, and reads the entry. A session that sees a later one is
//!   over ([`writer`]).
//! - A session that ended by itself says so. Any other is asked for the volume before it is taken
//!   over: that is politeness, and nothing depends on it ([`others`]).
//! - A checkpoint is sent in its place in the chain, beside its objects. It is a commit once these
//!   are stored. Then it gets a [`pointer`] of its own. What it replaced is deleted after the
//!   pointer, and after a look.

mod ask;
mod claim;
mod entries;
mod entry;
mod hint;
mod history;
mod inspect;
mod names;
mod opening;
mod others;
mod planted;
mod pointer;
mod search;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_hints;
mod vault;
mod writer;

pub use ask::{found, lens, near};
pub use claim::{ClaimMode, Who};
pub use entry::{COMMIT, FIRST_KIND, Mark};
pub use history::{History, SearchStart};
pub use names::{SessionId, hex, is_object, is_of_session, stays};
pub use opening::SessionOpening;
pub use planted::Planted;
pub use vault::Vault;
pub use writer::OwnSession;
