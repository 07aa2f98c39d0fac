//! Where passphrases come from: a file, a descriptor, the environment, or the person.
//!
//! Never the command line, which every user of the computer can read. A passphrase goes through no
//! buffer but those here and is wiped after use. One in the environment is taken from there at once
//! ([`handover`]).

mod handover;
mod terminal;

pub use handover::{Handed, forget, leave_environment};

use crate::args::{NewPassphraseArgs, PassphraseArgs};
use crate::exit::{Code, fault, usage};
use anyhow::{Context, Result};
use handover::{Given, taken};
use oblivio_crypto::Passphrase;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use unicode_normalization::UnicodeNormalization;
use zeroize::Zeroizing;

/// Limit of a passphrase; a wrong file is noticed instead of read to its end.
const MAX_LEN: usize = 4096;

/// A passphrase as bytes, wiped on drop.
type Bytes = Zeroizing<Vec<u8>>;

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

/// The passphrase to add, or to change to.
pub fn new(args: &NewPassphraseArgs) -> Result<Passphrase> {
    match given(args.new_passphrase_fd, args.new_passphrase_file.as_deref(), Given::New)? {
        Some(bytes) => not_empty(bytes).map(passphrase),
        None => twice("New passphrase: "),
    }
}

fn passphrase(mut bytes: Bytes) -> Passphrase {
    Passphrase::new(std::mem::take(&mut *bytes))
}

/// From here on this process holds keys and plaintext. It leaves no core dump, and other programs
/// of the same user cannot inspect it.
fn holds_secrets() {
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
        let read = |byte: &mut [u8]| Ok(rustix::io::read(rustix::stdio::stdin(), byte)?);
        return first_line(read).context("the passphrase on descriptor 0");
    }
    let what = || format!("the passphrase on descriptor {fd}");
    let mut file = open_fd(fd).with_context(what)?;
    first_line(|byte| file.read(byte)).with_context(what)
}

/// Opens by path: taking over a bare number needs `unsafe`.
fn open_fd(fd: u32) -> io::Result<File> {
    File::open(PathBuf::from(format!("/dev/fd/{fd}")))
}

/// The first line without its end, read byte by byte: a buffer would keep a copy.
fn first_line(mut read: impl FnMut(&mut [u8]) -> io::Result<usize>) -> Result<Bytes> {
    // With full capacity from the start the line never moves and leaves no copy behind.
    let mut line = Zeroizing::new(Vec::with_capacity(MAX_LEN + 1));
    let mut byte = Zeroizing::new([0]);
    while line.len() <= MAX_LEN {
        match read(&mut byte[..]) {
            Ok(0) => break,
            Ok(_) if byte[0] == b'\n' => break,
            Ok(_) => line.push(byte[0]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    if line.len() > MAX_LEN {
        return Err(usage("the first line is too long for a passphrase", "Is it the right file?"));
    }
    while line.last() == Some(&b'\r') {
        line.pop();
    }
    not_empty(normal(line))
}

/// The passphrase in Unicode's composed form (NFC): the same accent from another keyboard or system
/// gives the same bytes. Bytes that are not text stay as they are.
fn normal(typed: Bytes) -> Bytes {
    match std::str::from_utf8(&typed) {
        Ok(text) if !text.is_ascii() => {
            // Composed text is at most three times as long, so this buffer does not move either.
            let mut composed = String::with_capacity(3 * text.len());
            composed.extend(text.nfc());
            Zeroizing::new(composed.into_bytes())
        }
        _ => typed,
    }
}

fn not_empty(bytes: Bytes) -> Result<Bytes> {
    if bytes.is_empty() {
        return Err(usage("the passphrase is empty", "Choose one of several words."));
    }
    Ok(bytes)
}

fn twice(question: &str) -> Result<Passphrase> {
    let first = passphrase(prompt(question)?);
    let again = passphrase(prompt("The same again: ")?);
    if first.same_as(&again) {
        return Ok(first);
    }
    Err(fault(Code::Usage, "the two passphrases differ", "Run the command again."))
}

fn prompt(question: &str) -> Result<Bytes> {
    match terminal::ask(question) {
        Ok(typed) => not_empty(normal(typed)),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn line(mut text: &[u8]) -> Result<Passphrase> {
        first_line(|byte| text.read(byte)).map(passphrase)
    }

    fn as_typed(text: impl Into<Vec<u8>>) -> Passphrase {
        passphrase(normal(Zeroizing::new(text.into())))
    }

    #[test]
    fn the_first_line_counts() -> Result<()> {
        for text in ["secret", "secret\n", "secret\r\n", "secret\nmore\n"] {
            assert!(line(text.as_bytes())?.same_as(&Passphrase::new("secret")), "{text:?}");
        }
        assert!(line(b" secret \n")?.same_as(&Passphrase::new(" secret ")));
        for text in ["", "\n", "\r\n"] {
            assert!(line(text.as_bytes()).is_err());
        }
        assert!(line(&[b'x'; MAX_LEN]).is_ok());
        assert!(line(&[b'x'; MAX_LEN + 1]).is_err());
        Ok(())
    }

    #[test]
    fn an_accent_is_the_same_however_it_is_typed() {
        let composed = as_typed("caf\u{e9}");
        assert!(composed.same_as(&as_typed("cafe\u{301}")));
        assert!(!composed.same_as(&as_typed("cafe")));
        assert!(as_typed(vec![0xff, 0x00]).same_as(&Passphrase::new(vec![0xff, 0x00])));
        // The longest result of composing; it must not have moved.
        let long = "\u{fb2c}".repeat(100);
        assert!(normal(Zeroizing::new(long.clone().into_bytes())).capacity() <= 3 * long.len());
    }

    #[test]
    fn the_rest_stays_for_the_next_reader() -> Result<()> {
        let mut input = &b"secret\ncontent"[..];
        first_line(|byte| input.read(byte))?;
        assert_eq!(input, b"content");
        Ok(())
    }
}
