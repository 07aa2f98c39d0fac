//! The line between a server of shared volumes and its clients.

use crate::input::Input;
use oblivio_share::fuzzing;

/// Frames as they come, or with right lengths around any heads and bodies.
pub fn share_frame(data: &[u8]) {
    let mut input = Input(data);
    if input.byte() == 0 {
        return fuzzing::frames(input.0);
    }
    let mut bytes = Vec::new();
    while input.more() {
        let (kind, head, body) = (input.byte(), input.byte(), input.byte());
        let head = input.take(usize::from(head)).to_vec();
        let body = input.take(usize::from(body)).to_vec();
        bytes.extend(fuzzing::frame_of(kind, &head, &body));
    }
    fuzzing::frames(&bytes);
}
