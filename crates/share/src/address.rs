//! Where a shared volume is, and what a device needs to be admitted: one line of text.
//!
//! ```text
//! share://HOST:PORT/VOLUME                               where it is
//! share://HOST:PORT/VOLUME#FINGERPRINT.SECRET            with a token (both in hexadecimal)
//! ```

use crate::error::{Error, Result};
use crate::identity::Fingerprint;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use zeroize::Zeroizing;

/// The port, unless another one is named.
pub const PORT: u16 = 7420;
const SCHEME: &str = "share://";

/// Where a shared volume is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareAddress {
    /// The server's name or number.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The volume's name there.
    pub volume: String,
}

/// An address with what its server and a device know each other by. Its `Debug` hides the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// Where it is.
    pub address: ShareAddress,
    /// The server's certificate.
    pub fingerprint: Fingerprint,
    /// The device's secret.
    pub secret: Zeroizing<[u8; 32]>,
}

/// Whether this can name a volume or a device.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let begins = !name.starts_with(['.', '-']);
    !name.is_empty() && name.len() <= 64 && begins && name.chars().all(allowed)
}

/// As [`is_name`], with the error that says what a name is.
///
/// # Errors
/// `BadName`.
pub fn check_name(name: &str) -> Result<()> {
    if is_name(name) { Ok(()) } else { Err(Error::BadName(name.chars().take(80).collect())) }
}

impl ShareAddress {
    /// Reads an address.
    ///
    /// # Errors
    /// `BadAddress` with the reason.
    pub fn parse(text: &str) -> Result<Self> {
        Self::read(text, PORT)
    }

    /// That of a volume at a host, `HOST` or `HOST:PORT`. Without a port, it is 0.
    ///
    /// # Errors
    /// As for [`Self::parse`].
    pub fn at(host: &str, volume: &str) -> Result<Self> {
        Self::read(&format!("{SCHEME}{host}/{volume}"), 0)
    }

    fn read(text: &str, usual: u16) -> Result<Self> {
        let rest = text.strip_prefix(SCHEME).ok_or(Error::BadAddress("it begins with share://"))?;
        let (place, volume) =
            rest.split_once('/').ok_or(Error::BadAddress("a volume's name is missing"))?;
        check_name(volume)?;
        let (host, port) = match place.strip_prefix('[') {
            // Of the sixth version, with its colons.
            Some(six) => {
                let (host, port) =
                    six.split_once(']').ok_or(Error::BadAddress("`]` is missing"))?;
                (host, port.strip_prefix(':'))
            }
            None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
        };
        let port = port.map_or(Ok(usual), str::parse);
        let port = port.map_err(|_| Error::BadAddress("a port is a number"))?;
        let clean = |c: char| c.is_ascii_alphanumeric() || "-.:%_".contains(c);
        if host.is_empty() || !host.chars().all(clean) {
            return Err(Error::BadAddress("a server's name is missing"));
        }
        Ok(Self { host: host.into(), port, volume: volume.into() })
    }
}

impl fmt::Display for ShareAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, volume } = self;
        match host.contains(':') {
            true => write!(f, "{SCHEME}[{host}]:{port}/{volume}"),
            false => write!(f, "{SCHEME}{host}:{port}/{volume}"),
        }
    }
}

impl Token {
    /// Reads a token.
    ///
    /// # Errors
    /// `BadAddress` with the reason, which has nothing of the secret.
    pub fn parse(text: &str) -> Result<Self> {
        let (address, rest) =
            text.trim().split_once('#').ok_or(Error::BadAddress("the token is missing"))?;
        let (fingerprint, secret) =
            rest.split_once('.').ok_or(Error::BadAddress("the secret is missing"))?;
        let read = |text| unhex(text).ok_or(Error::BadAddress("the token is damaged"));
        Ok(Self {
            address: ShareAddress::parse(address)?,
            fingerprint: read(fingerprint)?,
            secret: Zeroizing::new(read(secret)?),
        })
    }

    /// The token as one line. It is a secret.
    #[must_use]
    pub fn line(&self) -> Zeroizing<String> {
        let Self { address, fingerprint, secret } = self;
        Zeroizing::new(format!("{address}#{}.{}", hex(fingerprint), hex(&**secret)))
    }

    /// Reads a file that holds one.
    ///
    /// # Errors
    /// Those of the system; `Open` if others may read it; `BadAddress`.
    pub fn load(path: &Path) -> Result<Self> {
        use crate::error::Doing;
        let found = fs::metadata(path).doing(path.display())?;
        if found.permissions().mode() & 0o077 != 0 {
            return Err(Error::Open(path.into()));
        }
        let text = Zeroizing::new(fs::read_to_string(path).doing(path.display())?);
        Self::parse(&text)
    }

    /// Stores it in a new file that only this user can read. It replaces none: that would be the
    /// token of another user.
    ///
    /// # Errors
    /// Those of the system.
    pub fn store(&self, path: &Path) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(self.line().as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Bytes in hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_back() {
        for text in ["share://nas:7420/team", "share://[::1]:99/a.b-c_d", "share://10.0.0.7:1/x"] {
            assert_eq!(ShareAddress::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(ShareAddress::parse("share://nas/team").unwrap().port, PORT);
        let bad = ["nas/team", "share://nas", "share:///x", "share://nas/", "share://nas/../x"];
        let worse = ["share://nas:x/t", "share://[::1/t", "share://a b/t", "share://nas/.t"];
        for text in bad.into_iter().chain(worse) {
            assert!(ShareAddress::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_token_is_one_line_and_hides_its_secret() {
        let address = ShareAddress::parse("share://nas/team").unwrap();
        let token = Token { address, fingerprint: [1; 32], secret: Zeroizing::new([0xab; 32]) };
        let line = token.line();
        assert_eq!(Token::parse(&format!(" {}\n", &*line)).unwrap(), token);
        assert!(!format!("{token:?}").contains("ab"));
        for end in [line.len() - 1, line.len() - 65, 20] {
            let error = Token::parse(&line[..end]).unwrap_err().to_string();
            assert!(!error.contains("abab"), "{error}");
        }
    }

    #[test]
    fn a_file_with_a_token_is_this_users() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let address = ShareAddress::parse("share://nas/team").unwrap();
        let token = Token { address, fingerprint: [1; 32], secret: Zeroizing::new([2; 32]) };
        token.store(&path).unwrap();
        assert!(token.store(&path).is_err(), "it is there");
        assert_eq!(Token::load(&path).unwrap(), token);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(Token::load(&path), Err(Error::Open(_))));
    }
}
