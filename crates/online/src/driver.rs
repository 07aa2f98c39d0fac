//! What a service must do for an [`OnlineStore`](super::OnlineStore): six requests.

use super::failure::Fault;
use oblivio_store::PutMode;
use opendal::Buffer;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;

/// A request, ready to be sent. It waits at its store's gate, and ends in time.
pub(super) type Request<T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send>>;

/// What a service can do, beyond putting, getting, listing and deleting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Traits {
    /// How many requests of the store run at once.
    pub(super) at_once: usize,
    /// It refuses a put of a name that is taken, of several at once too.
    pub(super) creates: bool,
    /// A put may leave part of an object, and a rename replaces one atomically: so an object is
    /// sent under another name first.
    pub(super) renames: bool,
    /// It lists by prefix.
    pub(super) prefixes: bool,
    /// Its folder has to be made.
    pub(super) folder: bool,
}

/// A service. Names have been checked.
pub(super) trait Driver: Send + Sync {
    /// What it is called.
    fn scheme(&self) -> &'static str;
    /// What it can do.
    fn traits(&self) -> Traits;
    /// A range of an object, or as much of it as there is.
    fn get(&self, object: &str, range: Range<u64>) -> Request<Buffer>;
    /// The length of an object, `None` without one.
    fn len(&self, object: &str) -> Request<Option<u64>>;
    /// Stores an object as a whole. With [`PutMode::IfAbsent`] a name that is taken is refused.
    fn put(&self, object: &str, data: Buffer, mode: PutMode) -> Request<()>;
    /// How many objects one request deletes.
    fn deletes_at_once(&self) -> usize;
    /// Deletes objects. A missing one is no error.
    fn delete(&self, objects: &[&str]) -> Request<()>;
    /// The objects whose names begin so, with their lengths, sorted. Without a folder, none.
    fn list(&self, prefix: &str) -> Request<Vec<(String, u64)>>;
}
