//! What an account does, as its own file says it, and how that becomes the driver of a store.

use super::super::driver::{Driver, Request, Traits};
use super::super::failure::Fault;
use oblivio_store::PutMode;
use opendal::Buffer;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;

/// An account of a service. As for a [`Driver`], whose words say what each request does.
pub(super) trait Account: Send + Sync + 'static {
    const SCHEME: &'static str;
    const TRAITS: Traits;
    /// How many objects one request deletes.
    const DELETES: usize = 1;

    fn get(
        &self,
        object: &str,
        range: &Range<u64>,
    ) -> impl Future<Output = Result<Buffer, Fault>> + Send;

    fn len(&self, object: &str) -> impl Future<Output = Result<Option<u64>, Fault>> + Send;

    fn put(
        &self,
        object: &str,
        data: Buffer,
        mode: PutMode,
    ) -> impl Future<Output = Result<(), Fault>> + Send;

    fn delete(&self, objects: Vec<String>) -> impl Future<Output = Result<(), Fault>> + Send;

    fn list(&self, prefix: &str) -> impl Future<Output = Result<Vec<(String, u64)>, Fault>> + Send;
}

/// An account that requests carry with them.
pub(super) struct Shared<A>(Arc<A>);

impl<A> Shared<A> {
    pub(super) fn new(account: A) -> Self {
        Self(Arc::new(account))
    }
}

impl<A: Account> Driver for Shared<A> {
    fn scheme(&self) -> &'static str {
        A::SCHEME
    }

    fn traits(&self) -> Traits {
        A::TRAITS
    }

    fn get(&self, object: &str, range: Range<u64>) -> Request<Buffer> {
        let (it, object) = (Arc::clone(&self.0), object.to_owned());
        Box::pin(async move { it.get(&object, &range).await })
    }

    fn len(&self, object: &str) -> Request<Option<u64>> {
        let (it, object) = (Arc::clone(&self.0), object.to_owned());
        Box::pin(async move { it.len(&object).await })
    }

    fn put(&self, object: &str, data: Buffer, mode: PutMode) -> Request<()> {
        let (it, object) = (Arc::clone(&self.0), object.to_owned());
        Box::pin(async move { it.put(&object, data, mode).await })
    }

    fn deletes_at_once(&self) -> usize {
        A::DELETES
    }

    fn delete(&self, objects: &[&str]) -> Request<()> {
        let it = Arc::clone(&self.0);
        let objects = objects.iter().map(|&object| object.to_owned()).collect();
        Box::pin(async move { it.delete(objects).await })
    }

    fn list(&self, prefix: &str) -> Request<Vec<(String, u64)>> {
        let (it, prefix) = (Arc::clone(&self.0), prefix.to_owned());
        Box::pin(async move { it.list(&prefix).await })
    }
}
