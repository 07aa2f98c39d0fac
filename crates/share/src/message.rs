//! What stands in frames: who a client is, its calls, their replies and failures.

use crate::frame::{Frame, FrameKind};
use oblivio_store::StoreError;
use oblivio_store::share::{
    Arrival, AskId, AskNumber, Checkpoint, ClientSession, HistoryEntry, Number, Object, Result,
    ScribeTerm, SealedAnswer, SealedAsk, SealedNotice, ServerSpot, ShareCall, ShareError,
    ShareParameters, ShareReply, Status, StoredEntry, decode, encode,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io;
use std::time::Duration;

/// The version of the protocol.
pub const VERSION: u32 = 2;

/// What a connection is for: merges must not hold up asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lane {
    /// Asks, answers, batches.
    Foreground,
    /// Tables, checkpoints, old records.
    Bulk,
}

/// The first frame of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`VERSION`].
    pub version: u32,
    /// The volume's name.
    pub volume: String,
    /// The device's secret.
    pub secret: [u8; 32],
    /// What the connection is for.
    pub lane: Lane,
}

#[derive(Serialize, Deserialize)]
enum CallHead {
    Parameters,
    PutParameters { after: u64, slot_bytes: u32 },
    Ask(Vec<(AskId, u32)>),
    Answers { session: ClientSession, from: AskNumber, wait: Duration },
    Notices { from: Number, wait: Duration },
    Claim { previous: ScribeTerm },
    Renew(ScribeTerm),
    Release(ScribeTerm),
    Asks { term: ScribeTerm, from: Arrival, wait: Duration },
    Append { term: ScribeTerm, number: Number },
    Durable { term: ScribeTerm, number: Number },
    Sums { term: ScribeTerm, number: Number },
    Refuse { term: ScribeTerm, answers: Vec<(AskId, u32)> },
    Slots { term: ScribeTerm, after: Number, spots: Vec<ServerSpot> },
    Upload { term: ScribeTerm, object: Object, offset: u64 },
    Finish { term: ScribeTerm, object: Object, len: u64 },
    Save { term: ScribeTerm, at: Number, keep_from: Number },
    Records { from: Number, most_bytes: u64, wait: Duration },
    Checkpoint,
    ReadCheckpoint { at: Number, offset: u64, len: u64 },
    Status,
}

/// A call that came in a frame, with what it needs.
pub struct CallRequest<'b> {
    head: CallHead,
    body: Cow<'b, [u8]>,
    asks: Vec<SealedAsk>,
    answers: Vec<SealedAnswer>,
    entry: Option<HistoryEntry>,
}

/// A record's number and length, and its asks with their lengths.
type RecordHead = (Number, u32, Vec<(AskId, u32)>);

#[derive(Serialize, Deserialize)]
enum ReplyHead {
    Done,
    Parameters(Option<ShareParameters>),
    Version(u64),
    Answers(Vec<(AskId, u32)>),
    Notices(Vec<(Number, u32)>),
    Term(ScribeTerm),
    Asks(Vec<(AskId, u32)>, Arrival),
    Bytes,
    Records(Vec<RecordHead>),
    Checkpoint(Option<Checkpoint>),
    Status(Status),
}

#[derive(Serialize, Deserialize)]
enum FailureHead {
    Superseded(ScribeTerm),
    Held { term: ScribeTerm, left: Duration },
    Gap(Number),
    Differs(Number),
    OtherAsk(AskId),
    NoAsk(AskId),
    NoObject(Object),
    Gone(Number),
    Version(u64),
    NotMade,
    Quota,
    Busy,
    Invalid(String),
    Denied(String),
    Full,
    Storage(String),
}

/// The most slots that a call names.
const MOST_SLOTS: usize = 65_536;

const BAD: ShareError = ShareError::invalid("a frame that makes no sense");

/// A head as bytes.
pub fn pack(head: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(head).unwrap_or_default()
}

/// Reads a head. All bytes must belong to it.
///
/// # Errors
/// `Invalid` for anything else.
pub fn unpack<T: DeserializeOwned>(head: &[u8]) -> Result<T> {
    match postcard::take_from_bytes(head) {
        Ok((value, [])) => Ok(value),
        _ => Err(BAD),
    }
}

/// Takes parts off a body, which must end with the last one.
struct Parts<'b>(&'b [u8]);

impl Parts<'_> {
    fn take(&mut self, len: u32) -> Result<Vec<u8>> {
        let (part, rest) = self.0.split_at_checked(len as usize).ok_or(BAD)?;
        self.0 = rest;
        Ok(part.to_vec())
    }

    fn asks(&mut self, lens: Vec<(AskId, u32)>) -> Result<Vec<SealedAsk>> {
        lens.into_iter().map(|(id, len)| Ok(SealedAsk { id, sealed: self.take(len)? })).collect()
    }

    fn end(&self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(BAD) }
    }
}

fn lens(asks: &[SealedAsk]) -> Vec<(AskId, u32)> {
    asks.iter().map(|ask| (ask.id, ask.sealed.len() as u32)).collect()
}

fn bodies(asks: &[SealedAsk]) -> Vec<u8> {
    asks.iter().map(|ask| &*ask.sealed).collect::<Vec<_>>().concat()
}

// Both have a name and sealed bytes, and go over the line alike.
fn as_ask(answer: SealedAnswer) -> SealedAsk {
    SealedAsk { id: answer.id, sealed: answer.sealed }
}

fn as_answer(ask: SealedAsk) -> SealedAnswer {
    SealedAnswer { id: ask.id, sealed: ask.sealed }
}

/// The frame of a call.
#[must_use]
pub fn call_frame<'b>(number: u64, call: &ShareCall<'b>) -> Frame<'b> {
    let none = || Cow::Borrowed(&[][..]);
    let (head, body) = match *call {
        ShareCall::Parameters => (CallHead::Parameters, none()),
        ShareCall::PutParameters { after, slot_bytes, header } => {
            (CallHead::PutParameters { after, slot_bytes }, header.into())
        }
        ShareCall::Ask(asks) => (CallHead::Ask(lens(asks)), bodies(asks).into()),
        ShareCall::Answers { session, from, wait } => {
            (CallHead::Answers { session, from, wait }, none())
        }
        ShareCall::Notices { from, wait } => (CallHead::Notices { from, wait }, none()),
        ShareCall::Claim { previous } => (CallHead::Claim { previous }, none()),
        ShareCall::Renew(term) => (CallHead::Renew(term), none()),
        ShareCall::Release(term) => (CallHead::Release(term), none()),
        ShareCall::Asks { term, from, wait } => (CallHead::Asks { term, from, wait }, none()),
        ShareCall::Append { term, number, entry } => {
            (CallHead::Append { term, number }, encode(entry).into())
        }
        ShareCall::Durable { term, number } => (CallHead::Durable { term, number }, none()),
        ShareCall::Sums { term, number } => (CallHead::Sums { term, number }, none()),
        ShareCall::Refuse { term, answers } => {
            let asks: Vec<SealedAsk> = answers.iter().cloned().map(as_ask).collect();
            (CallHead::Refuse { term, answers: lens(&asks) }, bodies(&asks).into())
        }
        ShareCall::Slots { term, after, spots } => {
            (CallHead::Slots { term, after, spots: spots.to_vec() }, none())
        }
        ShareCall::Upload { term, object, offset, piece } => {
            (CallHead::Upload { term, object, offset }, piece.into())
        }
        ShareCall::Finish { term, object, len } => (CallHead::Finish { term, object, len }, none()),
        ShareCall::Save { term, at, keep_from } => (CallHead::Save { term, at, keep_from }, none()),
        ShareCall::Records { from, most_bytes, wait } => {
            (CallHead::Records { from, most_bytes: most_bytes as u64, wait }, none())
        }
        ShareCall::Checkpoint => (CallHead::Checkpoint, none()),
        ShareCall::ReadCheckpoint { at, offset, len } => {
            (CallHead::ReadCheckpoint { at, offset, len: len as u64 }, none())
        }
        ShareCall::Status => (CallHead::Status, none()),
    };
    Frame { kind: FrameKind::Call, number, head: pack(&head), body }
}

impl<'b> CallRequest<'b> {
    /// Reads a call.
    ///
    /// # Errors
    /// `Invalid` for what is none.
    pub fn read(frame: Frame<'b>) -> Result<Self> {
        let Frame { kind, head, body, .. } = frame;
        let mut head: CallHead = unpack(&head)?;
        let (mut asks, mut answers, mut entry) = (Vec::new(), Vec::new(), None);
        let mut parts = Parts(&body);
        match &mut head {
            CallHead::Ask(lens) => {
                asks = parts.asks(std::mem::take(lens))?;
                parts.end()?;
            }
            CallHead::Refuse { answers: lens, .. } => {
                let came = parts.asks(std::mem::take(lens))?;
                answers = came.into_iter().map(as_answer).collect();
                parts.end()?;
            }
            CallHead::Append { .. } => entry = Some(decode(&body)?),
            CallHead::PutParameters { .. } | CallHead::Upload { .. } => {}
            CallHead::Slots { spots, .. } if spots.len() > MOST_SLOTS => return Err(BAD),
            _ => parts.end()?,
        }
        if kind == FrameKind::Call {
            Ok(Self { head, body, asks, answers, entry })
        } else {
            Err(BAD)
        }
    }

    /// The call. Waits are at most this long.
    #[must_use]
    pub fn call(&self, longest: Duration) -> ShareCall<'_> {
        match &self.head {
            CallHead::Parameters => ShareCall::Parameters,
            CallHead::PutParameters { after, slot_bytes } => ShareCall::PutParameters {
                after: *after,
                slot_bytes: *slot_bytes,
                header: &self.body,
            },
            CallHead::Ask(_) => ShareCall::Ask(&self.asks),
            &CallHead::Answers { session, from, wait } => {
                ShareCall::Answers { session, from, wait: wait.min(longest) }
            }
            &CallHead::Notices { from, wait } => {
                ShareCall::Notices { from, wait: wait.min(longest) }
            }
            CallHead::Claim { previous } => ShareCall::Claim { previous: *previous },
            CallHead::Renew(term) => ShareCall::Renew(*term),
            CallHead::Release(term) => ShareCall::Release(*term),
            &CallHead::Asks { term, from, wait } => {
                ShareCall::Asks { term, from, wait: wait.min(longest) }
            }
            &CallHead::Append { term, number } => match &self.entry {
                Some(entry) => ShareCall::Append { term, number, entry },
                None => ShareCall::Status,
            },
            &CallHead::Durable { term, number } => ShareCall::Durable { term, number },
            &CallHead::Sums { term, number } => ShareCall::Sums { term, number },
            CallHead::Refuse { term, .. } => {
                ShareCall::Refuse { term: *term, answers: &self.answers }
            }
            CallHead::Slots { term, after, spots } => {
                ShareCall::Slots { term: *term, after: *after, spots }
            }
            &CallHead::Upload { term, object, offset } => {
                ShareCall::Upload { term, object, offset, piece: &self.body }
            }
            &CallHead::Finish { term, object, len } => ShareCall::Finish { term, object, len },
            &CallHead::Save { term, at, keep_from } => ShareCall::Save { term, at, keep_from },
            &CallHead::Records { from, most_bytes, wait } => {
                let most_bytes = usize::try_from(most_bytes).unwrap_or(usize::MAX);
                ShareCall::Records { from, most_bytes, wait: wait.min(longest) }
            }
            CallHead::Checkpoint => ShareCall::Checkpoint,
            &CallHead::ReadCheckpoint { at, offset, len } => {
                let len = usize::try_from(len).unwrap_or(usize::MAX);
                ShareCall::ReadCheckpoint { at, offset, len }
            }
            CallHead::Status => ShareCall::Status,
        }
    }
}

/// The frame of what a call returned.
#[must_use]
pub fn reply_frame(number: u64, done: Result<ShareReply>) -> Frame<'static> {
    let none = Vec::new;
    let (head, body) = match done {
        Err(error) => {
            let body = none().into();
            return Frame { kind: FrameKind::Failure, number, head: failure(&error), body };
        }
        Ok(ShareReply::Done) => (ReplyHead::Done, none()),
        Ok(ShareReply::Parameters(parameters)) => (ReplyHead::Parameters(parameters), none()),
        Ok(ShareReply::Version(version)) => (ReplyHead::Version(version), none()),
        Ok(ShareReply::Answers(answers)) => {
            let asks: Vec<SealedAsk> = answers.into_iter().map(as_ask).collect();
            (ReplyHead::Answers(lens(&asks)), bodies(&asks))
        }
        Ok(ShareReply::Notices(notices)) => {
            let lens = notices.iter().map(|it| (it.number, it.sealed.len() as u32)).collect();
            let body = notices.iter().map(|it| &*it.sealed).collect::<Vec<_>>().concat();
            (ReplyHead::Notices(lens), body)
        }
        Ok(ShareReply::Term(term)) => (ReplyHead::Term(term), none()),
        Ok(ShareReply::Asks(asks, next)) => (ReplyHead::Asks(lens(&asks), next), bodies(&asks)),
        Ok(ShareReply::Bytes(bytes)) => (ReplyHead::Bytes, bytes),
        Ok(ShareReply::Records(records)) => {
            let mut body = Vec::new();
            let mut head = Vec::new();
            for record in records {
                body.extend_from_slice(&record.sealed);
                body.extend(bodies(&record.asks));
                head.push((record.number, record.sealed.len() as u32, lens(&record.asks)));
            }
            (ReplyHead::Records(head), body)
        }
        Ok(ShareReply::Checkpoint(checkpoint)) => (ReplyHead::Checkpoint(checkpoint), none()),
        Ok(ShareReply::Status(status)) => (ReplyHead::Status(status), none()),
    };
    Frame { kind: FrameKind::Reply, number, head: pack(&head), body: body.into() }
}

/// What a frame says that a call returned.
///
/// # Errors
/// The call's; `Invalid` for what is no reply.
pub fn read_reply(frame: Frame<'_>) -> Result<ShareReply> {
    match frame.kind {
        FrameKind::Failure => return Err(read_failure(&frame.head)),
        FrameKind::Reply | FrameKind::Part => {}
        _ => return Err(BAD),
    }
    let mut parts = Parts(&frame.body);
    let reply = match unpack(&frame.head)? {
        ReplyHead::Done => ShareReply::Done,
        ReplyHead::Parameters(parameters) => ShareReply::Parameters(parameters),
        ReplyHead::Version(version) => ShareReply::Version(version),
        ReplyHead::Answers(lens) => {
            let asks = parts.asks(lens)?.into_iter();
            ShareReply::Answers(asks.map(as_answer).collect())
        }
        ReplyHead::Notices(lens) => {
            let read = |(number, len)| Ok(SealedNotice { number, sealed: parts.take(len)? });
            ShareReply::Notices(lens.into_iter().map(read).collect::<Result<_>>()?)
        }
        ReplyHead::Term(term) => ShareReply::Term(term),
        ReplyHead::Asks(lens, next) => ShareReply::Asks(parts.asks(lens)?, next),
        ReplyHead::Bytes => return Ok(ShareReply::Bytes(frame.body.into_owned())),
        ReplyHead::Records(records) => {
            let read = |(number, len, lens)| {
                Ok(StoredEntry { number, sealed: parts.take(len)?, asks: parts.asks(lens)? })
            };
            ShareReply::Records(records.into_iter().map(read).collect::<Result<_>>()?)
        }
        ReplyHead::Checkpoint(checkpoint) => ShareReply::Checkpoint(checkpoint),
        ReplyHead::Status(status) => ShareReply::Status(status),
    };
    parts.end()?;
    Ok(reply)
}

fn failure(error: &ShareError) -> Vec<u8> {
    use ShareError as E;
    pack(&match error {
        E::Superseded(term) => FailureHead::Superseded(*term),
        &E::Held { term, left } => FailureHead::Held { term, left },
        E::Gap(number) => FailureHead::Gap(*number),
        E::Differs(number) => FailureHead::Differs(*number),
        E::OtherAsk(id) => FailureHead::OtherAsk(*id),
        E::NoAsk(id) => FailureHead::NoAsk(*id),
        E::NoObject(object) => FailureHead::NoObject(*object),
        E::Gone(number) => FailureHead::Gone(*number),
        E::Version(version) => FailureHead::Version(*version),
        E::NotMade => FailureHead::NotMade,
        E::Quota => FailureHead::Quota,
        E::Busy => FailureHead::Busy,
        E::Invalid(why) => FailureHead::Invalid(why.to_string()),
        E::Denied(why) => FailureHead::Denied(why.clone()),
        E::Store(StoreError::Full) => FailureHead::Full,
        E::Line(error) => FailureHead::Storage(error.to_string()),
        // Details, such as paths, are the server's own.
        E::Store(_) => FailureHead::Storage("the server's storage failed".into()),
    })
}

/// What a failure says.
pub fn read_failure(head: &[u8]) -> ShareError {
    use ShareError as E;
    match unpack(head) {
        Err(error) => error,
        Ok(FailureHead::Superseded(term)) => E::Superseded(term),
        Ok(FailureHead::Held { term, left }) => E::Held { term, left },
        Ok(FailureHead::Gap(number)) => E::Gap(number),
        Ok(FailureHead::Differs(number)) => E::Differs(number),
        Ok(FailureHead::OtherAsk(id)) => E::OtherAsk(id),
        Ok(FailureHead::NoAsk(id)) => E::NoAsk(id),
        Ok(FailureHead::NoObject(object)) => E::NoObject(object),
        Ok(FailureHead::Gone(number)) => E::Gone(number),
        Ok(FailureHead::Version(version)) => E::Version(version),
        Ok(FailureHead::NotMade) => E::NotMade,
        Ok(FailureHead::Quota) => E::Quota,
        Ok(FailureHead::Busy) => E::Busy,
        Ok(FailureHead::Invalid(why)) => E::Invalid(why.into()),
        Ok(FailureHead::Denied(why)) => E::Denied(why),
        Ok(FailureHead::Full) => E::Store(StoreError::Full),
        Ok(FailureHead::Storage(why)) => E::Store(StoreError::io("server", io::Error::other(why))),
    }
}
