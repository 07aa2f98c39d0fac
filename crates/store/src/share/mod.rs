//! [`Share`]: a volume of many clients, at a server that nobody trusts.
//!
//! Clients send asks, one of them (the scribe) puts them in order, and the server keeps the
//! history, the tables and nothing else: it has no key. All that it sees passes this port. What
//! keeps volumes is the crate `oblivio-share`: the port is here, so that a client knows no server
//! and no line to one.

mod call;
mod codec;
mod error;
mod ids;
mod limits;
mod port;
mod records;

pub use call::{ShareCall, ShareReply};
pub use codec::{decode, encode};
pub use error::{Result, ShareError};
pub use ids::{
    Arrival, AskId, AskNumber, ClientSession, Number, Object, ScribeTerm, ServerSpot, ServerTable,
};
pub use limits::{
    MOST_ANSWERS, MOST_ASK_BYTES, MOST_ENTRY_BYTES, MOST_FETCHES, MOST_HEAD_BYTES,
    MOST_HEADER_BYTES, MOST_OF_SESSION, MOST_PENDING, MOST_PIECE_BYTES, MOST_READ_BYTES,
    MOST_SLOT_BYTES, MOST_SPOTS,
};
pub use port::{LEASE, Share, ShareClock};
pub use records::{
    Checkpoint, Fetch, HistoryEntry, SealedAnswer, SealedAsk, SealedNotice, SealedShow,
    SealedSwitch, SealedTell, ShareParameters, Status, StoredEntry,
};
