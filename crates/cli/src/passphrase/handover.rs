//! Passphrases handed from one process to another, and those of the environment.
//!
//! Every child inherits the environment, and `/proc` shows it for the life of the process. Removing
//! a variable changes neither what `/proc` shows nor the memory that holds it. So a command that
//! finds a passphrase there executes itself again at once, without it. The new program has another
//! memory, and reads the passphrase, once, from a pipe.

use super::bytes::{Bytes, MAX_LEN, open_fd};
use crate::exit::usage;
use anyhow::{Context, Result};
use rustix::fd::{AsRawFd, OwnedFd};
use std::env;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use zeroize::Zeroizing;

/// Kinds of passphrases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// The volume's.
    Known,
    /// The one to add, or to change to.
    New,
    /// The volume's, from the process that started this one.
    Handed,
}

impl Given {
    /// The variable in which users pass it.
    pub fn variable(self) -> &'static str {
        match self {
            Given::New => "OBLIVIO_NEW_PASSPHRASE",
            Given::Known | Given::Handed => "OBLIVIO_PASSPHRASE",
        }
    }

    /// The variable that names the pipe's descriptor.
    fn descriptor(self) -> &'static str {
        match self {
            Given::Known => "OBLIVIO_PASSPHRASE_PIPE",
            Given::New => "OBLIVIO_NEW_PASSPHRASE_PIPE",
            Given::Handed => "OBLIVIO_HANDED_PASSPHRASE_PIPE",
        }
    }
}

/// Passphrases that came through pipes and were not yet taken.
static KEPT: Mutex<Vec<(Given, Bytes)>> = Mutex::new(Vec::new());

/// Executes this program again without passphrases in its environment, if there are any. Call it
/// before anything else: no other thread may run, and nothing may have been read. In the program
/// executed again it empties the pipes, which children inherit.
///
/// # Errors
/// A passphrase in the environment is unusable.
pub fn leave_environment() -> Result<()> {
    let mut pipes = Vec::new();
    for given in [Given::Known, Given::New] {
        if let Some(value) = env::var_os(given.variable()) {
            let bytes = Zeroizing::new(OsString::into_vec(value));
            pipes.push((given, Handed::new(&bytes)?));
        }
    }
    if !pipes.is_empty() {
        return begin_again(&pipes);
    }
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    for given in [Given::Known, Given::New, Given::Handed] {
        kept.extend(read(given)?.map(|bytes| (given, bytes)));
    }
    Ok(())
}

fn begin_again(pipes: &[(Given, Handed)]) -> Result<()> {
    let mut args = env::args_os();
    let (name, args) = (args.next().unwrap_or_default(), args.collect::<Vec<_>>());
    // The second is for a file that was replaced since this process began.
    for program in [env::current_exe().unwrap_or_default(), "/proc/self/exe".into()] {
        let mut again = Command::new(program);
        again.arg0(&name).args(&args);
        for (given, pipe) in pipes {
            again.env_remove(given.variable()).env(given.descriptor(), pipe.number());
        }
        // Returns only on failure.
        let _ = again.exec();
    }
    let hint = "Use --passphrase-file FILE or --passphrase-fd N instead.";
    Err(usage("a passphrase cannot be taken out of the environment here", hint))
}

/// A passphrase on its way to another process, in a pipe that children inherit.
pub struct Handed(OwnedFd);

impl Handed {
    /// Puts a passphrase into a new pipe.
    ///
    /// # Errors
    /// It is too long, or those of the system.
    pub fn new(bytes: &[u8]) -> Result<Self> {
        // A pipe without a reader holds this much.
        if bytes.len() > MAX_LEN {
            return Err(usage("the passphrase is too long", "At most 4,096 bytes are taken."));
        }
        let (read, write) = rustix::pipe::pipe().context("a pipe for the passphrase")?;
        std::fs::File::from(write).write_all(bytes)?;
        Ok(Self(read))
    }

    /// Passes the pipe to a command's process.
    pub fn to(&self, command: &mut Command) {
        command.env(Given::Handed.descriptor(), self.number());
    }

    fn number(&self) -> String {
        self.0.as_raw_fd().to_string()
    }
}

/// The passphrase from another process, or from this one before it executed itself again; once.
pub fn taken(given: Given) -> Option<Bytes> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let at = kept.iter().position(|(kept, _)| *kept == given)?;
    Some(kept.swap_remove(at).1)
}

/// Wipes all passphrases handed over.
pub fn forget() {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

fn read(given: Given) -> Result<Option<Bytes>> {
    let Some(fd) = env::var_os(given.descriptor()) else { return Ok(None) };
    let what = || format!("the passphrase that {} names", given.descriptor());
    let fd = fd.to_str().and_then(|fd| fd.parse().ok()).with_context(what)?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_LEN + 1));
    let pipe = open_fd(fd).with_context(what)?;
    pipe.take(MAX_LEN as u64).read_to_end(&mut bytes).with_context(what)?;
    Ok(Some(bytes))
}
