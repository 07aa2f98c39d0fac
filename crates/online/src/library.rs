//! The services that the library OpenDAL speaks to.

use super::driver::{Driver, Request, Traits};
use super::failure::{Fault, has_word, was_refused};
use super::gate::Gate;
use oblivio_store::{PutMode, check_name};
use opendal::options::{ReadOptions, WriteOptions};
use opendal::{Buffer, ErrorKind, Operator};
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// A service behind the library, as requests carry it with them.
#[derive(Clone)]
pub(super) struct Library {
    operator: Operator,
    traits: Traits,
    gate: Arc<Gate>,
    folder: Arc<OnceCell<()>>,
}

impl Library {
    pub(super) fn new(operator: Operator, traits: Traits) -> Self {
        Self { operator, traits, gate: Gate::new(traits.at_once), folder: Arc::default() }
    }

    fn ask<T: Send + 'static>(
        &self,
        bytes: u64,
        request: impl Future<Output = Result<T, opendal::Error>> + Send + 'static,
    ) -> Request<T> {
        let gate = Arc::clone(&self.gate);
        Box::pin(
            async move { gate.pass(bytes, async { request.await.map_err(Fault::Refused) }).await },
        )
    }

    /// Makes the folder before the first object, where the service does not do so by itself.
    async fn make_folder(&self) -> opendal::Result<()> {
        if self.traits.folder {
            self.folder.get_or_try_init(|| self.operator.create_dir("/")).await?;
        }
        Ok(())
    }
}

impl Driver for Library {
    fn scheme(&self) -> &'static str {
        self.operator.info().scheme()
    }

    fn traits(&self) -> Traits {
        self.traits
    }

    fn get(&self, object: &str, range: Range<u64>) -> Request<Buffer> {
        let (operator, name) = (self.operator.clone(), object.to_owned());
        self.ask(range.end - range.start, async move {
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
        self.ask(0, async move {
            match operator.stat(&name).await {
                Ok(it) => Ok(it.is_file().then(|| it.content_length())),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(in_words(&operator, &name, error).await),
            }
        })
    }

    fn put(&self, object: &str, data: Buffer, mode: PutMode) -> Request<()> {
        let (service, name) = (self.clone(), object.to_owned());
        self.ask(data.len() as u64, async move {
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

    fn deletes_at_once(&self) -> usize {
        self.operator.info().capability().delete_max_size.unwrap_or(1)
    }

    fn delete(&self, objects: &[&str]) -> Request<()> {
        let operator = self.operator.clone();
        let names: Vec<String> = objects.iter().map(|&name| name.to_owned()).collect();
        self.ask(0, async move {
            match operator.delete_iter(names.clone()).await {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                Err(error) if was_refused(&error) && all_missing(&operator, &names).await => Ok(()),
                answer => answer,
            }
        })
    }

    fn list(&self, prefix: &str) -> Request<Vec<(String, u64)>> {
        let (operator, prefix) = (self.operator.clone(), prefix.to_owned());
        let path = if self.traits.prefixes { prefix.clone() } else { String::new() };
        self.ask(0, async move {
            let mut found = Vec::new();
            let entries = match operator.list(&path).await {
                // A folder that is not there yet; or a bucket, which has a word for it.
                Err(error) if error.kind() == ErrorKind::NotFound && !has_word(&error) => {
                    return Ok(found);
                }
                entries => entries?,
            };
            for entry in entries {
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

/// The refusal of a length in the service's words: the answer to such a question has none, so the
/// same is asked in another way.
async fn in_words(operator: &Operator, name: &str, error: opendal::Error) -> opendal::Error {
    if !was_refused(&error) || has_word(&error) {
        return error;
    }
    let options = ReadOptions { range: (0..1).into(), ..ReadOptions::default() };
    match operator.read_options(name, options).await {
        Err(said) if has_word(&said) => said,
        _ => error,
    }
}

/// Whether none of these objects is there. Servers have several words for the deletion of a missing
/// one: rclone's WebDAV answers that it is locked.
async fn all_missing(operator: &Operator, names: &[String]) -> bool {
    for name in names {
        let answer = operator.stat(name).await;
        if !answer.is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return false;
        }
    }
    true
}
