//! The bytes of files. A server takes a quarter of a MiB at a time or less, so an object is many
//! parts, all under way at once.

use bytes::{Bytes, BytesMut};
use opendal::Buffer;
use openssh_sftp_client::file::File;
use openssh_sftp_client::{Error as Said, Sftp};
use std::io::{self, SeekFrom};
use std::ops::Range;
use std::pin::Pin;
use tokio::io::AsyncSeek;
use tokio::task::JoinHandle;

/// Bytes of a part: what every server takes.
const PART: usize = 32 << 10;

fn seek(file: &mut File, to: u64) -> Result<(), Said> {
    Ok(Pin::new(file).start_seek(SeekFrom::Start(to))?)
}

async fn done<T>(part: JoinHandle<Result<T, Said>>) -> Result<T, Said> {
    part.await.unwrap_or_else(|_| Err(Said::IOError(io::ErrorKind::Interrupted.into())))
}

/// A range of a file, or as much of it as there is; `None` if it ends before.
pub(super) async fn read(
    sftp: &Sftp,
    path: &str,
    range: Range<u64>,
) -> Result<Option<Buffer>, Said> {
    let mut file = sftp.open(path).await?;
    if range.is_empty() {
        let len = file.metadata().await?.len();
        return Ok(len.is_some_and(|len| range.start <= len).then(Buffer::new));
    }
    let starts = range.clone().step_by(PART);
    let parts: Vec<_> = starts
        .map(|start| {
            let (file, end) = (file.clone(), range.end.min(start + PART as u64));
            tokio::spawn(read_part(file, start..end))
        })
        .collect();
    let mut whole = BytesMut::with_capacity((range.end - range.start) as usize);
    let mut short = false;
    for (at, part) in parts.into_iter().enumerate() {
        let part = done(part).await?;
        // Behind a part that ends early there is nothing.
        if !short {
            short = part.len() < PART.min((range.end - range.start) as usize - at * PART);
            whole.extend_from_slice(&part);
        }
    }
    file.close().await?;
    Ok(Some(Buffer::from(whole.freeze())))
}

async fn read_part(mut file: File, range: Range<u64>) -> Result<BytesMut, Said> {
    let mut part = BytesMut::new();
    let wanted = (range.end - range.start) as usize;
    while part.len() < wanted {
        seek(&mut file, range.start + part.len() as u64)?;
        let rest = (wanted - part.len()) as u32;
        match file.read(rest, BytesMut::with_capacity(rest as usize)).await? {
            Some(more) => part.extend_from_slice(&more),
            None => break,
        }
    }
    Ok(part)
}

/// Writes a whole new file, and makes its bytes durable where the server can do that.
pub(super) async fn write(sftp: &Sftp, mut file: File, data: Buffer) -> Result<(), Said> {
    let data = data.to_bytes();
    let starts = (0..data.len()).step_by(PART);
    let parts: Vec<_> = starts
        .map(|start| {
            let part = data.slice(start..data.len().min(start + PART));
            tokio::spawn(write_part(file.clone(), start as u64, part))
        })
        .collect();
    for part in parts {
        done(part).await?;
    }
    if sftp.support_fsync() {
        file.sync_all().await?;
    }
    file.close().await
}

async fn write_part(mut file: File, start: u64, part: Bytes) -> Result<(), Said> {
    let mut written = 0;
    while written < part.len() {
        seek(&mut file, start + written as u64)?;
        written += file.write(&part[written..]).await?;
    }
    Ok(())
}
