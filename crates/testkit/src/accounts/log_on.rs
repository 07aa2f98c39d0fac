//! How somebody logs on: a page that sends the browser back with a code, and tokens for the code.

use super::http::{self, Reply, Request};
use super::state::{CLIENT_ID, Code, Kind, State};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;

/// The secret that Google gives to programs for desktops, too.
pub(super) const CLIENT_SECRET: &str = "canary-client-secret";

/// Whether a request is for the page at which users log on.
pub(super) fn is_page(path: &str) -> bool {
    let pages = ["/oauth2/authorize", "/o/oauth2/v2/auth", "/common/oauth2/v2.0/authorize"];
    pages.contains(&path)
}

/// The page. Its user is logged on already, and says yes at once.
pub(super) fn page(state: &mut State, request: &Request, kind: Kind) -> Reply {
    let redirect = request.query("redirect_uri");
    let registered = match kind {
        // It compares the host as a text.
        Kind::OneDrive => redirect.starts_with("http://localhost:"),
        Kind::Dropbox | Kind::GDrive => redirect.starts_with("http://127.0.0.1:"),
    };
    if !registered || request.query("client_id") != CLIENT_ID {
        return Reply::text(400, "this program or its address is not registered");
    }
    let challenge = request.query("code_challenge").to_owned();
    let wants = [("response_type", "code"), ("code_challenge_method", "S256")];
    let state_of = request.query("state");
    if wants.iter().any(|(key, value)| request.query(key) != *value)
        || challenge.len() != 43
        || state_of.is_empty()
        || request.query("scope").is_empty()
    {
        return Reply::text(400, "the request is not as the documents say");
    }
    let offline = match kind {
        Kind::Dropbox => request.query("token_access_type") == "offline",
        Kind::GDrive => request.query("access_type") == "offline",
        Kind::OneDrive => request.query("scope").contains("offline_access"),
    };
    let back = if state.codes.denied {
        format!("error=access_denied&state={state_of}")
    } else {
        state.codes.count += 1;
        let code = format!("canary-code-{}", state.codes.count);
        let redirect = redirect.to_owned();
        state.codes.given.insert(code.clone(), Code { challenge, redirect, offline });
        format!("code={code}&state={state_of}")
    };
    let slash = if redirect.ends_with('/') { "" } else { "/" };
    Reply::text(302, "").header("location", &format!("{redirect}{slash}?{back}"))
}

/// Whether a request is for tokens, and brings a code.
pub(super) fn brings_code(request: &Request) -> bool {
    let form = http::pairs(&String::from_utf8_lossy(&request.body));
    form.get("grant_type").is_some_and(|it| it == "authorization_code")
}

/// Tokens for a code, which is good for once, and for who asked for it.
pub(super) fn exchange(state: &mut State, request: &Request, kind: Kind) -> Reply {
    let form = http::pairs(&String::from_utf8_lossy(&request.body));
    let refused = |word: &str| Reply::json(400, &json!({ "error": word }));
    let value = |key: &str| form.get(key).cloned().unwrap_or_default();
    if value("client_id") != CLIENT_ID
        || kind == Kind::GDrive && value("client_secret") != CLIENT_SECRET
    {
        return refused("invalid_client");
    }
    // A wrong attempt uses it up.
    let Some(code) = state.codes.given.remove(&value("code")) else {
        return refused("invalid_grant");
    };
    if code.redirect != value("redirect_uri") || code.challenge != s256(&value("code_verifier")) {
        return refused("invalid_grant");
    }
    let mut body = json!({ "access_token": state.new_access(), "token_type": "bearer",
        "expires_in": state.expires_in });
    if code.offline {
        body["refresh_token"] = json!(state.new_refresh());
    }
    Reply::json(200, &body)
}

/// The challenge of a verifier, as RFC 7636 has it.
fn s256(verifier: &str) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, verifier.as_bytes());
    let bit = |at: usize| hash.as_ref().get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
    let letter = |at: usize| (0..6).fold(0, |word, of| word << 1 | bit(6 * at + of));
    (0..43).map(|at| char::from(LETTERS[usize::from(letter(at))])).collect()
}

/// What a browser gets for an address of this computer: the status, and where it is sent on to.
///
/// # Panics
/// When nobody answers there.
#[must_use]
pub fn browse(address: &str) -> (u16, Option<String>) {
    let rest = address.strip_prefix("http://").expect("an address without TLS");
    let (host, target) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.replace("localhost", "127.0.0.1");
    let mut line = TcpStream::connect(&host).expect("somebody answers");
    let target = if target.is_empty() { "/" } else { target };
    write!(line, "GET {target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")
        .expect("it is sent");
    // A server that keeps the connection open is not waited for: the head is enough.
    let (mut answer, mut part) = (Vec::new(), [0; 1024]);
    while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
        match line.read(&mut part).expect("an answer") {
            0 => break,
            count => answer.extend_from_slice(&part[..count]),
        }
    }
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
    let location = answer.lines().find_map(|line| line.strip_prefix("location: "));
    (status, location.map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::s256;

    /// The values of RFC 7636, appendix B.
    #[test]
    fn the_challenge_is_that_of_the_standard() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(s256(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }
}
