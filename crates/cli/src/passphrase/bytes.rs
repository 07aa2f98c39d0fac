//! A passphrase as bytes: its limit, its normal form, and its line in a file.

use crate::exit::usage;
use anyhow::Result;
pub(super) use oblivio_app::normal;
use oblivio_crypto::Passphrase;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use zeroize::Zeroizing;

/// Limit of a passphrase; a wrong file is noticed instead of read to its end.
pub(super) const MAX_LEN: usize = 4096;

/// A passphrase as bytes, wiped on drop.
pub(super) type Bytes = Zeroizing<Vec<u8>>;

/// The passphrase that these bytes are; no copy stays.
pub(super) fn passphrase(mut bytes: Bytes) -> Passphrase {
    Passphrase::new(std::mem::take(&mut *bytes))
}

/// Opens by path: taking over a bare number needs `unsafe`.
pub(super) fn open_fd(fd: u32) -> io::Result<File> {
    File::open(PathBuf::from(format!("/dev/fd/{fd}")))
}

/// The first line, which must not be empty: [`next_line`].
pub(super) fn first_line(read: impl FnMut(&mut [u8]) -> io::Result<usize>) -> Result<Bytes> {
    not_empty(next_line(read)?)
}

/// The next line without its end, read byte by byte: a buffer would keep a copy.
pub(super) fn next_line(mut read: impl FnMut(&mut [u8]) -> io::Result<usize>) -> Result<Bytes> {
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
        return Err(usage("the line is too long for a passphrase", "Is it the right file?"));
    }
    while line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(normal(line))
}

pub(super) fn not_empty(bytes: Bytes) -> Result<Bytes> {
    if bytes.is_empty() {
        return Err(usage("the passphrase is empty", "Choose one of several words."));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn line(mut text: &[u8]) -> Result<Passphrase> {
        first_line(|byte| text.read(byte)).map(passphrase)
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
    fn the_rest_stays_for_the_next_reader() -> Result<()> {
        let mut input = &b"secret\ncontent"[..];
        first_line(|byte| input.read(byte))?;
        assert_eq!(input, b"content");
        Ok(())
    }
}
