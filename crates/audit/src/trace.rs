//! What the storage was shown, and its text form.
//!
//! The text form has one JSON object per line. The first line is the header, each further line
//! one request:
//!
//! ```text
//! {"format":"oblivio-trace","version":3,"depth":10}
//! {"kind":"rule","depth":10,"rule":{"blocks":1024,"floor":10,"cached":62,"turn":0,
//!  "flush_at":512,"swept":0,"stored":[[1,2047]]}}
//! {"kind":"batch","at":1200,"leaves":[513,256],"scheduled":1,"sweep":false,"depth":10,"reads":18,
//!  "writes":11,"bytes_read":73728,"bytes_written":45056}
//! ```
//!
//! (each on one line). Version 1 did not say which leaves follow the schedule, version 2 by which
//! rule buckets are read and written.

use serde::{Deserialize, Serialize};

/// The name in a trace file's header.
const FORMAT: &str = "oblivio-trace";

/// The version of the text form.
const VERSION: u32 = 3;

/// The deepest tree a trace can be of: a leaf must fit 64 bits with one to spare.
pub const MAX_DEPTH: u32 = 63;

/// Everything the storage was shown, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The leaf level of the tree when the trace begins; the root is level 0.
    pub depth: u32,
    /// The requests, oldest first.
    pub requests: Vec<Request>,
}

/// What the storage was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Paths that were drawn, with those of the schedule that were due.
    #[default]
    Batch,
    /// As a batch and before it: the paths of position-map blocks that were not in memory.
    Map,
    /// Paths of the schedule alone.
    Maintenance,
    /// A record of written bytes.
    Sync,
    /// A part of what the next commit would write, ahead of it.
    Flush,
    /// A commit.
    Commit,
    /// Nothing of its own: by which public rule the next requests are made.
    Rule,
}

/// What says, with the leaves that are shown, which buckets are read and written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Addressable blocks, a power of two.
    pub blocks: u64,
    /// Slots of a bucket that is no leaf's; 0 where all have the same.
    #[serde(default, skip_serializing_if = "is_none")]
    pub slots: u32,
    /// Slots of a leaf's bucket; where the tree is becoming smaller, the most that one has.
    #[serde(default, skip_serializing_if = "is_none")]
    pub leaf_slots: u32,
    /// The leaf level that the size class asks for; a deeper tree is becoming smaller.
    pub floor: u32,
    /// Slots of a leaf's bucket that the size class asks for; a tree of the same depth with more is
    /// becoming smaller.
    #[serde(default, skip_serializing_if = "is_none")]
    pub floor_slots: u32,
    /// So many buckets, the first in heap order, are kept in memory once they were met.
    pub cached: u64,
    /// Bytes of a bucket with all its slots; 0 where only their number is judged.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bucket_bytes: u64,
    /// Bytes by which it is shorter for each slot that it lacks.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub slot_bytes: u64,
    /// Scheduled paths so far.
    pub turn: u64,
    /// When there were so many, a commit is due. Cached buckets whose path has no other turn before
    /// are written at once, the others with the commit.
    pub flush_at: u64,
    /// At the beginning of a session: scheduled paths since the leaf level began to be dropped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub swept: u64,
    /// At the beginning of a session, when nothing is in memory: the stored buckets, as runs of
    /// heap indices (the first of each, and how many).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<Vec<(u64, u64)>>,
    /// Then too: those of them that lack one slot, two and three, as runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacking: Vec<Vec<(u64, u64)>>,
}

fn is_none(number: &u32) -> bool {
    *number == 0
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// One request to the storage: a batch of paths, read and written back, or what goes between.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// What it was.
    #[serde(default)]
    pub kind: Kind,
    /// When it was done, in microseconds since the trace began.
    #[serde(default)]
    pub at: u64,
    /// The leaves whose paths were asked for, in the order shown, those that were drawn before
    /// those of a public schedule. A recorder that only sees the
    /// union of the paths must list the leaves in the order in which they were drawn: sorting
    /// them makes neighbours depend on each other.
    #[serde(default)]
    pub leaves: Vec<u64>,
    /// How many of them, the last, follow a public schedule.
    #[serde(default)]
    pub scheduled: usize,
    /// Whether the scheduled leaves are dropped and not written: the tree is becoming smaller.
    #[serde(default)]
    pub sweep: bool,
    /// The leaf level at the time; it may change along a trace.
    pub depth: u32,
    /// How many buckets were read.
    #[serde(default)]
    pub reads: u32,
    /// How many buckets were written.
    #[serde(default)]
    pub writes: u32,
    /// How many bytes were read.
    #[serde(default)]
    pub bytes_read: u64,
    /// How many bytes were written.
    #[serde(default)]
    pub bytes_written: u64,
    /// With [`Kind::Rule`], the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
}

/// Why a text is not a trace. Lines are counted from 1.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// There is nothing in it.
    #[error("the trace is empty; its first line must be a header with format \"{FORMAT}\"")]
    Empty,
    /// The header says it is something else.
    #[error("line {line}: this is {found:?}, not a trace (\"{FORMAT}\")")]
    Foreign {
        /// Where the header stands.
        line: usize,
        /// The format it names.
        found: String,
    },
    /// Another version than this program reads.
    #[error(
        "line {line}: trace version {found} is not known here (known: {VERSION}); record it \
             again with this program"
    )]
    Version {
        /// Where the header stands.
        line: usize,
        /// The version it names.
        found: u64,
    },
    /// A line that is no JSON, or not the JSON that belongs there.
    #[error("line {line}: {source}")]
    Json {
        /// The line.
        line: usize,
        /// What the JSON reader says.
        source: serde_json::Error,
    },
    /// A tree too deep to be real.
    #[error("line {line}: a tree of depth {depth} is deeper than {MAX_DEPTH}")]
    Depth {
        /// The line.
        line: usize,
        /// The depth it names.
        depth: u32,
    },
    /// More scheduled leaves than leaves.
    #[error("line {line}: more leaves follow the schedule than there are")]
    Scheduled {
        /// The line.
        line: usize,
    },
    /// A leaf that the tree does not have.
    #[error("line {line}: leaf {leaf} is outside a tree of depth {depth}")]
    Leaf {
        /// The line.
        line: usize,
        /// The leaf.
        leaf: u64,
        /// The depth of the tree at the time.
        depth: u32,
    },
}

/// The part of the header that every version shares; unknown fields are left to later versions.
#[derive(Deserialize)]
struct AnyHeader {
    format: String,
    version: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    version: u32,
    depth: u32,
}

impl Request {
    /// The leaves that were drawn, and those of the schedule.
    pub fn parts(&self) -> (&[u64], &[u64]) {
        self.leaves.split_at(self.leaves.len().saturating_sub(self.scheduled))
    }

    /// Whether this leaf is one of the tree's at the time of the request.
    pub fn has_leaf(&self, leaf: u64) -> bool {
        self.depth <= MAX_DEPTH && leaf >> self.depth == 0
    }
}

impl Trace {
    /// How many paths were asked for in all.
    pub fn accesses(&self) -> usize {
        self.requests.iter().map(|r| r.leaves.len()).sum()
    }

    /// The text form.
    pub fn to_text(&self) -> String {
        let header = Header { format: FORMAT.into(), version: VERSION, depth: self.depth };
        let mut text = json_line(&header);
        for request in &self.requests {
            text.push_str(&json_line(request));
        }
        text
    }

    /// Reads the text form. Blank lines are skipped.
    pub fn parse(text: &str) -> Result<Trace, TraceError> {
        let mut lines = text.lines().zip(1..).filter(|(l, _)| !l.trim().is_empty());
        let (first, line) = lines.next().ok_or(TraceError::Empty)?;
        let depth = parse_header(first, line)?;
        let requests = lines.map(|(l, n)| parse_request(l, n)).collect::<Result<_, _>>()?;
        Ok(Trace { depth, requests })
    }
}

fn json_line<T: Serialize>(value: &T) -> String {
    let mut line = serde_json::to_string(value).expect("numbers and ASCII always serialise");
    line.push('\n');
    line
}

fn parse_header(text: &str, line: usize) -> Result<u32, TraceError> {
    let json = |source| TraceError::Json { line, source };
    let any: AnyHeader = serde_json::from_str(text).map_err(json)?;
    if any.format != FORMAT {
        return Err(TraceError::Foreign { line, found: any.format });
    }
    // The version is judged before the rest: a newer header may have fields we do not know.
    if any.version != u64::from(VERSION) {
        return Err(TraceError::Version { line, found: any.version });
    }
    let header: Header = serde_json::from_str(text).map_err(json)?;
    check_depth(header.depth, line)
}

fn parse_request(text: &str, line: usize) -> Result<Request, TraceError> {
    let request: Request =
        serde_json::from_str(text).map_err(|source| TraceError::Json { line, source })?;
    let depth = check_depth(request.depth, line)?;
    check_depth(request.rule.as_ref().map_or(0, |rule| rule.floor), line)?;
    if request.scheduled > request.leaves.len() {
        return Err(TraceError::Scheduled { line });
    }
    match request.leaves.iter().find(|&&leaf| !request.has_leaf(leaf)) {
        Some(&leaf) => Err(TraceError::Leaf { line, leaf, depth }),
        None => Ok(request),
    }
}

fn check_depth(depth: u32, line: usize) -> Result<u32, TraceError> {
    if depth <= MAX_DEPTH { Ok(depth) } else { Err(TraceError::Depth { line, depth }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: &str = "{\"format\":\"oblivio-trace\",\"version\":3,\"depth\":3}\n";

    fn refusal(text: &str) -> String {
        Trace::parse(text).expect_err("must be refused").to_string()
    }

    #[test]
    fn errors_name_the_line() {
        let good = "{\"leaves\":[7],\"depth\":3,\"reads\":4,\"writes\":4,\"bytes_read\":4,\
                    \"bytes_written\":4}\n";
        assert!(refusal("").contains("empty"));
        assert!(refusal(&format!("{HEADER}{good}{{\"leaves\":[1\n")).starts_with("line 3:"));
        assert!(
            refusal(&format!("{HEADER}\n{}", good.replace("[7]", "[8]"))).starts_with("line 3:")
        );
        let deep = good.replace("\"depth\":3", "\"depth\":64");
        assert!(refusal(&format!("{HEADER}{deep}")).contains("line 2: a tree of depth 64"));
        assert!(refusal(good).starts_with("line 1:"));
    }

    #[test]
    fn foreign_and_other_files_are_refused() {
        let newer = "{\"format\":\"oblivio-trace\",\"version\":4,\"tree\":{\"depth\":3}}";
        assert!(refusal(newer).contains("version 4"));
        assert!(refusal("{\"format\":\"tar\",\"version\":1}").contains("\"tar\""));
    }

    prop_compose! {
        fn a_rule()(
            blocks in any::<u64>(), floor in 0..=MAX_DEPTH, cached in any::<u64>(),
            [slots, leaf_slots, floor_slots] in prop::array::uniform3(0u32..5),
            turn in any::<u64>(), flush_at in any::<u64>(), swept in 0u64..3,
            stored in prop::option::of(prop::collection::vec((any::<u64>(), any::<u64>()), 0..3)),
        ) -> Rule {
            Rule {
                blocks, slots, leaf_slots, floor, floor_slots, cached, bucket_bytes: turn / 2,
                slot_bytes: turn / 3, turn, flush_at, swept, lacking: stored.clone().into_iter().collect(),
                stored,
            }
        }
    }

    prop_compose! {
        fn a_request()(depth in 0u32..=MAX_DEPTH)(
            depth in Just(depth),
            leaves in prop::collection::vec(0..1u64 << depth, 0..4),
            reads in any::<u32>(), writes in any::<u32>(),
            bytes_read in any::<u64>(), bytes_written in any::<u64>(), at in any::<u64>(),
            scheduled in 0usize..4, sweep in any::<bool>(), rule in prop::option::of(a_rule()),
        ) -> Request {
            let kind = match (leaves.is_empty(), &rule) {
                (_, Some(_)) => Kind::Rule,
                (true, _) => Kind::Sync,
                (false, _) => Kind::Batch,
            };
            let scheduled = scheduled.min(leaves.len());
            Request {
                kind, at, leaves, scheduled, sweep, depth, reads, writes, bytes_read, bytes_written,
                rule,
            }
        }
    }

    proptest! {
        #[test]
        fn round_trip(depth in 0..=MAX_DEPTH, requests in prop::collection::vec(a_request(), 0..20)) {
            let trace = Trace { depth, requests };
            prop_assert_eq!(Trace::parse(&trace.to_text()).unwrap(), trace);
        }

        #[test]
        fn anything_parses_or_is_refused(text in ".{0,200}", tail in "[\\[\\]{}\",:0-9a-z\n]{0,80}") {
            let _ = Trace::parse(&text);
            let _ = Trace::parse(&format!("{HEADER}{tail}"));
        }

        #[test]
        fn a_damaged_byte_never_panics(
            requests in prop::collection::vec(a_request(), 1..4), at in any::<usize>(), to in 0u8..128,
        ) {
            let mut bytes = Trace { depth: 1, requests }.to_text().into_bytes();
            let at = at % bytes.len();
            bytes[at] = to;
            let _ = Trace::parse(std::str::from_utf8(&bytes).unwrap());
        }
    }
}
