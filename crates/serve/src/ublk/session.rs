//! A served block device: its threads, and the mapping of its requests.

use super::fault::UblkFault;
use crate::error::{Doing, Error, Result};
use crate::nbd::DiskOptions;
use crate::nbd::request::{DiskAnswer, DiskOp, DiskQueue};
use crate::nbd::server::start;
use crate::server::Running;
use oblivio_ublk::{self as ublk, Answers, Device, DeviceParameters};
use oblivio_volume::disk::Disk;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};

/// A disk being served.
pub struct UblkServing {
    pub(super) queue: Arc<DiskQueue>,
    pub(super) device: Arc<Device>,
    /// The kernel's requests; the thread ends when the device is stopped.
    pub(super) requests: JoinHandle<io::Result<()>>,
    pub(super) server: Running,
}

impl UblkServing {
    /// The device's path.
    pub fn path(&self) -> PathBuf {
        self.device.path()
    }
}

/// Makes the device and serves it on threads of its own. `block_size` is its smallest read or write
/// in bytes; `None` for 4096, if the size allows it.
pub fn serve(disk: Disk, block_size: Option<u32>, options: DiskOptions) -> Result<UblkServing> {
    let parameters = parameters(&disk, block_size, options.read_only)?;
    let device = Arc::new(Device::add(&parameters).map_err(explain)?);
    let (kernel, answers) = match device.queue() {
        Ok(queue) => queue,
        Err(error) => {
            // Report the first error.
            let _ = device.delete();
            return Err(explain(error));
        }
    };
    let (queue, server) = start(disk, options)?;

    let (tell, first) = channel();
    let (asked, ended) = (Arc::clone(&queue), tell.clone());
    let requests = thread::Builder::new().name("ublk requests".into()).spawn(move || {
        let result = kernel.serve(|request| ask(&asked, &answers, request));
        let error = result.as_ref().err();
        let _ = ended.send(First::Ended(error.map_or_else(String::new, ToString::to_string)));
        result
    })?;
    let starting = Arc::clone(&device);
    thread::Builder::new().name("ublk start".into()).spawn(move || {
        let _ = tell.send(First::Started(starting.start()));
    })?;
    // Both senders live until they have sent.
    match first.recv().unwrap_or_else(|_| First::Ended(String::new())) {
        First::Started(Ok(())) => Ok(UblkServing { queue, device, requests, server }),
        First::Started(Err(error)) => {
            queue.kill();
            if device.stop().is_ok() && joined(requests).is_ok() {
                let _ = device.delete();
            }
            Err(explain(error))
        }
        First::Ended(why) => {
            queue.kill();
            Err(UblkFault::NoAnswers(why).into())
        }
    }
}

/// The first event. On start the driver waits for the queue, without an error if the queue has
/// ended.
enum First {
    Started(io::Result<()>),
    Ended(String),
}

/// Puts a request of the kernel into the server's queue.
fn ask(queue: &DiskQueue, answers: &Answers, request: ublk::UblkRequest) {
    let answers = answers.clone();
    let ublk::UblkRequest { tag, op } = request;
    queue.push(
        op_of(op),
        Box::new(move |answer| {
            let result = match answer {
                Ok(DiskAnswer::Data(data)) => Ok(data),
                Ok(DiskAnswer::Done | DiskAnswer::Extents(_)) => Ok(Vec::new()),
                // The protocol's numbers are Linux's.
                Err(errno) => Err(errno as i32),
            };
            answers.answer(tag, result);
        }),
    );
}

fn op_of(op: ublk::UblkOp) -> DiskOp {
    match op {
        ublk::UblkOp::Read { offset, len } => DiskOp::Read { offset, len },
        ublk::UblkOp::Write { offset, data, durable } => DiskOp::Write { offset, data, durable },
        ublk::UblkOp::Flush => DiskOp::Flush,
        ublk::UblkOp::Discard { offset, len } => DiskOp::Trim { offset, len, durable: false },
        ublk::UblkOp::Zeroes { offset, len, stay, durable } => {
            DiskOp::Zeroes { offset, len, stay, only_fast: false, durable }
        }
    }
}

/// The result of a thread.
pub fn joined(thread: JoinHandle<io::Result<()>>) -> Result<()> {
    match thread.join() {
        Ok(result) => result.doing("the driver failed"),
        Err(_) => Err(Error::Panicked("the thread that answers the kernel")),
    }
}

/// The device's parameters.
fn parameters(disk: &Disk, wanted: Option<u32>, read_only: bool) -> Result<DeviceParameters> {
    let (size, block) = (disk.size(), disk.block_bytes());
    let logical = match wanted {
        Some(bytes) if !(512..=4096).contains(&bytes) || !bytes.is_power_of_two() => {
            return Err(UblkFault::BlockSize.into());
        }
        Some(bytes) => bytes,
        None => [4096, 2048, 1024]
            .into_iter()
            .find(|&bytes| size % u64::from(bytes) == 0)
            .unwrap_or(512),
    };
    if size % u64::from(logical) != 0 {
        return Err(UblkFault::Uneven(logical).into());
    }
    // A write costs whole blocks of the volume, and programs should know their size.
    let best = u32::try_from(block.next_power_of_two()).unwrap_or(1 << 20).clamp(logical, 1 << 20);
    Ok(DeviceParameters { size, logical_block: logical, best_block: best, read_only })
}

/// The driver's or the system's error, in our words.
fn explain(source: io::Error) -> Error {
    match source.kind() {
        ErrorKind::NotFound => UblkFault::NoDriver.into(),
        ErrorKind::PermissionDenied => UblkFault::Forbidden(source).into(),
        _ => Error::System { doing: "the block device could not be made".into(), source },
    }
}
