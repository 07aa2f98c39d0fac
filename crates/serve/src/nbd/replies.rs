//! Replies on their way to a client.
//!
//! The thread that answers a request sends the reply itself, if the connection takes it without
//! waiting. A thread woken in between would be a good part of the time for a client with one
//! request at a time. All other replies queue for one thread that may wait: a client that reads
//! nothing holds up only itself.

use super::listen::Conn;
use oblivio_store::Budget;
use rustix::net::SendFlags;
use std::io::{self, ErrorKind, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};

/// Requests of at most this many bytes are answered at once, and in one piece.
const SMALL: usize = 64 << 10;

/// The sending side of a client's connection.
pub trait ToClient: Write + Send + 'static {
    /// Sends some of these bytes without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if it would have to wait, or always has to.
    fn send_now(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        Err(ErrorKind::WouldBlock.into())
    }
}

impl ToClient for Conn {
    fn send_now(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(self, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?)
    }
}

/// A reply.
pub struct DiskReply {
    pub head: Vec<u8>,
    pub data: Vec<u8>,
    /// Bytes that it returns to the budget once sent.
    pub bytes: usize,
}

/// Queues replies; any thread may use it.
pub struct Outbox<W> {
    to: Arc<Mutex<Sending<W>>>,
    line: Sender<DiskReply>,
    budget: Arc<Budget>,
}

struct Sending<W> {
    to: W,
    /// The end of a reply that the connection did not take at once. It goes first.
    rest: Vec<u8>,
}

impl<W: ToClient> Outbox<W> {
    /// Opens an outbox and starts the thread that waits for the client; the thread ends when the
    /// outbox is gone and everything is sent. `close` ends the connection, if it breaks.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn open(
        to: W,
        budget: Arc<Budget>,
        close: impl Fn() + Send + 'static,
    ) -> io::Result<(Arc<Self>, JoinHandle<()>)> {
        let (line, waiting) = channel();
        let to = Arc::new(Mutex::new(Sending { to, rest: Vec::new() }));
        let (sending, giving) = (Arc::clone(&to), Arc::clone(&budget));
        let writer = thread::Builder::new()
            .name("nbd replies".into())
            .spawn(move || write_replies(&waiting, &sending, &giving, close))?;
        Ok((Arc::new(Self { to, line, budget }), writer))
    }

    /// Sends a reply, now or later.
    pub fn send(&self, mut reply: DiskReply) {
        // After a long request waking a thread costs little, and saves this one the call.
        if reply.bytes <= SMALL {
            reply.head.append(&mut reply.data);
            if self.sent_now(&mut reply.head) {
                self.budget.give_back(reply.bytes);
                return;
            }
        }
        // If the writer has ended, the client is gone.
        let _ = self.line.send(reply);
    }

    /// Sends these bytes if that needs no waiting. The writer takes over the rest of a reply that
    /// was begun, and must be woken for it: then `bytes` is empty.
    fn sent_now(&self, bytes: &mut Vec<u8>) -> bool {
        let mut sending = match self.to.try_lock() {
            Ok(sending) => sending,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        if !sending.rest.is_empty() {
            return false;
        }
        match sending.to.send_now(bytes) {
            Ok(taken) if taken == bytes.len() => true,
            Ok(taken) if taken > 0 => {
                sending.rest = bytes.split_off(taken);
                bytes.clear();
                false
            }
            // The writer meets the error again.
            _ => false,
        }
    }
}

fn lock<W>(to: &Mutex<Sending<W>>) -> MutexGuard<'_, Sending<W>> {
    to.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write_replies<W: ToClient>(
    replies: &Receiver<DiskReply>,
    to: &Mutex<Sending<W>>,
    budget: &Budget,
    close: impl Fn(),
) {
    let mut broken = false;
    while let Ok(DiskReply { head, data, bytes }) = replies.recv() {
        if !broken {
            broken = lock(to).write(&head, &data).is_err();
            if broken {
                // The reader may wait for requests that will not come.
                close();
            }
        }
        drop(data);
        budget.give_back(bytes);
    }
}

impl<W: ToClient> Sending<W> {
    fn write(&mut self, head: &[u8], data: &[u8]) -> io::Result<()> {
        let rest = std::mem::take(&mut self.rest);
        [&rest, head, data].into_iter().try_for_each(|part| self.to.write_all(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// A client that takes without waiting what `takes` says, and the rest when allowed to.
    struct Slow {
        takes: VecDeque<usize>,
        heard: Sender<Vec<u8>>,
        gate: Receiver<()>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.gate.recv().map_err(|_| ErrorKind::BrokenPipe)?;
            self.heard.send(bytes.to_vec()).map_err(|_| ErrorKind::BrokenPipe)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl ToClient for Slow {
        fn send_now(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let takes = self.takes.pop_front().unwrap_or(0).min(bytes.len());
            if takes == 0 {
                return Err(ErrorKind::WouldBlock.into());
            }
            self.heard.send(bytes[..takes].to_vec()).expect("the test listens");
            Ok(takes)
        }
    }

    fn reply(text: &str) -> DiskReply {
        let (head, data) = text.split_at(1);
        DiskReply { head: head.into(), data: data.into(), bytes: text.len() }
    }

    #[test]
    fn replies_stay_whole_however_much_of_each_is_taken_at_once() {
        let (heard, hears) = channel();
        let (open, gate) = channel();
        // All of the first, half of the second, none of the third.
        let takes = [9, 2, 0, 9].into();
        let budget = Arc::new(Budget::new(256, 12));
        let (outbox, writer) =
            Outbox::open(Slow { takes, heard, gate }, Arc::clone(&budget), || ()).expect("threads");
        for text in ["abcd", "efgh", "ijkl"] {
            budget.take(text.len());
        }
        outbox.send(reply("abcd"));
        outbox.send(reply("efgh"));
        outbox.send(reply("ijkl"));
        let heard = |n| hears.iter().take(n).collect::<Vec<_>>().concat();
        assert_eq!(heard(2), b"abcdef", "nothing overtakes a reply that was begun");
        // Only the first has been sent.
        budget.take(4);
        open.send(()).expect("the rest");
        open.send(()).expect("the third");
        assert_eq!(heard(2), b"ghijkl");
        // Both have returned their bytes.
        budget.take(8);
        drop(outbox);
        writer.join().expect("it ends with the outbox");
    }

    #[test]
    fn a_connection_that_broke_is_closed_and_holds_nothing() {
        let (heard, hears) = channel();
        let (open, gate) = channel();
        let (closed, closes) = channel();
        let budget = Arc::new(Budget::new(256, 8));
        let slow = Slow { takes: [2].into(), heard, gate };
        let close = move || closed.send(()).expect("the test listens");
        let (outbox, writer) = Outbox::open(slow, Arc::clone(&budget), close).expect("threads");
        drop(open);
        budget.take(4);
        budget.take(4);
        outbox.send(reply("abcd"));
        outbox.send(reply("efgh"));
        closes.recv().expect("it is closed");
        // Both have returned their bytes.
        budget.take(8);
        drop(outbox);
        writer.join().expect("it ends with the outbox");
        assert_eq!(hears.iter().collect::<Vec<_>>(), [b"ab"]);
        assert!(closes.recv().is_err(), "once");
    }
}
