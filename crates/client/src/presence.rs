//! Which sessions are there: each has a block of its own while it lives, so that any client can
//! ask for another one's session.

use oblivio_engine::Action;
use oblivio_engine::pyramid::share::{Ask, Session};
use oblivio_engine::pyramid::{Name, Operation};

/// The owner of the blocks.
const SESSIONS: [u8; 16] = *b"oblivio sessions";

fn ask(session: Session, action: Action, and_read: bool) -> Ask {
    let name = Name { owner: SESSIONS, index: session.0 };
    Ask::new(name, Operation { action, and_read })
}

/// A session begins.
pub fn come(session: Session) -> Ask {
    ask(session, Action::Write(vec![1]), false)
}

/// A session has ended.
pub fn leave(session: Session) -> Ask {
    ask(session, Action::Remove, false)
}

/// Whether a session is there: then its block exists.
pub fn look(session: Session) -> Ask {
    ask(session, Action::Read, true)
}
