//! The calls of a store, one by one, with the volume's statements about them; and the text form.
//!
//! This is the material of an audit. The calls are recorded at the store, so they are an
//! adversary's view. The volume's statements ([`RecordLine::Said`]) are the public rule of its
//! reads and writes, and the paths that it claims to have shown. [`crate::observer`] compares the
//! two, and so detects a volume whose statements are false.

mod text;

use crate::trace::{TraceRequest, is_false};
use serde::{Deserialize, Serialize};

pub use text::{Lines, RecordError, RecordWriter};

/// One line of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordLine {
    /// A session begins.
    Session(RecordedSession),
    /// Its volume, once the header was read.
    Volume(VolumeLine),
    /// A call of the store.
    Call(RecordedCall),
    /// The call of this number failed. Calls of a session are counted from 0.
    Failed(u64),
    /// A statement of the volume: the paths of the calls since its last statement, or its rule.
    Said(Box<TraceRequest>),
}

/// The public facts at the start of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedSession {
    /// Whether operations are padded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pad: bool,
    /// Accesses per second, at a constant pace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<u32>,
    /// Whether the user declared a restored backup. Paths after the backup may then be repeated.
    #[serde(default, skip_serializing_if = "is_false")]
    pub accept_rollback: bool,
}

/// The volume of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeLine {
    /// Its identity from the header.
    pub id: String,
    /// Its engine: `tree` or `sequential`.
    pub engine: String,
}

/// The kinds of calls.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum RecordedAct {
    /// Reads ranges.
    #[default]
    Read,
    /// Writes ranges.
    Write,
    /// Makes objects durable.
    Sync,
    /// Replaces a whole object.
    Put,
    /// Cuts or extends an object to a length.
    Truncate,
    /// Extends an object to a length and reserves its space.
    Allocate,
    /// Discards the content of ranges.
    Discard,
    /// Deletes objects.
    Delete,
    /// Queries the length of an object.
    Len,
    /// Lists all objects.
    List,
    /// Takes the right to write.
    Lock,
    /// Queries the free space.
    Free,
    /// Announces likely reads.
    ExpectReads,
    /// Sets the bytes that may be kept.
    MayKeep,
    /// Sets the multiple to which writes may be rounded up.
    MayRoundUp,
}

/// Ranges of one object and one length: the name, the length, and the start of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranges(pub String, pub u64, pub Vec<u64>);

/// One call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedCall {
    /// Its time, in microseconds since the record began.
    #[serde(default)]
    pub at: u64,
    /// The kind of call.
    pub act: RecordedAct,
    /// The ranges, in order. Consecutive ones of one object and one length are grouped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<Ranges>,
}

impl RecordedCall {
    /// A call without ranges.
    pub fn new(act: RecordedAct, at: u64) -> Self {
        RecordedCall { at, act, on: Vec::new() }
    }

    /// Adds a range.
    pub fn add(&mut self, object: &str, offset: u64, len: u64) {
        match self.on.last_mut() {
            Some(last) if last.0 == object && last.1 == len => last.2.push(offset),
            _ => self.on.push(Ranges(object.into(), len, vec![offset])),
        }
    }

    /// The same with one more range.
    pub fn with(mut self, object: &str, offset: u64, len: u64) -> Self {
        self.add(object, offset, len);
        self
    }

    /// The ranges one by one: object, offset, length.
    pub fn ranges(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        self.on.iter().flat_map(|Ranges(object, len, offsets)| {
            offsets.iter().map(move |&offset| (object.as_str(), offset, *len))
        })
    }
}
