//! Folders behind SFTP.
//!
//! An object is sent under another name, made durable where the server can do that for a file, and
//! then gets its name by a rename, or by a link where it must be new. The server has no call that
//! makes a name durable. Requests of a store share a few lines.

mod ssh;
mod transfer;

use super::driver::{Driver, Request, Traits};
use super::failure::{Fault, Kind};
use super::gate::Gate;
use futures_core::Stream;
use oblivio_store::{PutMode, check_name};
use opendal::Buffer;
use openssh_sftp_client::Error as Said;
use openssh_sftp_client::error::SftpErrorKind;
use openssh_sftp_client::file::File;
use openssh_sftp_client::fs::Fs;
use ssh::Line;
use std::future::{Future, poll_fn};
use std::io::ErrorKind as Io;
use std::ops::Range;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::OnceCell;

pub(super) use ssh::Host;

/// Names that are tried for a new file.
const TRIES: u32 = 8;

/// A folder on a server. Clones are the same.
#[derive(Clone)]
pub(super) struct Sftp(Arc<Shared>);

struct Shared {
    host: Host,
    root: String,
    traits: Traits,
    gate: Arc<Gate>,
    idle: Mutex<Vec<Line>>,
    folder: OnceCell<()>,
}

impl Sftp {
    /// A folder, by its whole path.
    pub(super) fn new(host: Host, root: &str, traits: Traits) -> Self {
        let (gate, root) = (Gate::new(traits.at_once), root.trim_end_matches('/').to_owned());
        let (idle, folder) = (Mutex::default(), OnceCell::new());
        Self(Arc::new(Shared { host, root, traits, gate, idle, folder }))
    }

    fn ask<T: Send + 'static>(
        &self,
        bytes: u64,
        request: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> Request<T> {
        let gate = Arc::clone(&self.0.gate);
        Box::pin(async move { gate.pass(bytes, request).await })
    }

    /// The path of an object, for a request that has to own it.
    fn at(&self, object: &str) -> (Arc<Shared>, String) {
        (Arc::clone(&self.0), self.0.path(object))
    }
}

impl Shared {
    fn path(&self, object: &str) -> String {
        format!("{}/{object}", self.root)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Line>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A line that nobody uses.
    async fn line(&self) -> Result<Line, Fault> {
        let idle = self.idle().pop();
        match idle {
            Some(line) => Ok(line),
            None => self.host.connect().await,
        }
    }

    /// Gives a line back with what a request on it said. What broke one broke the others that wait.
    fn back<T>(&self, line: Line, said: Result<T, Said>) -> Result<T, Fault> {
        match said {
            Ok(done) => {
                self.idle().push(line);
                Ok(done)
            }
            Err(error @ Said::SftpError(..)) => {
                self.idle().push(line);
                Err(fault(&error))
            }
            Err(error) => {
                drop(line);
                self.idle().clear();
                Err(fault(&error))
            }
        }
    }

    /// Makes the folder before the first object. If that is refused and the folder is missing, the
    /// request that follows fails.
    async fn make_folder(&self, files: &mut Fs) -> Result<(), Said> {
        let make = async {
            for (at, _) in self.root.match_indices('/').skip(1) {
                refused_is_fine(files.create_dir(&self.root[..at]).await)?;
            }
            refused_is_fine(files.create_dir(&self.root).await)
        };
        self.folder.get_or_try_init(|| make).await.map(drop)
    }

    async fn put(&self, line: &Line, path: &str, data: Buffer, mode: PutMode) -> Result<(), Said> {
        let mut files = line.sftp.fs();
        self.make_folder(&mut files).await?;
        let (part, file) = part_of(line, path).await?;
        let mut done = transfer::write(&line.sftp, file, data).await;
        if done.is_ok() {
            done = give_name(line, &part, path, mode).await;
        }
        if mode == PutMode::IfAbsent || done.is_err() {
            // After a rename it is gone.
            refused_is_fine(files.remove_file(&part).await)?;
        }
        done
    }
}

/// A new file for the bytes of an object. Nobody else writes to it: not another client, and not a
/// request that was given up and arrives late.
async fn part_of(line: &Line, path: &str) -> Result<(String, File), Said> {
    static PARTS: AtomicU64 = AtomicU64::new(0);
    let (folder, name) = path.rsplit_once('/').unwrap_or_default();
    let mut refused = None;
    for _ in 0..TRIES {
        let (process, number) = (std::process::id(), PARTS.fetch_add(1, Ordering::Relaxed));
        let part = format!("{folder}/.{name}.{process:x}-{number:x}.part");
        match line.sftp.options().write(true).create_new(true).open(&part).await {
            Ok(file) => return Ok((part, file)),
            // Another computer may have the name.
            Err(error @ Said::SftpError(SftpErrorKind::Failure, _)) => refused = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(refused.unwrap_or(Said::UnsupportedExtension(&"exclusive creation")))
}

/// Gives a whole file its name.
async fn give_name(line: &Line, part: &str, path: &str, mode: PutMode) -> Result<(), Said> {
    let mut files = line.sftp.fs();
    if mode == PutMode::IfAbsent {
        // A link is refused if the name is taken, on all servers that know links.
        if line.sftp.support_hardlink() {
            return files.hard_link(part, path).await;
        }
        line.sftp.options().write(true).create_new(true).open(path).await.map(drop)?;
    }
    files.rename(part, path).await
}

fn refused_is_fine(done: Result<(), Said>) -> Result<(), Said> {
    match done {
        Err(Said::SftpError(..)) => Ok(()),
        done => done,
    }
}

fn fault(error: &Said) -> Fault {
    match error {
        Said::SftpError(SftpErrorKind::NoSuchFile, _) => Fault::of(Kind::Missing),
        Said::SftpError(SftpErrorKind::PermDenied, _) => Fault::of(Kind::Io(Io::PermissionDenied)),
        Said::SftpError(SftpErrorKind::OpUnsupported, _) => Fault::of(Kind::Io(Io::Unsupported)),
        Said::SftpError(..) => Fault::Way(Some("the server refused the request".to_owned())),
        _ => Fault::Way(Some("the line to the server ended".to_owned())),
    }
}

/// The length of a file, `None` without one.
async fn len(files: &mut Fs, path: &str) -> Result<Option<u64>, Said> {
    match files.metadata(path).await {
        Ok(it) if it.file_type().is_some_and(|kind| kind.is_file()) => Ok(it.len()),
        Ok(_) | Err(Said::SftpError(SftpErrorKind::NoSuchFile, _)) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn list(files: &mut Fs, root: &str, prefix: &str) -> Result<Vec<(String, u64)>, Said> {
    let mut found = Vec::new();
    let entries = match files.open_dir(root).await {
        // A folder that is not there yet.
        Err(Said::SftpError(SftpErrorKind::NoSuchFile, _)) => return Ok(found),
        folder => folder?.read_dir(),
    };
    let mut entries = pin!(entries);
    while let Some(entry) = poll_fn(|context| entries.as_mut().poll_next(context)).await {
        let entry = entry?;
        let (name, it) = (entry.filename().to_string_lossy(), entry.metadata());
        let is_file = it.file_type().is_some_and(|kind| kind.is_file());
        if is_file && name.starts_with(prefix) && check_name(&name).is_ok() {
            found.push((name.into_owned(), it.len().unwrap_or_default()));
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

impl Driver for Sftp {
    fn scheme(&self) -> &'static str {
        "sftp"
    }

    fn traits(&self) -> Traits {
        self.0.traits
    }

    fn get(&self, object: &str, range: Range<u64>) -> Request<Buffer> {
        let (at, path) = self.at(object);
        self.ask(range.end - range.start, async move {
            let line = at.line().await?;
            let read = transfer::read(&line.sftp, &path, range).await;
            at.back(line, read)?.ok_or_else(|| Fault::of(Kind::Range))
        })
    }

    fn len(&self, object: &str) -> Request<Option<u64>> {
        let (at, path) = self.at(object);
        self.ask(0, async move {
            let line = at.line().await?;
            let found = len(&mut line.sftp.fs(), &path).await;
            at.back(line, found)
        })
    }

    fn put(&self, object: &str, data: Buffer, mode: PutMode) -> Request<()> {
        let (at, path) = self.at(object);
        self.ask(data.len() as u64, async move {
            let line = at.line().await?;
            let mut done = at.put(&line, &path, data, mode).await.map(|()| true);
            if mode == PutMode::IfAbsent && matches!(done, Err(Said::SftpError(..))) {
                // A name that is taken is refused in words that say no more.
                let taken = len(&mut line.sftp.fs(), &path).await;
                done = match taken {
                    Ok(Some(_)) => Ok(false),
                    Ok(None) => done,
                    Err(error) => Err(error),
                };
            }
            match at.back(line, done)? {
                true => Ok(()),
                false => Err(Fault::of(Kind::Exists)),
            }
        })
    }

    fn deletes_at_once(&self) -> usize {
        1
    }

    fn delete(&self, objects: &[&str]) -> Request<()> {
        let at = Arc::clone(&self.0);
        let paths: Vec<String> = objects.iter().map(|object| at.path(object)).collect();
        self.ask(0, async move {
            let line = at.line().await?;
            let mut files = line.sftp.fs();
            let mut done = Ok(());
            for path in paths {
                done = match files.remove_file(&path).await {
                    Err(Said::SftpError(SftpErrorKind::NoSuchFile, _)) => Ok(()),
                    done => done,
                };
                if done.is_err() {
                    break;
                }
            }
            at.back(line, done)
        })
    }

    fn list(&self, prefix: &str) -> Request<Vec<(String, u64)>> {
        let (at, prefix) = (Arc::clone(&self.0), prefix.to_owned());
        self.ask(0, async move {
            let line = at.line().await?;
            let found = list(&mut line.sftp.fs(), &at.root, &prefix).await;
            at.back(line, found)
        })
    }
}
