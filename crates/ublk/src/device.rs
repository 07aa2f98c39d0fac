//! A device from its addition to its end.

use crate::abi::{self, Control, DeviceParameters, INFO_BYTES, Numbering};
use crate::queue::{Answers, UblkQueue};
use crate::raw::ControlRing;
use rustix::fs::{Mode, OFlags};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// The driver's control device.
pub const CONTROL: &str = "/dev/ublk-control";

/// How long the system may take to create the nodes of a new device.
const NAMING: Duration = Duration::from_secs(5);
/// The errors of a driver that does not know a numbering of commands.
const UNKNOWN: [i32; 3] = [95, 524, 22];

/// A block device that this process serves.
///
/// Dropping it does not delete it: call [`Device::delete`].
pub struct Device {
    control: File,
    numbering: Numbering,
    id: u32,
    depth: u16,
}

impl Device {
    /// Adds a device; it is invisible before its start.
    ///
    /// # Errors
    /// `NotFound` when the system has no ublk driver; `PermissionDenied` when this user may not add
    /// devices, or `io_uring` is not allowed; `InvalidInput` when the parameters are invalid; else
    /// the driver's error.
    pub fn add(parameters: &DeviceParameters) -> io::Result<Self> {
        let parameters = parameters.bytes()?;
        let control = OpenOptions::new().read(true).write(true).open(CONTROL)?;
        let mut numbering = Numbering::Ioctl;
        let mut added = add(&control, numbering);
        if added.as_ref().is_err_and(is_unknown) {
            numbering = Numbering::Plain;
            added = add(&control, numbering);
        }
        let (id, depth) = abi::told(&added?);
        let device = Self { control, numbering, id, depth };
        let set = device.command(Control::SetParameters, 0, parameters.to_vec());
        if set.is_err() {
            // The first error is the one that counts.
            let _ = device.delete();
        }
        set.map(|()| device)
    }

    /// The device's path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/dev/ublkb{}", self.id).into()
    }

    /// The queue of its requests. Serve it on a thread of its own before starting the device.
    ///
    /// # Errors
    /// Those of the system.
    #[expect(clippy::disallowed_methods, reason = "the system names devices in its own time")]
    pub fn queue(&self) -> io::Result<(UblkQueue, Answers)> {
        let path = format!("/dev/ublkc{}", self.id);
        let since = Instant::now();
        let file = loop {
            // The system may still be creating the node and setting its permissions.
            match OpenOptions::new().read(true).write(true).open(&path) {
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::NotFound | ErrorKind::PermissionDenied
                    ) && since.elapsed() < NAMING =>
                {
                    thread::sleep(Duration::from_millis(20));
                }
                opened => break opened?,
            }
        };
        UblkQueue::new(file, self.numbering, self.depth)
    }

    /// Shows the device to the system, once its queue is served; the system begins to read it
    /// before this returns.
    ///
    /// # Errors
    /// Those of the driver. It does not return while the queue is not served.
    pub fn start(&self) -> io::Result<()> {
        self.command(Control::Start, u64::from(std::process::id()), Vec::new())
    }

    /// Whether it is mounted, or otherwise in exclusive use.
    #[must_use]
    pub fn in_use(&self) -> bool {
        let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
        let opened = rustix::fs::open(self.path(), flags, Mode::empty());
        opened.is_err_and(|error| error == rustix::io::Errno::BUSY)
    }

    /// Takes the device from the system, which first writes back its cache; then its queue ends.
    ///
    /// # Errors
    /// Those of the driver.
    pub fn stop(&self) -> io::Result<()> {
        self.command(Control::Stop, 0, Vec::new())
    }

    /// Deletes the rest of it, after its queue was dropped.
    ///
    /// # Errors
    /// Those of the driver.
    pub fn delete(&self) -> io::Result<()> {
        self.command(Control::Delete, 0, Vec::new())
    }

    fn command(&self, command: Control, value: u64, data: Vec<u8>) -> io::Result<()> {
        let head = abi::control(self.id, data.len(), value);
        let number = self.numbering.control(command);
        // A ring of its own for each: one command may wait for the effect of another.
        ControlRing::new()?.command(&self.control, number, head, data).map(drop)
    }
}

/// Adds a device; returns the driver's description. A ring of its own, as in [`Device::command`].
fn add(control: &File, numbering: Numbering) -> io::Result<[u8; INFO_BYTES]> {
    let head = abi::control(u32::MAX, INFO_BYTES, 0);
    let number = numbering.control(Control::Add);
    let told = ControlRing::new()?.command(control, number, head, abi::info().to_vec())?;
    told.try_into().map_err(|_| io::Error::other("the driver's answer has another length"))
}

fn is_unknown(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| UNKNOWN.contains(&code))
}
