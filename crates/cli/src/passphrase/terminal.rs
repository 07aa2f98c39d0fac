//! Asks at the terminal and restores it afterwards, whatever ended the question: an answer, or any
//! signal that ends or stops a process.

use super::bytes::{Bytes, MAX_LEN};
use crate::signals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::low_level::emulate_default_handler;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use zeroize::Zeroizing;

/// A signal interrupts the wait; one that comes just before it is seen after this time.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Asks a question; typed characters do not show.
///
/// # Errors
/// There is no terminal, or `InvalidData` for a line that is too long.
pub fn ask(question: &str) -> io::Result<Bytes> {
    let terminal = File::options().read(true).write(true).open("/dev/tty")?;
    // From here on every signal is handled here before it ends the process.
    let mut asking = signals::while_asking()?;
    loop {
        let hidden = Hidden::begin(&terminal)?;
        (&terminal).write_all(question.as_bytes())?;
        match answer(&terminal, &mut asking)? {
            Heard::Line(line) => return Ok(line),
            Heard::Signal(signal) => {
                drop(hidden);
                (&terminal).write_all(b"\n")?;
                if signals::may_stop(signal) {
                    // Returns only if the process was stopped and then continued.
                    emulate_default_handler(signal)?;
                }
            }
        }
    }
}

enum Heard {
    Line(Bytes),
    Signal(i32),
}

/// The typed line, or the first signal before its end.
fn answer(mut terminal: &File, asking: &mut signals::SignalsWait) -> io::Result<Heard> {
    let mut line = Zeroizing::new(Vec::with_capacity(MAX_LEN + 1));
    let mut byte = Zeroizing::new([0]);
    loop {
        if let Some(signal) = asking.heard() {
            return Ok(Heard::Signal(signal));
        }
        match poll(&mut [PollFd::new(terminal, PollFlags::IN)], Some(&LOOK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        match terminal.read(&mut byte[..]) {
            Ok(0) => return Ok(Heard::Line(line)),
            Ok(_) if byte[0] == b'\n' => return Ok(Heard::Line(line)),
            Ok(_) if line.len() == MAX_LEN => return Err(ErrorKind::InvalidData.into()),
            Ok(_) => line.push(byte[0]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A terminal that hides typed characters until this is dropped.
struct Hidden<'t> {
    terminal: &'t File,
    found: Termios,
}

impl<'t> Hidden<'t> {
    fn begin(terminal: &'t File) -> io::Result<Self> {
        let found = tcgetattr(terminal)?;
        let mut hidden = found.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        // The end of the line does show; the terminal assembles lines.
        hidden.local_modes.insert(LocalModes::ECHONL | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(terminal, OptionalActions::Now, &hidden)?;
        Ok(Self { terminal, found })
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        // A terminal that has gone needs nothing.
        let _ = tcsetattr(self.terminal, OptionalActions::Now, &self.found);
    }
}
