//! The text form of a record: one JSON object per line, so that it can be streamed.
//!
//! docs/audits.md describes the format. A header comes first, and again where another record was
//! appended.

use super::RecordLine;
use crate::trace::{MAX_DEPTH, TraceRequest};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Write};

/// The name in a header.
const FORMAT: &str = "oblivio-trace";
/// The version of the text form.
const VERSION: u32 = 4;

/// The reason why a text is no record. Lines are counted from 1.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It is empty.
    #[error("the trace is empty; its first line must be a header with format \"{FORMAT}\"")]
    Empty,
    /// The header names another format.
    #[error("line {line}: this is {found:?}, not a trace (\"{FORMAT}\")")]
    Foreign {
        /// The line of the header.
        line: usize,
        /// The format it names.
        found: String,
    },
    /// A version that this program does not read.
    #[error(
        "line {line}: trace version {found} is not known here (known: {VERSION}). Before version 4 a \
         trace was what the volume said of itself, not what its store saw; record it again with this \
         program"
    )]
    Version {
        /// The line of the header.
        line: usize,
        /// The version it names.
        found: u64,
    },
    /// A line that is no JSON, or the wrong JSON.
    #[error("line {line}: {source}")]
    Json {
        /// The line.
        line: usize,
        /// The JSON reader's error.
        source: serde_json::Error,
    },
    /// A line whose content is impossible.
    #[error("line {line}: {why}")]
    Nonsense {
        /// The line.
        line: usize,
        /// The fault.
        why: String,
    },
    /// The file cannot be read.
    #[error("line {line}: {source}")]
    Io {
        /// The line.
        line: usize,
        /// The system's error.
        source: std::io::Error,
    },
}

/// The header fields of every version. Later versions may add others.
#[derive(Deserialize)]
struct AnyHeader {
    format: String,
    version: u64,
}

#[derive(Serialize)]
struct Header {
    format: &'static str,
    version: u32,
}

/// Writes a record, line by line.
#[derive(Debug)]
pub struct RecordWriter<W: Write> {
    out: W,
}

impl<W: Write> RecordWriter<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(mut out: W) -> std::io::Result<Self> {
        write_line(&mut out, &Header { format: FORMAT, version: VERSION })?;
        Ok(Self { out })
    }

    /// Appends a line.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&mut self, line: &RecordLine) -> std::io::Result<()> {
        write_line(&mut self.out, line)
    }

    /// Flushes the output.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }

    /// The output.
    pub fn into_inner(self) -> W {
        self.out
    }
}

fn write_line<W: Write, T: Serialize>(out: &mut W, value: &T) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

/// Reads a record line by line; blank ones are skipped.
#[derive(Debug)]
pub struct Lines<R> {
    input: R,
    buffer: String,
    line: usize,
    begun: bool,
}

impl<R: BufRead> Lines<R> {
    /// The lines of `input`.
    pub fn new(input: R) -> Self {
        Lines { input, buffer: String::new(), line: 0, begun: false }
    }

    /// The next line that is not blank; false at the end.
    fn advance(&mut self) -> Result<bool, RecordError> {
        loop {
            self.line += 1;
            self.buffer.clear();
            let line = self.line;
            let read = self.input.read_line(&mut self.buffer);
            if read.map_err(|source| RecordError::Io { line, source })? == 0 {
                return if self.begun { Ok(false) } else { Err(RecordError::Empty) };
            }
            if !self.buffer.trim().is_empty() {
                return Ok(true);
            }
        }
    }

    fn parse(&mut self) -> Result<Option<RecordLine>, RecordError> {
        let line = self.line;
        let json = |source| RecordError::Json { line, source };
        // Only a header begins like this, because only this program's writer makes lines.
        if !self.begun || self.buffer.starts_with("{\"format\"") {
            check_header(serde_json::from_str(&self.buffer).map_err(json)?, line)?;
            self.begun = true;
            return Ok(None);
        }
        let parsed: RecordLine = serde_json::from_str(&self.buffer).map_err(json)?;
        if let RecordLine::Said(said) = &parsed {
            check(said).map_err(|why| RecordError::Nonsense { line, why })?;
        }
        Ok(Some(parsed))
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<RecordLine, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.advance() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
            match self.parse() {
                Ok(None) => {}
                Ok(Some(line)) => return Some(Ok(line)),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

fn check_header(header: AnyHeader, line: usize) -> Result<(), RecordError> {
    if header.format != FORMAT {
        return Err(RecordError::Foreign { line, found: header.format });
    }
    if header.version != u64::from(VERSION) {
        return Err(RecordError::Version { line, found: header.version });
    }
    Ok(())
}

/// Checks every statement of a volume, whatever it did.
fn check(said: &TraceRequest) -> Result<(), String> {
    let floor = said.rule.as_ref().map_or(0, |rule| rule.floor);
    let depth = said.depth.max(floor);
    if depth > MAX_DEPTH {
        return Err(format!("a tree of depth {depth} is deeper than {MAX_DEPTH}"));
    }
    if said.scheduled > said.leaves.len() {
        return Err("more leaves follow the schedule than there are".into());
    }
    match said.leaves.iter().find(|&&leaf| !said.has_leaf(leaf)) {
        Some(leaf) => Err(format!("leaf {leaf} is outside a tree of depth {}", said.depth)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{RecordedAct, RecordedCall, RecordedSession, VolumeLine};
    use crate::trace::{RequestKind, TraceRule};
    use proptest::prelude::*;

    const HEADER: &str = "{\"format\":\"oblivio-trace\",\"version\":4}\n";

    fn read(text: &str) -> Result<Vec<RecordLine>, RecordError> {
        Lines::new(text.as_bytes()).collect()
    }

    fn written(lines: &[RecordLine]) -> String {
        let mut writer = RecordWriter::new(Vec::new()).expect("memory");
        lines.iter().for_each(|line| writer.write(line).expect("memory"));
        String::from_utf8(writer.into_inner()).expect("JSON")
    }

    fn refusal(text: &str) -> String {
        read(text).expect_err("must be refused").to_string()
    }

    #[test]
    fn errors_name_the_line_and_old_traces_are_refused() {
        assert!(refusal("").contains("empty"));
        assert!(refusal(&format!("{HEADER}{{\"failed\":")).starts_with("line 2:"));
        let said = |more: &str| format!("{HEADER}\n{{\"said\":{{\"depth\":3,{more}}}}}");
        assert!(read(&said("\"leaves\":[7]")).is_ok());
        assert!(refusal(&said("\"leaves\":[8]")).contains("line 3: leaf 8"));
        assert!(refusal(&said("\"scheduled\":1")).contains("follow the schedule"));
        assert!(refusal(&said("\"depth\":64")).starts_with("line 3:"));
        let old = "{\"format\":\"oblivio-trace\",\"version\":3,\"depth\":3}";
        assert!(refusal(old).contains("version 3") && refusal(old).contains("record it again"));
        assert!(refusal("{\"format\":\"tar\",\"version\":4}").contains("\"tar\""));
    }

    #[test]
    fn records_can_be_appended_to_each_other() {
        let one =
            written(&[RecordLine::Session(RecordedSession::default()), RecordLine::Failed(3)]);
        assert_eq!(read(&format!("{one}{one}")).expect("two").len(), 4);
    }

    prop_compose! {
        fn a_call()(
            at in any::<u64>(), act in prop_oneof![Just(RecordedAct::Read), Just(RecordedAct::MayRoundUp)],
            ranges in prop::collection::vec((0usize..3, any::<u64>(), 0u64..3), 0..9),
        ) -> RecordedCall {
            let name = |at: usize| ["slab", "journal", ""][at];
            ranges.iter().fold(RecordedCall::new(act, at), |call, &(object, offset, len)| {
                call.with(name(object), offset, len)
            })
        }
    }

    fn a_line() -> impl Strategy<Value = RecordLine> {
        let said = |leaves: Vec<u64>| {
            let rule = leaves.first().map(|&turn| TraceRule { turn, ..TraceRule::default() });
            let kind = if rule.is_some() { RequestKind::Rule } else { RequestKind::Batch };
            RecordLine::Said(Box::new(TraceRequest {
                kind,
                depth: 9,
                leaves,
                rule,
                ..TraceRequest::default()
            }))
        };
        prop_oneof![
            a_call().prop_map(RecordLine::Call),
            any::<u64>().prop_map(RecordLine::Failed),
            prop::collection::vec(0u64..512, 0..4).prop_map(said),
            (any::<bool>(), prop::option::of(any::<u32>())).prop_map(|(flag, pace)| {
                RecordLine::Session(RecordedSession { pad: flag, pace, accept_rollback: !flag })
            }),
            "[a-f0-9]{0,8}"
                .prop_map(|id| { RecordLine::Volume(VolumeLine { id, engine: "tree".into() }) }),
        ]
    }

    proptest! {
        #[test]
        fn round_trip(lines in prop::collection::vec(a_line(), 0..20)) {
            prop_assert_eq!(read(&written(&lines)).expect("as written"), lines);
        }

        #[test]
        fn ranges_stay_in_order(call in a_call()) {
            let all: Vec<_> = call.ranges().map(|(o, at, len)| (o.to_owned(), at, len)).collect();
            let mut again = RecordedCall::new(call.act, call.at);
            all.iter().for_each(|(object, at, len)| again.add(object, *at, *len));
            prop_assert_eq!(again, call);
        }

        #[test]
        fn anything_parses_or_is_refused(text in ".{0,200}", tail in "[\\[\\]{}\",:0-9a-z\n]{0,80}") {
            let _ = read(&text);
            let _ = read(&format!("{HEADER}{tail}"));
        }

        #[test]
        fn a_damaged_byte_never_panics(
            lines in prop::collection::vec(a_line(), 1..4), at in any::<usize>(), to in 0u8..128,
        ) {
            let mut bytes = written(&lines).into_bytes();
            let at = at % bytes.len();
            bytes[at] = to;
            let _ = read(std::str::from_utf8(&bytes).expect("ASCII"));
        }
    }
}
