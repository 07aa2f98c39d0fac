//! A file that this client has open.

use crate::ahead::Ahead;
use crate::dirty::Dirty;
use crate::transactions::Session;
use crate::types::Timestamp;
use std::sync::{Arc, Mutex};

/// A file that this client has open.
#[derive(Default)]
pub struct ClientFile {
    pub opens: u64,
    /// The session that the inode names as a holder for this client.
    pub held: Option<Session>,
    /// It left the table of open files; look there again.
    pub gone: bool,
    pub dirty: Dirty,
    /// When data was written last.
    pub written: Timestamp,
    /// The session in which this client may have locks on it.
    pub locks: Option<Session>,
    /// The newest handle that was there when locks were lost: [`crate::PrivateFs::handle`].
    pub lost: u64,
    /// Behind a lock of its own: a read of what another one fetches waits for that.
    pub ahead: Arc<Mutex<Ahead>>,
}
