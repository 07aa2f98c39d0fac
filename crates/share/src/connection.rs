//! A connection of a client: one thread reads calls and makes those that wait for nothing. Others
//! make those that wait, so that a reply is never late because of another call.

use crate::connections::{Entered, Reserved};
use crate::devices::{SecretHash, number as device_number, secret_hash};
use crate::error::Error;
use crate::frame::{Frame, FrameKind, MOST_FIRST_FRAME, MOST_FRAME};
use crate::line::{LineReader, LineWriter};
use crate::message::{CallRequest, Hello, Lane, VERSION, pack, reply_frame, unpack};
use crate::volume_registry::{ServedVolume, VolumeRegistry};
use oblivio_store::Budget;
use oblivio_store::share::{ClientSession, Result, Share, ShareCall, ShareError, ShareReply};
use std::borrow::Cow;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The longest wait of a call.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The most calls of a connection that wait at once. Then it is not read any more.
fn most_waiting(lane: Lane) -> usize {
    match lane {
        Lane::Foreground => 24,
        Lane::Bulk => 4,
    }
}

/// The least time between two replies with asks.
const GATHERING: Duration = Duration::from_millis(8);
/// How long a frame may take from its first byte to its last one.
const FRAME: Duration = Duration::from_secs(60);

/// What the threads of a connection share.
struct Shared {
    volume: Arc<ServedVolume>,
    device: u16,
    budget: Arc<Budget>,
    line: LineWriter,
}

/// Takes a client's first frame.
///
/// # Errors
/// Those of the line; `InvalidData` for what is no such frame.
pub fn greet(reader: &mut LineReader) -> io::Result<Hello> {
    let frame = Frame::read(reader, MOST_FIRST_FRAME)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let hello = unpack(&frame.head).ok().filter(|_| frame.kind == FrameKind::Hello);
    hello.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no greeting"))
}

/// Admits a client.
fn admit(
    registry: &VolumeRegistry,
    hello: &Hello,
    line: &LineWriter,
) -> Result<(Entered, Arc<ServedVolume>, SecretHash)> {
    if hello.version != VERSION {
        let other = hello.version;
        let why = format!(
            "it speaks version {VERSION} of the protocol, and this client version {other}: update \
             the older one"
        );
        return Err(ShareError::Denied(why));
    }
    let hash = secret_hash(&hello.secret);
    // One message for all reasons: a stranger learns nothing of volumes and devices.
    let unknown = || ShareError::Denied("its token is not known, or revoked".into());
    let entered = registry.enter(hash, &hello.volume, line).ok_or_else(unknown)?;
    match registry.volume(&hello.volume) {
        Ok(volume) => Ok((entered, volume, hash)),
        Err(error) => {
            registry.leave(entered.number);
            Err(match error {
                // Its device is known: it may know this.
                Error::Damaged { .. } => ShareError::Denied(error.to_string()),
                _ => unknown(),
            })
        }
    }
}

/// Serves a client that has said who it is, until the line ends.
pub fn serve(
    registry: &VolumeRegistry,
    hello: &Hello,
    mut reader: LineReader,
    line: LineWriter,
    known: impl FnOnce(),
) {
    match admit(registry, hello, &line) {
        Err(error) => {
            let _ = reply_frame(0, Err(error)).send(&line);
        }
        Ok((Entered { number, budget }, volume, hash)) => {
            known();
            let device = device_number(&hash);
            let shared = Arc::new(Shared { volume, device, budget, line: line.clone() });
            let welcome = Frame {
                kind: FrameKind::Welcome,
                number: 0,
                head: pack(&VERSION),
                body: Cow::default(),
            };
            // An error of the line ends it, whatever the reason.
            let _ = reader
                .take_your_time()
                .and_then(|()| welcome.send(&line))
                .and_then(|()| read_calls(&shared, &mut reader, hello.lane));
            registry.leave(number);
        }
    }
    line.cut();
}

fn read_calls(shared: &Arc<Shared>, reader: &mut LineReader, lane: Lane) -> io::Result<()> {
    let mut workers = Workers::new(shared, most_waiting(lane));
    while let Some(first) = Frame::first(reader)? {
        reader.hurry(Instant::now() + FRAME);
        let reserve = |bytes| Reserved::of(&shared.budget, bytes);
        let (frame, reserved) = Frame::rest(first, reader, MOST_FRAME, reserve)?;
        reader.take_your_time()?;
        let number = frame.number;
        let bytes = (frame.head.len() + frame.body.len()) as u64;
        shared.volume.traffic[0].fetch_add(bytes, Ordering::Relaxed);
        match CallRequest::read(frame) {
            Err(error) => shared.send(reply_frame(number, Err(error)))?,
            Ok(request) if request.call(LONGEST_WAIT).waits() => {
                workers.give((number, request, reserved))?
            }
            Ok(request) => shared.serve(number, &request)?,
        }
    }
    Ok(())
}

/// Refuses a call about a session of another device than the one of this number.
pub fn refuse_foreign(device: u16, call: &ShareCall<'_>) -> Result<()> {
    let own = |session: ClientSession| session.device() == device;
    let all_own = match call {
        ShareCall::Ask(asks) => asks.iter().all(|ask| own(ask.id.session)),
        ShareCall::Answers { session, .. } => own(*session),
        _ => true,
    };
    match all_own {
        true => Ok(()),
        false => Err(ShareError::Denied("the session is another device's".into())),
    }
}

impl Shared {
    /// Carries a call out, and replies. What comes one after the other is sent as it comes, until
    /// the call's wait is over: no round trip lies between two replies.
    fn serve(&self, number: u64, request: &CallRequest<'_>) -> io::Result<()> {
        let mut call = request.call(LONGEST_WAIT);
        let until = Instant::now() + call.wait();
        loop {
            let done = self.carry_out(call);
            let next = done.as_ref().ok().and_then(|reply| call.after(reply));
            let left = until.saturating_duration_since(Instant::now());
            let Some(next) = next.filter(|_| !left.is_zero()) else {
                return self.send(reply_frame(number, done));
            };
            self.send(Frame { kind: FrameKind::Part, ..reply_frame(number, done) })?;
            call = next.waiting(left);
            if let ShareCall::Asks { .. } = call {
                // The scribe gathers asks in any case: it takes fewer replies.
                thread::sleep(left.min(GATHERING));
            }
        }
    }

    fn carry_out(&self, call: ShareCall<'_>) -> Result<ShareReply> {
        refuse_foreign(self.device, &call)?;
        self.volume.share.call(call)
    }

    fn send(&self, frame: Frame<'_>) -> io::Result<()> {
        self.volume.traffic[1].fetch_add(frame.len() as u64, Ordering::Relaxed);
        frame.send(&self.line)
    }
}

type Work = (u64, CallRequest<'static>, Reserved);

/// Threads for calls that wait, as many as wait at once.
struct Workers<'s> {
    shared: &'s Arc<Shared>,
    give: SyncSender<Work>,
    take: Arc<Mutex<Receiver<Work>>>,
    idle: Arc<AtomicUsize>,
    started: usize,
    most: usize,
}

impl<'s> Workers<'s> {
    fn new(shared: &'s Arc<Shared>, most: usize) -> Self {
        let (give, take) = sync_channel(most);
        let take = Arc::new(Mutex::new(take));
        Self { shared, give, take, idle: Arc::default(), started: 0, most }
    }

    /// Hands a call over. Waits while too many wait.
    fn give(&mut self, work: Work) -> io::Result<()> {
        if self.idle.load(Ordering::SeqCst) == 0 && self.started < self.most {
            self.start()?;
        }
        self.idle.fetch_sub(usize::from(self.idle.load(Ordering::SeqCst) > 0), Ordering::SeqCst);
        let ended = || io::ErrorKind::BrokenPipe.into();
        match self.give.try_send(work) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(work)) => self.give.send(work).map_err(|_| ended()),
            Err(TrySendError::Disconnected(_)) => Err(ended()),
        }
    }

    fn start(&mut self) -> io::Result<()> {
        let (shared, take) = (Arc::clone(self.shared), Arc::clone(&self.take));
        let idle = Arc::clone(&self.idle);
        let work = move || {
            loop {
                let next = take.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok((number, request, _reserved)) = next else { return };
                if shared.serve(number, &request).is_err() {
                    shared.line.cut();
                }
                idle.fetch_add(1, Ordering::SeqCst);
            }
        };
        thread::Builder::new().name("share call".into()).spawn(work)?;
        self.started += 1;
        self.idle.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}
