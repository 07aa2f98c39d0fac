//! Many clients, one server that nobody trusts.
//!
//! Clients share only a key. One of them is the *scribe*: it puts all asks in order, reads what
//! they show, answers them and merges. The others are *followers*: they seal their asks for it and
//! open its answers. The server keeps records and tables, and adds up (exclusive or) the slots of
//! an ask, so one slot comes back for each. What it sees is the list of these records.

mod ask;
mod chain;
mod follower;
mod head;
mod history;
mod memory;
mod records;
mod scribe;

pub use ask::Ask;
pub use follower::Follower;
pub use head::Head;
pub use memory::{MemoryServer, Recorded, Reply};
pub use records::{
    AnswerRecord, AskRecord, Batch, Build, Duty, Seq, Session, Show, Stored, Switch, Tell, Term,
    TurnRecord,
};
pub use scribe::Scribe;
