//! What reads bytes of strangers, for the fuzz targets.

use crate::frame::{Frame, Kind, MOST_FRAME};
use crate::message::{
    Hello, Lane, Request, VERSION, call_frame, pack, read_failure, read_reply, reply_frame, unpack,
};
use oblivio_store::share::{
    Answer, Arrival, Ask, AskId, Call, Checkpoint, Entry, Fetch, Notice, Number, Object,
    Parameters, Reply, Seq, Session, ShareError, Show, Spot, Status, Stored, TableId, Term,
};
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
        if let Ok(request) = Request::read(frame) {
            let call: Call<'_> = request.call(LONGEST);
            let again = Request::read(call_frame(number, &call));
            assert!(again.is_ok_and(|again| again.call(LONGEST) == call), "{call:?}");
        }
    }
}

/// A frame of these parts: the begin says what it is and how long its head is.
#[must_use]
pub fn frame_of(kind: u8, head: &[u8], body: &[u8]) -> Vec<u8> {
    let kinds = [Kind::Hello, Kind::Welcome, Kind::Call, Kind::Reply, Kind::Failure];
    let kind = kinds[usize::from(kind) % kinds.len()];
    Frame { kind, number: 1, head: head.to_vec(), body: body.to_vec() }.encode()
}

/// Frames of every kind that both sides send.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let id = AskId { session: Session(1 << 40), seq: Seq(3) };
    let asks = [Ask { id, sealed: vec![1; 9] }];
    let fetches = vec![Fetch { ask: id, spots: vec![Spot { table: TableId(7), slot: 300 }] }];
    let show = Entry::Show(Show { intent: vec![2; 5], own: asks.to_vec(), fetches });
    let (term, number, wait) = (Term(3), Number(9), Duration::from_millis(900));
    let (from, spots) = (Arrival(5), [Spot { table: TableId(9), slot: 1 }]);
    let (table, at) = (Object::Table(TableId(9)), Object::Checkpoint(number));
    let calls = [
        Call::Parameters,
        Call::PutParameters { after: 0, slot_bytes: 4168, header: b"header" },
        Call::Ask(&asks),
        Call::Answers { session: id.session, from: id.seq, wait },
        Call::Notices { from: number, wait },
        Call::Claim { previous: term },
        Call::Renew(term),
        Call::Release(term),
        Call::Asks { term, from, wait },
        Call::Append { term, number, entry: &show },
        Call::Durable { term, number },
        Call::Sums { term, number },
        Call::Slots { term, after: number, spots: &spots },
        Call::Upload { term, object: table, offset: 4096, piece: &[3; 20] },
        Call::Finish { term, object: at, len: 20 },
        Call::Save { term, at: number, keep_from: Number(1) },
        Call::Records { from: number, most_bytes: 1 << 20, wait },
        Call::Checkpoint,
        Call::ReadCheckpoint { at: number, offset: 1, len: 2 },
        Call::Status,
    ];
    let stored = Stored { number, sealed: vec![4; 4], asks: asks.to_vec() };
    let parameters = Parameters { version: 1, slot_bytes: 64, header: vec![5; 3] };
    let replies = [
        Ok(Reply::Done),
        Ok(Reply::Parameters(Some(parameters))),
        Ok(Reply::Version(7)),
        Ok(Reply::Answers(vec![Answer { id, sealed: vec![6; 3] }])),
        Ok(Reply::Notices(vec![Notice { number, sealed: vec![8; 5] }])),
        Ok(Reply::Term(term)),
        Ok(Reply::Asks(asks.to_vec(), from)),
        Ok(Reply::Bytes(vec![7; 30])),
        Ok(Reply::Records(vec![stored.clone(), stored])),
        Ok(Reply::Checkpoint(Some(Checkpoint { at: number, len: 5 }))),
        Ok(Reply::Status(Status::default())),
        Err(ShareError::Held { term, left: wait }),
        Err(ShareError::Gap(number)),
        Err(ShareError::Denied("no".into())),
    ];
    let hello =
        Hello { version: VERSION, volume: "team".into(), secret: [8; 32], lane: Lane::Bulk };
    let hello = Frame { kind: Kind::Hello, number: 0, head: pack(&hello), body: Vec::new() };
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
            assert!(Request::read(frame.expect("a frame")).is_ok());
        }
    }
}
