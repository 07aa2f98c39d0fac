//! Access to the page, and the headers of every answer.
//!
//! The page shows real access patterns, so only the user may load it. Another user of this computer
//! can reach the port but does not know the token. A web page in the user's own browser can make
//! requests here, but it can neither guess the token nor name this host as its own.

use oblivio_crypto::{Entropy, OsEntropy};
use std::fmt::Write;

/// The parts of a request that matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageRequest {
    pub method: String,
    pub path: String,
    /// The `Host` header; `None` if there is none, or more than one.
    pub host: Option<String>,
}

/// The verdict on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoorVerdict {
    Page,
    Stream,
    Forbidden,
    NotFound,
    WrongMethod,
}

/// The token and the address of one `oblivio watch`.
#[derive(Clone, Debug)]
pub struct PageDoor {
    token: String,
    port: u16,
}

impl PageDoor {
    /// A door with a new token.
    pub fn new(port: u16) -> Self {
        Self { token: random(), port }
    }

    /// A door whose token is known, for the fuzz target.
    pub fn known(token: &str, port: u16) -> Self {
        Self { token: token.into(), port }
    }

    /// The page's address: anyone who has it sees the page.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// Judges a request. Without the token the answer is always the same.
    pub fn judge(&self, request: &PageRequest) -> DoorVerdict {
        // The path may carry a query, which is ignored.
        let path = request.path.split('?').next().unwrap_or_default();
        let Some((token, rest)) = path.strip_prefix('/').and_then(|path| path.split_once('/'))
        else {
            return DoorVerdict::Forbidden;
        };
        if !self.is_our_host(request.host.as_deref()) || !same(token, &self.token) {
            return DoorVerdict::Forbidden;
        }
        match (request.method.as_str(), rest) {
            ("GET", "") => DoorVerdict::Page,
            ("GET", "events") => DoorVerdict::Stream,
            (_, "" | "events") => DoorVerdict::WrongMethod,
            _ => DoorVerdict::NotFound,
        }
    }

    /// A name that a foreign server resolves to this computer (DNS rebinding) is not among these.
    fn is_our_host(&self, host: Option<&str>) -> bool {
        let Some((name, port)) = host.and_then(|host| host.rsplit_once(':')) else { return false };
        matches!(name, "127.0.0.1" | "localhost") && port == self.port.to_string()
    }
}

/// 128 bits from the system, as letters and digits.
pub fn random() -> String {
    let mut bytes = [0; 16];
    OsEntropy.fill(&mut bytes);
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Takes the same time wherever the two differ.
fn same(given: &str, wanted: &str) -> bool {
    let differ = given.bytes().zip(wanted.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b));
    given.len() == wanted.len() && differ == 0
}

/// The page's policy: its own script and style, its own stream, nothing else from anywhere.
pub fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
         img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    )
}

/// The policy of every other answer.
pub const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";

/// Headers of every answer.
pub const HEADERS: &str = "Cache-Control: no-store\r\n\
    X-Content-Type-Options: nosniff\r\n\
    X-Frame-Options: DENY\r\n\
    Referrer-Policy: no-referrer\r\n\
    Cross-Origin-Opener-Policy: same-origin\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(door: &PageDoor, method: &str, path: &str, host: &str) -> DoorVerdict {
        let host = (!host.is_empty()).then(|| host.to_owned());
        door.judge(&PageRequest { method: method.into(), path: path.into(), host })
    }

    #[test]
    fn the_token_opens() {
        let door = PageDoor::new(4000);
        let (page, stream) = (format!("/{}/", door.token), format!("/{}/events", door.token));
        for host in ["127.0.0.1:4000", "localhost:4000"] {
            assert_eq!(asked(&door, "GET", &page, host), DoorVerdict::Page);
            assert_eq!(asked(&door, "GET", &format!("{page}?x=/"), host), DoorVerdict::Page);
            assert_eq!(asked(&door, "GET", &stream, host), DoorVerdict::Stream);
            assert_eq!(asked(&door, "POST", &stream, host), DoorVerdict::WrongMethod);
            assert_eq!(asked(&door, "GET", &format!("{page}other"), host), DoorVerdict::NotFound);
        }
        assert_eq!(door.url(), format!("http://127.0.0.1:4000{page}"));
    }

    #[test]
    fn nothing_else_does() {
        let door = PageDoor::new(4000);
        let token = door.token.clone();
        let other = PageDoor::new(4000).token;
        assert_ne!(token, other);
        let host = "127.0.0.1:4000";
        let (short, long) = (&token[1..], format!("{token}0"));
        for path in ["/", "", "/events", "//", "/favicon.ico", "*"] {
            assert_eq!(asked(&door, "GET", path, host), DoorVerdict::Forbidden, "{path}");
        }
        for wrong in ["", short, &long, &other, &token.to_uppercase().replace('0', "O")] {
            let path = format!("/{wrong}/");
            assert_eq!(asked(&door, "GET", &path, host), DoorVerdict::Forbidden, "{path}");
        }
        // The token in the wrong place, or a path in another case.
        assert_eq!(asked(&door, "GET", &format!("/?{token}/"), host), DoorVerdict::Forbidden);
        assert_eq!(asked(&door, "GET", &format!("/{token}"), host), DoorVerdict::Forbidden);
    }

    #[test]
    fn another_host_is_refused_even_with_the_token() {
        let door = PageDoor::new(4000);
        let path = format!("/{}/", door.token);
        for host in [
            "",
            "127.0.0.1",
            "localhost",
            "127.0.0.1:4001",
            "127.0.0.1:04000",
            "evil.example:4000",
            "localhost.evil.example:4000",
            "127.0.0.1:4000.evil.example",
            "user@127.0.0.1:4000",
            "[::1]:4000",
            "0.0.0.0:4000",
        ] {
            assert_eq!(asked(&door, "GET", &path, host), DoorVerdict::Forbidden, "{host}");
        }
    }
}
