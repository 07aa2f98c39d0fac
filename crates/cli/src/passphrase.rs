//! Where passphrases come from: a file, a descriptor, the environment, or the person.
//!
//! Never the command line, which every user of the computer can read. What is read is wiped when
//! it is no longer needed.

use crate::args::{NewPassphraseArgs, PassphraseArgs};
use crate::exit::{Code, fault, usage};
use anyhow::{Context, Result};
use oblivio_crypto::Passphrase;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use unicode_normalization::UnicodeNormalization;
use zeroize::{Zeroize, Zeroizing};

/// The environment's passphrase.
const ENV: &str = "OBLIVIO_PASSPHRASE";
/// The environment's new passphrase, where one is added or changed.
const ENV_NEW: &str = "OBLIVIO_NEW_PASSPHRASE";
/// No passphrase is longer; a wrong file is noticed instead of read to its end.
const MAX_LEN: u64 = 4096;

/// The passphrase of a volume that exists.
pub fn known(args: &PassphraseArgs) -> Result<Passphrase> {
    match given(args.passphrase_fd, args.passphrase_file.as_deref(), ENV)? {
        Some(passphrase) => Ok(passphrase),
        None => prompt("Passphrase: "),
    }
}

/// The passphrase for a volume that is being made; typed twice when it is typed.
pub fn first(args: &PassphraseArgs) -> Result<Passphrase> {
    match given(args.passphrase_fd, args.passphrase_file.as_deref(), ENV)? {
        Some(passphrase) => not_empty(passphrase),
        None => twice("Passphrase for the new volume: "),
    }
}

/// The passphrase to add, or to change to.
pub fn new(args: &NewPassphraseArgs) -> Result<Passphrase> {
    match given(args.new_passphrase_fd, args.new_passphrase_file.as_deref(), ENV_NEW)? {
        Some(passphrase) => not_empty(passphrase),
        None => twice("New passphrase: "),
    }
}

/// What was given without asking, in this order: descriptor, file, environment.
fn given(fd: Option<u32>, file: Option<&Path>, env: &str) -> Result<Option<Passphrase>> {
    if let Some(fd) = fd {
        return from_fd(fd).map(Some);
    }
    if let Some(path) = file {
        let what = || format!("the passphrase file {}", path.display());
        let file = File::open(path).with_context(what)?;
        warn_if_open_to_all(&file, path).with_context(what)?;
        return first_line(&mut BufReader::new(file)).with_context(what).map(Some);
    }
    Ok(std::env::var_os(env).map(|value| {
        use std::os::unix::ffi::OsStringExt;
        normal(value.into_vec())
    }))
}

/// A secret that everybody on the computer may read is worth a word; it is used all the same.
fn warn_if_open_to_all(file: &File, path: &Path) -> std::io::Result<()> {
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

fn from_fd(fd: u32) -> Result<Passphrase> {
    // Standard input goes through the one buffer of the process, so that `put -` finds the rest.
    if fd == 0 {
        return first_line(&mut std::io::stdin().lock()).context("the passphrase on descriptor 0");
    }
    // By its path: taking over a bare number is not possible without `unsafe`.
    let path = PathBuf::from(format!("/dev/fd/{fd}"));
    let what = || format!("the passphrase on descriptor {fd}");
    let file = File::open(path).with_context(what)?;
    first_line(&mut BufReader::new(file)).with_context(what)
}

/// The first line without its end.
fn first_line(from: &mut dyn BufRead) -> Result<Passphrase> {
    // With all its room from the start the buffer never moves and leaves no copy behind.
    let mut line = Vec::with_capacity(MAX_LEN as usize + 1);
    from.take(MAX_LEN + 1).read_until(b'\n', &mut line)?;
    if line.len() as u64 > MAX_LEN {
        line.zeroize();
        return Err(usage("the first line is too long for a passphrase", "Is it the right file?"));
    }
    while matches!(line.last(), Some(b'\n' | b'\r')) {
        line.pop();
    }
    not_empty(normal(line))
}

/// The passphrase in Unicode's composed form, so that an accent typed on another keyboard or
/// system is the same accent. What is no text stays as it is.
fn normal(typed: Vec<u8>) -> Passphrase {
    let typed = Zeroizing::new(typed);
    match std::str::from_utf8(&typed) {
        Ok(text) => Passphrase::new(text.nfc().collect::<String>().into_bytes()),
        Err(_) => Passphrase::new(typed.to_vec()),
    }
}

fn not_empty(passphrase: Passphrase) -> Result<Passphrase> {
    if passphrase.is_empty() {
        return Err(usage("the passphrase is empty", "Choose one of several words."));
    }
    Ok(passphrase)
}

fn twice(question: &str) -> Result<Passphrase> {
    let first = prompt(question)?;
    let again = prompt("The same again: ")?;
    if first.same_as(&again) {
        return Ok(first);
    }
    Err(fault(Code::Usage, "the two passphrases differ", "Run the command again."))
}

fn prompt(question: &str) -> Result<Passphrase> {
    match rpassword::prompt_password(question) {
        Ok(typed) => {
            let typed = Zeroizing::new(typed);
            not_empty(normal(typed.as_bytes().to_vec()))
        }
        Err(error) if error.kind() == ErrorKind::Interrupted => {
            Err(fault(Code::General, "interrupted", ""))
        }
        Err(_) => Err(usage(
            "a passphrase is needed and there is no terminal to ask on",
            format!("Set {ENV}, or use --passphrase-file FILE or --passphrase-fd N."),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &[u8]) -> Result<Passphrase> {
        first_line(&mut &text[..])
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
        assert!(line(&[b'x'; 5000]).is_err());
        Ok(())
    }

    #[test]
    fn an_accent_is_the_same_however_it_is_typed() {
        let composed = normal("caf\u{e9}".into());
        assert!(composed.same_as(&normal("cafe\u{301}".into())));
        assert!(!composed.same_as(&normal("cafe".into())));
        assert!(normal(vec![0xff, 0x00]).same_as(&Passphrase::new(vec![0xff, 0x00])));
    }

    #[test]
    fn the_rest_stays_for_the_next_reader() -> Result<()> {
        let mut input = &b"secret\ncontent"[..];
        first_line(&mut input)?;
        assert_eq!(input, b"content");
        Ok(())
    }
}
