//! One request to an account, and what may come back.

use super::super::failure::{Fault, Kind, Said};
use super::super::secrets::StoreSecret;
use opendal::Buffer;
use reqwest::Method;
use serde_json::Value;
use std::io;

/// The longest answer that is no object, and the longest refusal.
pub(super) const MOST_JSON: usize = 16 << 20;
const MOST_REFUSAL: usize = 64 << 10;

/// A request. Clones share its bytes.
#[derive(Clone)]
pub(super) struct Ask {
    pub(super) method: Method,
    pub(super) url: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Buffer,
    /// The longest answer.
    pub(super) most: usize,
    /// It goes to whom the token is for.
    pub(super) with_token: bool,
}

impl Ask {
    pub(super) fn new(method: Method, url: String) -> Self {
        let (headers, body) = (Vec::new(), Buffer::new());
        Self { method, url, headers, body, most: MOST_JSON, with_token: true }
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) fn json(self, value: &Value) -> Self {
        let body = Buffer::from(value.to_string());
        Self { body, ..self }.header("content-type", "application/json")
    }

    pub(super) fn bytes(self, body: Buffer) -> Self {
        Self { body, ..self }.header("content-type", "application/octet-stream")
    }

    /// Asks for a range, which is not empty.
    pub(super) fn range(self, range: &std::ops::Range<u64>) -> Self {
        let most = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let value = format!("bytes={}-{}", range.start, range.end - 1);
        Self { most, ..self }.header("range", value)
    }

    /// How many bytes it moves, so that it has time for them.
    pub(super) fn moves(&self) -> u64 {
        let down = if self.most == MOST_JSON { 0 } else { self.most };
        (self.body.len() + down) as u64
    }
}

/// An answer that is none of a refusal.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) location: Option<String>,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn json(&self) -> Result<Value, Fault> {
        serde_json::from_slice(&self.body).map_err(|_| not_understood())
    }
}

/// An answer that no document of the service has.
pub(super) fn not_understood() -> Fault {
    Fault::Way(Some("its answer is not understood".to_owned()))
}

/// A refusal, for the driver to judge.
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) wait: Option<u64>,
    pub(super) body: Vec<u8>,
}

/// Understands a refusal.
pub(super) type Judge = fn(&Refusal) -> Said;

/// What most services mean by a status.
pub(super) fn kind_of(status: u16, wait: Option<u64>) -> Kind {
    use io::ErrorKind as Io;
    match status {
        401 => Kind::LoggedOut,
        403 => Kind::Io(Io::PermissionDenied),
        404 => Kind::Missing,
        409 | 412 => Kind::Exists,
        416 => Kind::Range,
        423 | 429 => Kind::Io(Io::ResourceBusy),
        503 if wait.is_some() => Kind::Io(Io::ResourceBusy),
        501 | 505 => Kind::Io(Io::Unsupported),
        507 => Kind::Full,
        400..=499 => Kind::Io(Io::InvalidInput),
        _ => Kind::Io(Io::ConnectionReset),
    }
}

/// A part of a path or a value of a query, as it is written in an address.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out += &format!("%{byte:02X}"),
        }
    }
    out
}

/// A text in an answer, or nothing.
pub(super) fn text_at(body: &[u8], pointer: &str) -> String {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Sends a request once.
pub(super) async fn once(
    http: &reqwest::Client,
    ask: &Ask,
    token: Option<&StoreSecret>,
    judge: Judge,
) -> Result<Answer, Fault> {
    let mut request = http.request(ask.method.clone(), &ask.url);
    for (name, value) in &ask.headers {
        request = request.header(*name, value);
    }
    if let Some(token) = token {
        request = request.bearer_auth(token.reveal());
    }
    let response = request.body(ask.body.to_bytes()).send().await.map_err(Fault::way)?;
    let status = response.status().as_u16();
    let header = |name| response.headers().get(name).and_then(|it| it.to_str().ok());
    let wait = header("retry-after").and_then(|it| it.trim().parse().ok());
    let location = header("location").map(str::to_owned);
    let answered = (200..400).contains(&status);
    let most = if answered { ask.most } else { MOST_REFUSAL };
    let body = read(response, most).await?;
    if answered {
        return Ok(Answer { status, location, body });
    }
    Err(Fault::Said(judge(&Refusal { status, wait, body })))
}

/// Reads an answer, which is no longer than this.
async fn read(mut response: reqwest::Response, most: usize) -> Result<Vec<u8>, Fault> {
    let mut body = Vec::with_capacity(most.min(1 << 20));
    while let Some(part) = response.chunk().await.map_err(Fault::way)? {
        if body.len() + part.len() > most {
            return Err(Fault::of(Kind::TooMuch));
        }
        body.extend_from_slice(&part);
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped() {
        assert_eq!(escaped("b-1_2.x~"), "b-1_2.x~");
        assert_eq!(escaped("a b/é'&"), "a%20b%2F%C3%A9%27%26");
    }
}
