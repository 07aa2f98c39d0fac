//! What a store was asked, call by call, beside what the volume says of it; and its text form.
//!
//! This is the material of an audit. The calls are taken at the store, so they are what an
//! adversary has; what the volume says ([`Line::Said`]) is the public rule by which it reads and
//! writes, and the paths that it claims to have shown. [`crate::sight`] holds the two against each
//! other: a volume that says something else than it does is found.

mod text;

use crate::trace::Request;
use serde::{Deserialize, Serialize};

pub use text::{Lines, RecordError, Writer};

/// One line of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// A session begins.
    Session(Session),
    /// Which volume it is of, once its header was read.
    Volume(VolumeLine),
    /// The store was asked for something.
    Call(Call),
    /// The call of this number failed. Calls of a session are counted from 0.
    Failed(u64),
    /// What the volume says: what it showed with the calls since it said something last, or its
    /// rule.
    Said(Box<Request>),
}

/// What is public of a session from its beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// Whether operations are padded.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pad: bool,
    /// Accesses a second, at a constant pace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<u32>,
    /// Whether the user said that a backup was restored: then what came after it may be shown
    /// again.
    #[serde(default, skip_serializing_if = "is_false")]
    pub accept_rollback: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// Which volume a session is of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeLine {
    /// Its identity, which stands in the header.
    pub id: String,
    /// Its engine: `tree` or `sequential`.
    pub engine: String,
}

/// What a store can be asked.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Ranges are read.
    #[default]
    Read,
    /// Ranges are written.
    Write,
    /// Objects are made durable.
    Sync,
    /// A whole object is replaced.
    Put,
    /// An object is cut to a length, or extended.
    Truncate,
    /// An object is made so long, with space for all of it.
    Allocate,
    /// What is in ranges is not wanted any more.
    Discard,
    /// Objects are deleted.
    Delete,
    /// The length of an object is asked for.
    Len,
    /// All objects are listed.
    List,
    /// The right to write is taken.
    Lock,
    /// The free space is asked for.
    Free,
    /// Ranges are likely to be read soon.
    ExpectReads,
    /// So many bytes may be kept.
    MayKeep,
    /// Writes may be rounded up to so many bytes.
    MayRoundUp,
}

/// Ranges of one object and one length: its name, the length, where each begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranges(pub String, pub u64, pub Vec<u64>);

/// One call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// When it came, in microseconds since the record began.
    #[serde(default)]
    pub at: u64,
    /// What was asked.
    pub act: Act,
    /// Of which ranges, in order; neighbours of one object and one length are together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<Ranges>,
}

impl Call {
    /// A call about nothing yet.
    pub fn new(act: Act, at: u64) -> Self {
        Call { at, act, on: Vec::new() }
    }

    /// Adds a range.
    pub fn add(&mut self, object: &str, offset: u64, len: u64) {
        match self.on.last_mut() {
            Some(last) if last.0 == object && last.1 == len => last.2.push(offset),
            _ => self.on.push(Ranges(object.into(), len, vec![offset])),
        }
    }

    /// The same with a range more.
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
