//! The input of `oblivio watch`: from commands, and from browsers.

use crate::input::Input;
use oblivio_serve::fuzzing::{self, Asked};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const PORT: u16 = 4000;

/// A feed: what it parses is equal after re-encoding, and pages get JSON without a line end in it.
/// A request: it is let in only if it knows the token.
pub fn watch(data: &[u8]) {
    let mut input = Input(data);
    match input.byte() {
        0 => feed(input.0),
        1 => {
            // Frames with any content.
            let mut framed = Vec::new();
            while input.more() {
                let len = usize::from(input.u16());
                let body = input.take(len);
                framed.extend_from_slice(&(body.len() as u32).to_le_bytes());
                framed.extend_from_slice(body);
            }
            feed(&framed);
        }
        _ => {
            let asked = fuzzing::watch_request(input.0, (TOKEN, PORT));
            let known = input.0.windows(TOKEN.len()).any(|part| part == TOKEN.as_bytes());
            assert!(known || asked != Asked::LetIn, "let in without the token");
        }
    }
}

fn feed(said: &[u8]) {
    let (again, told) = fuzzing::watch_feed(said);
    assert_eq!(fuzzing::watch_feed(&again), (again.clone(), told.clone()), "another meaning");
    for message in told {
        assert!(!message.contains(['\n', '\r']), "a message is one line");
        assert!(message.starts_with('{') && message.ends_with('}'), "and JSON: {message}");
    }
}
