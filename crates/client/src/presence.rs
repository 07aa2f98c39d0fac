//! Which sessions are there: each has a block of its own while it lives, so that any client can
//! ask for another one's session.

use oblivio_privatefs::{Action, Ask, Compare, Name, Session};

/// The owner of the blocks.
const SESSIONS: [u8; 16] = *b"oblivio sessions";

fn block(session: Session) -> Name {
    Name { owner: SESSIONS, index: session.0 }
}

/// A session begins.
pub fn come(session: Session) -> Ask {
    Ask::change(block(session), Action::Write(vec![1]), Compare::Always)
}

/// A session has ended.
pub fn leave(session: Session) -> Ask {
    Ask::change(block(session), Action::Remove, Compare::Always)
}

/// Whether a session is there: then its block exists.
pub fn look(session: Session) -> Ask {
    Ask::read(block(session))
}
