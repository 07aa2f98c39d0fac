//! Many clients, one server that nobody trusts.
//!
//! Clients share only a key. One of them is the *scribe*: it puts all asks in order, reads what
//! they show, answers them and merges. The others are *followers*: they seal their asks for it and
//! open its answers. The server keeps records and tables, and adds up (exclusive or) the slots of
//! an ask, so one slot comes back for each. What it sees is the list of these records.
//!
//! An ask comes to the scribe's `admission`, which judges it by its session and by the head that it
//! names; `groups` holds it until its transaction is whole. From time to time the scribe writes its
//! state (`checkpoint`, `pieces`), and another client goes on from there ([`TakeOver`]).

mod admission;
mod answer;
mod ask;
mod chain;
mod checkpoint;
mod follower;
#[doc(hidden)]
pub mod fuzzing;
mod groups;
mod head;
mod history;
mod looks;
mod memory;
mod notice;
mod pieces;
mod public_rules;
mod records;
mod scribe;
mod serving;
mod sessions;
mod tables;
mod take_over;

pub use admission::Admitted;
pub use answer::{AskRefusal, Outcome};
pub use follower::Follower;
pub use head::Head;
pub use memory::{DutyReply, MemoryServer, Recorded, SavedState};
pub use notice::{NoticeContent, Notices};
pub use oblivio_privatefs::{
    Answer, Ask, Change, Compare, Does, MOST_ASKS, MOST_COMPARED, Session,
};
pub use public_rules::{MOST_OF_BATCH, MOST_SESSIONS, PIECE_BYTES};
pub use records::{
    AnswerRecord, AskRecord, BatchNumber, Build, DamagedSlot, Duty, Save, Seq, Show, SlotLook,
    StoredRecord, Switch, Tell, Term, TurnRecord,
};
pub use scribe::Scribe;
pub use tables::TableId;
pub use take_over::TakeOver;
