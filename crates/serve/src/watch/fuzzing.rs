//! Feeds and requests from memory instead of a socket.

use super::access::{DoorVerdict, PageDoor};
use super::event;
use super::http::read_request;
use super::hub::Hub;

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The page or its stream.
    LetIn,
    /// An error answer.
    Refused,
    /// Not a request.
    Nonsense,
}

/// See [`crate::fuzzing::watch_feed`].
pub fn feed(mut said: &[u8]) -> (Vec<u8>, Vec<String>) {
    let hub = Hub::default();
    let (first, messages) = hub.page();
    let mut again = Vec::new();
    while let Ok(Some(event)) = event::read(&mut said) {
        event::write(&mut again, &event).expect("what was read is no longer than a frame");
        hub.event(&event);
    }
    let told = first.iter().map(|message| message.to_string());
    (again, told.chain(messages.try_iter().map(|message| message.to_string())).collect())
}

/// See [`crate::fuzzing::watch_request`].
pub fn request(mut said: &[u8], (token, port): (&str, u16)) -> Asked {
    match read_request(&mut said) {
        Ok(Some(request)) => match PageDoor::known(token, port).judge(&request) {
            DoorVerdict::Page | DoorVerdict::Stream => Asked::LetIn,
            DoorVerdict::Forbidden | DoorVerdict::NotFound | DoorVerdict::WrongMethod => {
                Asked::Refused
            }
        },
        _ => Asked::Nonsense,
    }
}
