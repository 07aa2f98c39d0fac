//! Calls that the server goes on with: for asks, answers and notices.

use super::server::{Served, ask};
use crate::connection;
use crate::frame::{Frame, FrameKind, MOST_FRAME};
use crate::identity::{self, pinned};
use crate::line::{self, LineReader, LineWriter};
use crate::message::{CallRequest, Lane, VERSION, call_frame, pack, read_reply, reply_frame};
use crate::remote::greet;
use oblivio_share::{LinePatience, RemoteShare};
use oblivio_store::share::{
    AskNumber, ClientSession, Number, SealedAnswer, Share, ShareCall, ShareReply,
};
use oblivio_testkit::share::{Rig, session_of};
use std::borrow::Cow;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Longer than anything takes that comes at all.
const LONG: Duration = Duration::from_secs(60);

fn next(reader: &mut LineReader) -> Frame<'static> {
    Frame::read(reader, MOST_FRAME).unwrap().expect("the line is there")
}

fn numbers(reply: ShareReply) -> Vec<u64> {
    let ShareReply::Answers(answers) = reply else { panic!("{reply:?}") };
    answers.iter().map(|answer| answer.id.seq.0).collect()
}

#[test]
fn one_call_for_answers_brings_them_as_they_come() {
    let served = Served::new();
    let (one, token) = (served.client("one"), served.token("two"));
    let two = served.client_with(token.clone());
    let mut rig = Rig::new(&one).unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    served.server().door().admit(theirs).unwrap();
    let (config, until) = (pinned(token.fingerprint).unwrap(), Instant::now() + LONG);
    let (mut reader, line) = greet(ours.into(), &token, &config, Lane::Foreground, until).unwrap();
    let session = session_of(&two, 1);
    let mut tell = |seqs: &[u64]| {
        let asks: Vec<_> = seqs.iter().map(|seq| ask(&two, 1, *seq)).collect();
        two.ask(&asks).unwrap();
        // The server has them before it replies to this.
        two.answers(session, AskNumber(1000), Duration::ZERO).unwrap();
        let ids: Vec<_> = asks.iter().map(|ask| ask.id).collect();
        let shown: Vec<_> = ids.iter().map(|id| (*id, vec![])).collect();
        let (batch, _) = rig.show(&shown).unwrap();
        rig.tell(batch, &ids).unwrap();
    };
    let call = ShareCall::Answers { session, from: AskNumber(0), wait: LONG };
    call_frame(7, &call).send(&line).unwrap();
    for (seqs, kind) in [
        (&[0, 1][..], FrameKind::Part),
        (&[2], FrameKind::Part),
        // One is missing before it: only a new call says from where to go on.
        (&[4], FrameKind::Reply),
    ] {
        tell(seqs);
        let frame = next(&mut reader);
        assert_eq!((frame.number, frame.kind), (7, kind), "{seqs:?}");
        assert_eq!(numbers(read_reply(frame).unwrap()), seqs);
    }
    // Without a wait there is one reply.
    let call = ShareCall::Answers { session, from: AskNumber(0), wait: Duration::ZERO };
    call_frame(8, &call).send(&line).unwrap();
    let frame = next(&mut reader);
    assert_eq!((frame.number, frame.kind), (8, FrameKind::Reply));
    assert_eq!(numbers(read_reply(frame).unwrap()), [0, 1, 2, 4]);
}

/// A client, and a server that follows a script.
fn client_of(
    script: impl FnOnce(&mut LineReader, &LineWriter) + Send + 'static,
) -> (Served, RemoteShare, JoinHandle<()>) {
    // Its folder says who both are.
    let served = Served::new();
    let (config, _) = identity::load(served.dir.path()).unwrap();
    let token = served.token("laptop");
    let (ours, theirs) = UnixStream::pair().unwrap();
    let server = thread::spawn(move || {
        let (mut reader, line) =
            line::accept(theirs.into(), &config, Instant::now() + LONG).unwrap();
        connection::greet(&mut reader).unwrap();
        let (number, head) = (0, pack(&VERSION));
        Frame { kind: FrameKind::Welcome, number, head, body: Cow::default() }.send(&line).unwrap();
        reader.take_your_time().unwrap();
        script(&mut reader, &line);
    });
    let once = Mutex::new(Some(ours));
    let dial = move || once.lock().unwrap().take().ok_or(std::io::ErrorKind::BrokenPipe.into());
    let client = RemoteShare::over(token, LinePatience::default(), Box::new(dial)).unwrap();
    (served, client, server)
}

const SESSION: ClientSession = ClientSession(5);

/// A reply with this answer, or with none.
fn answer(kind: FrameKind, number: u64, seq: Option<u64>) -> Frame<'static> {
    let id = |seq| oblivio_store::share::AskId { session: SESSION, seq: AskNumber(seq) };
    let answers = seq.map(|seq| SealedAnswer { id: id(seq), sealed: vec![1] });
    let reply = ShareReply::Answers(answers.into_iter().collect());
    Frame { kind, ..reply_frame(number, Ok(reply)) }
}

/// The number of the next call, which must be for answers, and from which one on.
fn wanted(reader: &mut LineReader) -> (u64, u64) {
    let frame = next(reader);
    let number = frame.number;
    match CallRequest::read(frame).unwrap().call(LONG) {
        ShareCall::Answers { session: SESSION, from, .. } => (number, from.0),
        other => panic!("{other:?}"),
    }
}

fn take(client: &RemoteShare, from: u64) -> Vec<u64> {
    let came = client.answers(SESSION, AskNumber(from), LONG).unwrap();
    came.iter().map(|answer| answer.id.seq.0).collect()
}

#[test]
fn a_client_asks_again_only_where_a_call_ended() {
    let (_served, client, server) = client_of(|reader, line| {
        let (first, from) = wanted(reader);
        assert_eq!(from, 0);
        answer(FrameKind::Part, first, Some(0)).send(line).unwrap();
        answer(FrameKind::Part, first, Some(1)).send(line).unwrap();
        answer(FrameKind::Reply, first, None).send(line).unwrap();
        let (second, from) = wanted(reader);
        assert_eq!(from, 2, "no other call came");
        answer(FrameKind::Part, second, Some(2)).send(line).unwrap();
        // What was asked for elsewhere is another call.
        let (third, from) = wanted(reader);
        assert_eq!(from, 9);
        answer(FrameKind::Part, second, Some(3)).send(line).unwrap();
        answer(FrameKind::Reply, third, Some(9)).send(line).unwrap();
    });
    assert_eq!([take(&client, 0), take(&client, 1), take(&client, 2)], [[0], [1], [2]]);
    assert_eq!(take(&client, 9), [9]);
    server.join().unwrap();
}

/// A client that takes nothing keeps a few replies, and loses none.
#[test]
fn replies_that_nobody_takes_are_asked_for_again() {
    const SENT: u64 = 40;
    let (_served, client, server) = client_of(|reader, line| {
        let (number, _) = wanted(reader);
        (0..SENT).for_each(|seq| answer(FrameKind::Part, number, Some(seq)).send(line).unwrap());
        // The reply to this comes after them.
        let frame = next(reader);
        reply_frame(frame.number, Ok(ShareReply::Notices(Vec::new()))).send(line).unwrap();
        let (mut number, mut from) = wanted(reader);
        assert!((1..SENT).contains(&from), "{from}");
        while from < SENT {
            answer(FrameKind::Reply, number, Some(from)).send(line).unwrap();
            if from + 1 < SENT {
                (number, from) = wanted(reader);
            } else {
                from = SENT;
            }
        }
    });
    assert_eq!(take(&client, 0), [0]);
    assert!(client.notices(Number(0), Duration::ZERO).unwrap().is_empty());
    (1..SENT).for_each(|seq| assert_eq!(take(&client, seq), [seq]));
    server.join().unwrap();
}
