//! Where passphrases come from: a file, a descriptor, the environment, or the person.
//!
//! Never the command line, which every user of the computer can read. A passphrase goes through no
//! buffer but those here and is wiped after use. One in the environment is taken from there at once
//! ([`handover`]).

mod bytes;
mod handover;
mod terminal;

pub use handover::{Handed, forget, leave_environment};

use crate::args::{NewPassphraseArgs, PassphraseArgs};
use crate::exit::{Code, fault, usage};
use anyhow::{Context, Result};
use bytes::{Bytes, first_line, next_line, normal, not_empty, open_fd, passphrase};
use handover::{Given, taken};
use oblivio_crypto::Passphrase;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// The passphrase of an existing volume.
pub fn known(args: &PassphraseArgs) -> Result<Passphrase> {
    known_bytes(args).map(passphrase)
}

/// The passphrase of an existing volume, for a process to be started.
pub fn to_hand_over(args: &PassphraseArgs) -> Result<Handed> {
    Handed::new(&known_bytes(args)?)
}

fn known_bytes(args: &PassphraseArgs) -> Result<Bytes> {
    holds_secrets();
    // This process continues one that has asked already.
    if let Some(bytes) = taken(Given::Handed) {
        return Ok(bytes);
    }
    match given(args.passphrase_fd, args.passphrase_file.as_deref(), Given::Known)? {
        Some(bytes) => Ok(bytes),
        None => prompt("Passphrase: "),
    }
}

/// The passphrase for a new volume; if typed, it is typed twice.
pub fn first(args: &PassphraseArgs) -> Result<Passphrase> {
    holds_secrets();
    match given(args.passphrase_fd, args.passphrase_file.as_deref(), Given::Known)? {
        Some(bytes) => not_empty(bytes).map(passphrase),
        None => twice("Passphrase for the new volume: "),
    }
}

/// The same, and those of its lanes: typed behind it, or further lines of standard input. A lane
/// may have none; a later one then has none either.
pub fn first_with_lanes(args: &PassphraseArgs, lanes: u8) -> Result<(Passphrase, Vec<Passphrase>)> {
    holds_secrets();
    let given = given(args.passphrase_fd, args.passphrase_file.as_deref(), Given::Known)?;
    let typed = given.is_none();
    let own = match given {
        Some(bytes) => not_empty(bytes).map(passphrase)?,
        None => twice("Passphrase for the new volume: ")?,
    };
    let mut found = Vec::new();
    for lane in 1..=lanes {
        let bytes = match args.passphrase_fd {
            _ if typed => typed_line(&format!("Passphrase of lane {lane}, or nothing: "))?,
            Some(0) => next_line(read_stdin)?,
            _ => break,
        };
        if bytes.is_empty() {
            break;
        }
        let lane = passphrase(bytes);
        if typed {
            expect_again(&lane)?;
        }
        found.push(lane);
    }
    Ok((own, found))
}

/// The passphrase to add, or to change to.
pub fn new(args: &NewPassphraseArgs) -> Result<Passphrase> {
    match given(args.new_passphrase_fd, args.new_passphrase_file.as_deref(), Given::New)? {
        Some(bytes) => not_empty(bytes).map(passphrase),
        None => twice("New passphrase: "),
    }
}

/// From here on this process holds keys, plaintext, or what opens a service. It leaves no core
/// dump, and other programs of the same user cannot inspect it.
pub fn holds_secrets() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // Where the system cannot do it, only this protection is lost.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

/// A passphrase given without a question, in this order: descriptor, file, environment.
fn given(fd: Option<u32>, file: Option<&Path>, environment: Given) -> Result<Option<Bytes>> {
    // Taken in any case: no unused one stays in memory.
    let of_environment = taken(environment);
    if let Some(fd) = fd {
        return from_fd(fd).map(Some);
    }
    if let Some(path) = file {
        let what = || format!("the passphrase file {}", path.display());
        let mut file = File::open(path).with_context(what)?;
        warn_if_open_to_all(&file, path).with_context(what)?;
        return first_line(|byte| file.read(byte)).with_context(what).map(Some);
    }
    Ok(of_environment.map(normal))
}

/// Warns of a secret that everybody on the computer may read; it is used all the same.
fn warn_if_open_to_all(file: &File, path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    const OTHERS_READ: u32 = 0o004;
    let found = file.metadata()?;
    if found.is_file() && found.permissions().mode() & OTHERS_READ != 0 {
        let path = crate::human::plain(&path.display().to_string());
        eprintln!(
            "oblivio: warning: everybody on this computer may read the passphrase file {path}; \
             make it yours alone: chmod 600 {path}"
        );
    }
    Ok(())
}

fn from_fd(fd: u32) -> Result<Bytes> {
    // Reads nothing behind the line: `put -` needs the rest.
    if fd == 0 {
        return first_line(read_stdin).context("the passphrase on descriptor 0");
    }
    let what = || format!("the passphrase on descriptor {fd}");
    let mut file = open_fd(fd).with_context(what)?;
    first_line(|byte| file.read(byte)).with_context(what)
}

fn read_stdin(byte: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::read(rustix::stdio::stdin(), byte)?)
}

fn twice(question: &str) -> Result<Passphrase> {
    let first = passphrase(prompt(question)?);
    expect_again(&first)?;
    Ok(first)
}

fn expect_again(first: &Passphrase) -> Result<()> {
    let again = passphrase(prompt("The same again: ")?);
    if first.same_as(&again) {
        return Ok(());
    }
    Err(fault(Code::Usage, "the two passphrases differ", "Run the command again."))
}

/// A secret of another kind, typed at the terminal as it is; `None` for an empty line.
#[cfg(feature = "online")]
pub fn secret(question: &str) -> Result<Option<String>> {
    holds_secrets();
    let typed = match terminal::ask(question) {
        Ok(typed) => typed,
        Err(_) => {
            let what = "a secret is needed and there is no terminal to ask on";
            let hint = "Use --secret-file FILE or --secret-command COMMAND, or say --no-secret.";
            return Err(usage(what, hint));
        }
    };
    let text = std::str::from_utf8(&typed);
    let text = text.map_err(|_| usage("the secret is no text", "Type it again."))?;
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

fn prompt(question: &str) -> Result<Bytes> {
    not_empty(typed_line(question)?)
}

fn typed_line(question: &str) -> Result<Bytes> {
    match terminal::ask(question) {
        Ok(typed) => Ok(normal(typed)),
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            Err(usage("the line is too long for a passphrase", ""))
        }
        Err(_) => Err(usage(
            "a passphrase is needed and there is no terminal to ask on",
            format!(
                "Set {}, or use --passphrase-file FILE or --passphrase-fd N.",
                Given::Known.variable()
            ),
        )),
    }
}
