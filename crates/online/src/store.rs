//! [`OnlineStore`]: the objects of a service.

use super::begun::Begun;
use super::driver::Driver;
use super::failure::Failure;
use super::runtime::Runtime;
use oblivio_store::{
    Capabilities, Held, Objects, PutMode, ReadAt, Result, StoreAnswer, StoreCall, StoreError,
    check_name,
};
use opendal::Buffer;
use std::fmt;
use std::sync::Arc;

/// A store on a network. Clones are the same store, and share its limit of requests at once.
///
/// It keeps nobody out. Sessions are the business of a volume.
#[derive(Clone)]
pub struct OnlineStore(Arc<Inner>);

struct Inner {
    runtime: Runtime,
    driver: Box<dyn Driver>,
    begun: Begun,
}

/// The library's own words would show addresses.
impl fmt::Debug for OnlineStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let driver = &self.0.driver;
        out.debug_tuple("OnlineStore").field(&driver.scheme()).field(&driver.traits()).finish()
    }
}

impl OnlineStore {
    pub(super) fn new(runtime: &Runtime, driver: Box<dyn Driver>) -> Self {
        let runtime = runtime.clone();
        Self(Arc::new(Inner { runtime, driver, begun: Begun::default() }))
    }

    /// Whether an object is sent under another name first: a put that is cut leaves that one, and
    /// never a part of the object.
    #[must_use]
    pub fn renames(&self) -> bool {
        self.0.driver.traits().renames
    }

    /// Sends an object. [`Begun`] has the outcome for the call that waits for it.
    fn send(&self, name: &str, data: Buffer) {
        let request = self.0.driver.put(name, data, PutMode::Replace);
        let (name, inner) = (name.to_owned(), Arc::downgrade(&self.0));
        self.0.runtime.begin(request, move |answer| {
            if let Some(inner) = inner.upgrade() {
                inner.begun.ended(&name, answer);
            }
        });
    }

    /// The lengths of objects, side by side.
    fn ask_lens(&self, objects: &[&str]) -> Result<Vec<Option<u64>>> {
        let requests = objects.iter().map(|object| self.0.driver.len(object)).collect();
        let answers = self.0.runtime.all(requests).into_iter().zip(objects);
        answers.map(|(answer, object)| answer.map_err(|failure| failure.about(object))).collect()
    }

    /// What a failed or short read means. A service says so of the range or not at all, so the
    /// length has to be asked for.
    fn explain(&self, read: &ReadAt<'_>, failure: &Failure) -> StoreError {
        if !failure.is_range() {
            return failure.about(read.object);
        }
        let wanted = read.offset.saturating_add(read.buf.len() as u64);
        match self.ask_lens(&[read.object]).map(|lens| lens.into_iter().next().flatten()) {
            Ok(None) => StoreError::missing(read.object),
            Ok(Some(len)) if len < wanted => StoreError::short(read.object, len, wanted),
            Ok(Some(_)) => Failure::cut().about(read.object),
            Err(error) => error,
        }
    }
}

impl Held for OnlineStore {
    fn capabilities(&self) -> Capabilities {
        let creates_exclusively = self.0.driver.traits().creates;
        Capabilities { creates_exclusively, writes_over: false }
    }

    fn read(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        let mut requests = Vec::with_capacity(reads.len());
        for read in &*reads {
            check_name(read.object)?;
            let (object, len) = (read.object, read.buf.len());
            let end = read.offset.checked_add(len as u64);
            end.ok_or_else(|| StoreError::out_of_range(object))?;
        }
        let names: Vec<_> = reads.iter().map(|read| read.object).collect();
        self.0.begun.wait_for(&names);
        for read in &*reads {
            let end = read.offset + read.buf.len() as u64;
            requests.push(self.0.driver.get(read.object, read.offset..end));
        }
        let answers = self.0.runtime.all(requests);
        for (read, answer) in reads.iter_mut().zip(answers) {
            let answer = match answer {
                Ok(answer) if answer.len() < read.buf.len() => Err(Failure::beyond()),
                Ok(answer) if answer.len() > read.buf.len() => Err(Failure::no_ranges()),
                answer => answer,
            };
            match answer {
                Ok(answer) => read.buf.copy_from_slice(&answer.to_bytes()),
                Err(failure) => return Err(self.explain(read, &failure)),
            }
        }
        Ok(())
    }

    fn len(&self, object: &str) -> Result<Option<u64>> {
        self.lens(&[object]).map(|lens| lens.into_iter().next().flatten())
    }

    fn lens(&self, objects: &[&str]) -> Result<Vec<Option<u64>>> {
        objects.iter().try_for_each(|object| check_name(object))?;
        self.0.begun.wait_for(objects);
        self.ask_lens(objects)
    }

    fn list(&self) -> Result<Vec<(String, u64)>> {
        self.list_under("")
    }

    fn list_under(&self, prefix: &str) -> Result<Vec<(String, u64)>> {
        if !prefix.is_empty() {
            check_name(prefix)?;
        }
        self.0.begun.wait_under(prefix);
        let answer = self.0.runtime.one(self.0.driver.list(prefix));
        answer.map_err(|failure| failure.about(prefix))
    }
}

impl Objects for OnlineStore {
    fn put(&self, object: &str, data: &[u8], mode: PutMode) -> Result<()> {
        check_name(object)?;
        // A write of this name that failed is not sent again over what is put now.
        self.0.begun.forget(&[object]);
        let request = self.0.driver.put(object, Buffer::from(data.to_vec()), mode);
        let answer = self.0.runtime.one(request);
        answer.map_err(|failure| failure.about(object))
    }

    fn begin(&self, objects: &[(&str, &[u8])]) -> Result<()> {
        objects.iter().try_for_each(|(object, _)| check_name(object))?;
        objects.iter().try_for_each(|(object, data)| {
            let data = Buffer::from(data.to_vec());
            self.0.begun.begin(object, data, &|name, data| self.send(name, data))
        })
    }

    fn settle(&self, objects: &[&str]) -> Result<()> {
        objects.iter().try_for_each(|object| check_name(object))?;
        self.0.begun.settle(objects, &|name, data| self.send(name, data))
    }

    fn delete(&self, objects: &[&str]) -> Result<()> {
        objects.iter().try_for_each(|object| check_name(object))?;
        self.0.begun.forget(objects);
        let parts = objects.chunks(self.0.driver.deletes_at_once().max(1));
        let requests = parts.clone().map(|part| self.0.driver.delete(part)).collect();
        let mut answers = self.0.runtime.all(requests).into_iter().zip(parts);
        answers.try_for_each(|(answer, part)| answer.map_err(|failure| failure.about(part[0])))
    }

    fn answer(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        call.on_objects(self)
    }
}
