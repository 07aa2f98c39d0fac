//! How a server is asked to end.
//!
//! It ends in order on the first request. A second one, or a store that does nothing for [`GRACE`],
//! ends it at any price.

use std::time::Duration;

/// How long a store may do nothing while a server ends, and clients may take for their replies.
pub const GRACE: Duration = Duration::from_secs(10);

/// Asks a server to end.
pub type AskToEnd = Box<dyn Fn() + Send>;
