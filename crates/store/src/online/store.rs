//! [`OnlineStore`]: a whole store over a service of objects.

use super::begun::Begun;
use super::failure::Failure;
use super::runtime::{Line, Request};
use crate::{
    Blobs, Capabilities, Held, Lease, LeaseKind, Log, PutMode, ReadAt, Result, Slots, StoreError,
    WriteAt, check_name,
};
use opendal::options::{ReadOptions, WriteOptions};
use opendal::{Buffer, ErrorKind, Operator};
use std::fmt;
use std::sync::Arc;
use tokio::sync::OnceCell;

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
    /// It keeps what it has answered, also without power.
    pub(super) durable: bool,
    /// A put replaces an object as a whole.
    pub(super) atomic: bool,
}

/// A store on a network. Clones are the same store, and share its limit of requests at once.
///
/// It keeps nobody out: [`Lease::lock`] is granted. Sessions are the business of a volume.
#[derive(Clone)]
pub struct OnlineStore(Arc<Inner>);

struct Inner {
    line: Line,
    service: Service,
    begun: Begun,
}

/// The service, as requests carry it with them.
#[derive(Clone)]
struct Service {
    operator: Operator,
    traits: Traits,
    folder: Arc<OnceCell<()>>,
}

/// The library's own words would show addresses.
impl fmt::Debug for OnlineStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let service = &self.0.service;
        let scheme = service.operator.info().scheme();
        out.debug_tuple("OnlineStore").field(&scheme).field(&service.traits).finish()
    }
}

impl OnlineStore {
    pub(super) fn new(line: Line, operator: Operator, traits: Traits) -> Self {
        let service = Service { operator, traits, folder: Arc::default() };
        Self(Arc::new(Inner { line, service, begun: Begun::default() }))
    }

    /// Sends an object. [`Begun`] has the outcome for the call that waits for it.
    fn send(&self, name: &str, data: Buffer) {
        let request = self.0.service.put(name, data.clone(), PutMode::Replace);
        let (name, inner) = (name.to_owned(), Arc::downgrade(&self.0));
        self.0.line.begin(data.len() as u64, request, move |answer| {
            if let Some(inner) = inner.upgrade() {
                inner.begun.ended(&name, answer);
            }
        });
    }

    /// The lengths of objects, side by side.
    fn ask_lens(&self, objects: &[&str]) -> Result<Vec<Option<u64>>> {
        let requests = objects.iter().map(|object| (0, self.0.service.len(object))).collect();
        let answers = self.0.line.all(requests).into_iter().zip(objects);
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

impl Service {
    fn get(&self, object: &str, offset: u64, len: usize) -> Request<Buffer> {
        let (operator, name) = (self.operator.clone(), object.to_owned());
        let range = offset..offset.saturating_add(len as u64);
        Box::pin(async move {
            if range.is_empty() {
                let it = operator.stat(&name).await?;
                let there = it.content_length() >= range.start;
                let beyond = || opendal::Error::new(ErrorKind::RangeNotSatisfied, "beyond the end");
                return if there { Ok(Buffer::new()) } else { Err(beyond()) };
            }
            let options = ReadOptions { range: range.into(), ..ReadOptions::default() };
            operator.read_options(&name, options).await
        })
    }

    fn len(&self, object: &str) -> Request<Option<u64>> {
        let (operator, name) = (self.operator.clone(), object.to_owned());
        Box::pin(async move {
            match operator.stat(&name).await {
                Ok(it) => Ok(it.is_file().then(|| it.content_length())),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        })
    }

    fn put(&self, object: &str, data: Buffer, mode: PutMode) -> Request<()> {
        let (service, name) = (self.clone(), object.to_owned());
        Box::pin(async move {
            let operator = &service.operator;
            service.make_folder().await?;
            let content_type = Some("application/octet-stream".to_owned());
            let if_not_exists = mode == PutMode::IfAbsent && service.traits.creates;
            if mode == PutMode::IfAbsent && !if_not_exists && operator.exists(&name).await? {
                return Err(opendal::Error::new(ErrorKind::AlreadyExists, "the name is taken"));
            }
            let options = WriteOptions { content_type, if_not_exists, ..WriteOptions::default() };
            if service.traits.renames && !if_not_exists {
                // The same part for each attempt: a retry leaves nothing else behind.
                let part = format!(".{name}.part");
                operator.write_options(&part, data, options).await?;
                return operator.rename(&part, &name).await;
            }
            operator.write_options(&name, data, options).await.map(drop)
        })
    }

    /// Makes the folder before the first object, where the service does not do so by itself.
    async fn make_folder(&self) -> opendal::Result<()> {
        if self.traits.folder {
            self.folder.get_or_try_init(|| self.operator.create_dir("/")).await?;
        }
        Ok(())
    }

    fn delete(&self, objects: &[&str]) -> Request<()> {
        let operator = self.operator.clone();
        let names: Vec<String> = objects.iter().map(|&name| name.to_owned()).collect();
        Box::pin(async move { operator.delete_iter(names).await })
    }

    fn list(&self, prefix: &str) -> Request<Vec<(String, u64)>> {
        let (operator, prefix) = (self.operator.clone(), prefix.to_owned());
        let path = if self.traits.prefixes { prefix.clone() } else { String::new() };
        Box::pin(async move {
            let mut found = Vec::new();
            for entry in operator.list(&path).await? {
                let (name, it) = (entry.name(), entry.metadata());
                let ours = it.is_file() && name.starts_with(&prefix) && check_name(name).is_ok();
                if ours {
                    found.push((name.to_owned(), it.content_length()));
                }
            }
            found.sort();
            found.dedup();
            Ok(found)
        })
    }
}

impl Held for OnlineStore {
    fn capabilities(&self) -> Capabilities {
        let traits = self.0.service.traits;
        Capabilities {
            durable: traits.durable,
            replaces_atomically: traits.atomic,
            creates_exclusively: traits.creates,
            writes_over: false,
            versions: false,
            frees_discarded: false,
            reserves_space: false,
            knows_free_space: false,
            lease: LeaseKind::Granted,
        }
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
        self.0.begun.settle(&names);
        for read in &*reads {
            let len = read.buf.len();
            requests.push((len as u64, self.0.service.get(read.object, read.offset, len)));
        }
        let answers = self.0.line.all(requests);
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
        self.0.begun.settle(objects);
        self.ask_lens(objects)
    }

    fn list(&self) -> Result<Vec<(String, u64)>> {
        self.list_under("")
    }

    fn list_under(&self, prefix: &str) -> Result<Vec<(String, u64)>> {
        if !prefix.is_empty() {
            check_name(prefix)?;
        }
        self.0.begun.settle_under(prefix);
        match self.0.line.one(0, self.0.service.list(prefix)) {
            // A folder that is not there yet.
            Err(failure) if failure.is_missing() => Ok(Vec::new()),
            answer => answer.map_err(|failure| failure.about(prefix)),
        }
    }
}

/// A request of what a service cannot do.
fn whole_only<T>(object: &str) -> Result<T> {
    check_name(object)?;
    Err(StoreError::refused(object, "an online store writes whole objects only"))
}

impl Log for OnlineStore {
    fn write_durable(&self, object: &str, offset: u64, data: &[u8]) -> Result<()> {
        self.write(&[WriteAt::new(object, offset, data)])?;
        self.sync(&[object])
    }

    fn truncate(&self, object: &str, _len: u64) -> Result<()> {
        whole_only(object)
    }
}

impl Slots for OnlineStore {
    fn write(&self, writes: &[WriteAt<'_>]) -> Result<()> {
        for write in writes {
            check_name(write.object)?;
            if write.offset != 0 {
                return whole_only(write.object);
            }
        }
        for write in writes {
            let data = Buffer::from(write.data.to_vec());
            self.0.begun.begin(write.object, data, &|name, data| self.send(name, data))?;
        }
        Ok(())
    }

    fn sync(&self, objects: &[&str]) -> Result<()> {
        objects.iter().try_for_each(|object| check_name(object))?;
        self.0.begun.sync(objects, &|name, data| self.send(name, data))
    }

    fn allocate(&self, object: &str, _len: u64) -> Result<()> {
        whole_only(object)
    }

    fn discard(&self, ranges: &[(&str, u64, u64)]) -> Result<()> {
        ranges.first().map_or(Ok(()), |(object, _, _)| whole_only(object))
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }
}

impl Blobs for OnlineStore {
    fn put(&self, object: &str, data: &[u8], mode: PutMode) -> Result<()> {
        check_name(object)?;
        // A write of this name that failed is not sent again over what is put now.
        self.0.begun.forget(&[object]);
        let request = self.0.service.put(object, Buffer::from(data.to_vec()), mode);
        let answer = self.0.line.one(data.len() as u64, request);
        answer.map_err(|failure| failure.about(object))
    }

    fn delete(&self, objects: &[&str]) -> Result<()> {
        objects.iter().try_for_each(|object| check_name(object))?;
        self.0.begun.forget(objects);
        let many = self.0.service.operator.info().capability().delete_max_size;
        let parts = objects.chunks(many.unwrap_or(1).max(1));
        let requests = parts.clone().map(|part| (0, self.0.service.delete(part))).collect();
        for (answer, part) in self.0.line.all(requests).into_iter().zip(parts) {
            match answer {
                Err(failure) if !failure.is_missing() => return Err(failure.about(part[0])),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Lease for OnlineStore {
    fn lock(&self) -> Result<()> {
        Ok(())
    }
}
