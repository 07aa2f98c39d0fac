//! As much of HTTP as the clients of an account use.

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::ops::Range;

/// A request. Its path and its query are as they were before they were escaped.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: BTreeMap<String, String>,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub(super) fn query(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }

    pub(super) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }
}

/// An answer.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// Only half of it arrives.
    pub(super) cut: bool,
}

impl Reply {
    pub(super) fn bytes(status: u16, body: Vec<u8>) -> Self {
        Self { status, headers: Vec::new(), body, cut: false }
    }

    pub(super) fn text(status: u16, text: &str) -> Self {
        Self::bytes(status, text.as_bytes().to_vec())
    }

    pub(super) fn json(status: u16, value: &Value) -> Self {
        let reply = Self::bytes(status, value.to_string().into_bytes());
        reply.header("content-type", "application/json")
    }

    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// All of a file, or the range that is asked for.
    pub(super) fn file(request: &Request, data: &[u8]) -> Self {
        let Some(wanted) = request.headers.get("range") else {
            return Self::bytes(200, data.to_vec());
        };
        match range(wanted, data.len()) {
            Some(range) => Self::bytes(206, data[range].to_vec()),
            None => Self::text(416, "the range is not there"),
        }
    }
}

fn range(text: &str, len: usize) -> Option<Range<usize>> {
    let (from, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let (from, last): (usize, usize) = (from.parse().ok()?, last.parse().ok()?);
    (from < len && from <= last).then(|| from..len.min(last + 1))
}

/// Answers the requests of a connection. One that ends in the middle of a request is no request.
pub(super) fn serve(
    line: &TcpStream,
    answer: &dyn Fn(&Request) -> Option<Reply>,
) -> io::Result<()> {
    line.set_nodelay(true)?;
    let mut reader = BufReader::new(line.try_clone()?);
    while let Some(request) = read(&mut reader)? {
        let Some(reply) = answer(&request) else { return Ok(()) };
        let mut head = format!("HTTP/1.1 {} X\r\n", reply.status);
        for (name, value) in &reply.headers {
            head += &format!("{name}: {value}\r\n");
        }
        if reply.status != 204 {
            head += &format!("content-length: {}\r\n", reply.body.len());
        }
        let cut = reply.cut && !reply.body.is_empty();
        let body = if cut { &reply.body[..reply.body.len() / 2] } else { &reply.body[..] };
        let mut line = line;
        line.write_all(&[head.as_bytes(), b"\r\n", body].concat())?;
        if cut {
            return Ok(());
        }
    }
    Ok(())
}

fn read(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let (mut first, mut headers) = (String::new(), BTreeMap::new());
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim().split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let len = headers.get("content-length").map_or(Ok(0), |len| len.parse());
    let mut body = vec![0; len.map_err(io::Error::other)?];
    reader.read_exact(&mut body)?;
    let mut words = first.split_whitespace();
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (method, path, query) = (method.to_owned(), unescaped(path), pairs(query));
    Ok(Some(Request { method, path, query, headers, body }))
}

/// The keys and values of a query or a form.
pub(super) fn pairs(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (unescaped(key), unescaped(&value.replace('+', " ")))).collect()
}

fn unescaped(text: &str) -> String {
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if *first == b'%' => {
                out.push(byte);
                rest = &after[2..];
            }
            _ => {
                out.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
