//! What reads bytes of strangers, for the fuzz targets.

use crate::frame::{Frame, FrameKind, KINDS, MOST_FRAME};
use crate::message::{
    CallRequest, Hello, Lane, VERSION, call_frame, pack, read_failure, read_reply, reply_frame,
    unpack,
};
use oblivio_store::share::{
    Arrival, AskId, AskNumber, Checkpoint, ClientSession, Fetch, HistoryEntry, Number, Object,
    ScribeTerm, SealedAnswer, SealedAsk, SealedNotice, SealedShow, ServerSpot, ServerTable,
    ShareCall, ShareError, ShareParameters, ShareReply, Status, StoredEntry,
};
use std::borrow::Cow;
use std::time::Duration;

/// The longest wait of a call.
const LONGEST: Duration = Duration::from_secs(1);

/// Reads the frames of a line, as both sides do. A call that is understood means the same once it
/// was sent again, and so does a reply.
///
/// # Panics
/// When it does not.
pub fn frames(bytes: &[u8]) {
    let mut from = bytes;
    while let Ok(Some(frame)) = Frame::read(&mut from, MOST_FRAME) {
        let _ = unpack::<Hello>(&frame.head);
        let _ = read_failure(&frame.head);
        if let Ok(reply) = read_reply(frame.clone()) {
            let again = read_reply(reply_frame(frame.number, Ok(reply.clone())));
            assert!(again.is_ok_and(|again| again == reply), "{reply:?}");
        }
        let number = frame.number;
        if let Ok(request) = CallRequest::read(frame) {
            let call: ShareCall<'_> = request.call(LONGEST);
            let again = CallRequest::read(call_frame(number, &call));
            assert!(again.is_ok_and(|again| again.call(LONGEST) == call), "{call:?}");
        }
    }
}

/// A frame of these parts: the begin says what it is and how long its head is.
#[must_use]
pub fn frame_of(kind: u8, head: &[u8], body: &[u8]) -> Vec<u8> {
    let kind = KINDS[usize::from(kind) % KINDS.len()];
    Frame { kind, number: 1, head: head.to_vec(), body: body.into() }.encode()
}

/// Frames of every kind that both sides send.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let id = AskId { session: ClientSession(1 << 40), seq: AskNumber(3) };
    let asks = [SealedAsk { id, sealed: vec![1; 9] }];
    let fetches =
        vec![Fetch { ask: id, spots: vec![ServerSpot { table: ServerTable(7), slot: 300 }] }];
    let show = HistoryEntry::Show(SealedShow { intent: vec![2; 5], own: asks.to_vec(), fetches });
    let (term, number, wait) = (ScribeTerm(3), Number(9), Duration::from_millis(900));
    let (from, spots) = (Arrival(5), [ServerSpot { table: ServerTable(9), slot: 1 }]);
    let (table, at) = (Object::Table(ServerTable(9)), Object::Checkpoint(number));
    let calls = [
        ShareCall::Parameters,
        ShareCall::PutParameters { after: 0, slot_bytes: 4168, header: b"header" },
        ShareCall::Ask(&asks),
        ShareCall::Answers { session: id.session, from: id.seq, wait },
        ShareCall::Notices { from: number, wait },
        ShareCall::Claim { previous: term },
        ShareCall::Renew(term),
        ShareCall::Release(term),
        ShareCall::Asks { term, from, wait },
        ShareCall::Append { term, number, entry: &show },
        ShareCall::Durable { term, number },
        ShareCall::Sums { term, number },
        ShareCall::Slots { term, after: number, spots: &spots },
        ShareCall::Upload { term, object: table, offset: 4096, piece: &[3; 20] },
        ShareCall::Finish { term, object: at, len: 20 },
        ShareCall::Save { term, at: number, keep_from: Number(1) },
        ShareCall::Records { from: number, most_bytes: 1 << 20, wait },
        ShareCall::Checkpoint,
        ShareCall::ReadCheckpoint { at: number, offset: 1, len: 2 },
        ShareCall::Status,
    ];
    let stored = StoredEntry { number, sealed: vec![4; 4], asks: asks.to_vec() };
    let parameters = ShareParameters { version: 1, slot_bytes: 64, header: vec![5; 3] };
    let replies = [
        Ok(ShareReply::Done),
        Ok(ShareReply::Parameters(Some(parameters))),
        Ok(ShareReply::Version(7)),
        Ok(ShareReply::Answers(vec![SealedAnswer { id, sealed: vec![6; 3] }])),
        Ok(ShareReply::Notices(vec![SealedNotice { number, sealed: vec![8; 5] }])),
        Ok(ShareReply::Term(term)),
        Ok(ShareReply::Asks(asks.to_vec(), from)),
        Ok(ShareReply::Bytes(vec![7; 30])),
        Ok(ShareReply::Records(vec![stored.clone(), stored])),
        Ok(ShareReply::Checkpoint(Some(Checkpoint { at: number, len: 5 }))),
        Ok(ShareReply::Status(Status::default())),
        Err(ShareError::Held { term, left: wait }),
        Err(ShareError::Gap(number)),
        Err(ShareError::Denied("no".into())),
    ];
    let hello =
        Hello { version: VERSION, volume: "team".into(), secret: [8; 32], lane: Lane::Bulk };
    let hello =
        Frame { kind: FrameKind::Hello, number: 0, head: pack(&hello), body: Cow::default() };
    let mut seeds: Vec<Vec<u8>> =
        calls.iter().zip(1..).map(|(call, number)| call_frame(number, call).encode()).collect();
    seeds.extend(replies.into_iter().map(|reply| reply_frame(1, reply).encode()));
    seeds.push(hello.encode());
    let all = seeds.concat();
    seeds.push(all);
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_is_understood_and_none_that_is_cut() {
        for seed in seeds() {
            frames(&seed);
            for end in 0..seed.len() {
                frames(&seed[..end]);
            }
            for at in 0..seed.len() {
                let mut changed = seed.clone();
                changed[at] ^= 0xff;
                frames(&changed);
            }
        }
        let calls = seeds().into_iter().take(19);
        for seed in calls {
            let frame = Frame::read(&mut &*seed, MOST_FRAME).ok().flatten();
            assert!(CallRequest::read(frame.expect("a frame")).is_ok());
        }
    }
}
