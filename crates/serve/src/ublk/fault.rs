//! Failures of the driver.

use oblivio_ublk::CONTROL;
use std::io;

/// Why there is no block device.
#[derive(Debug, thiserror::Error)]
pub enum UblkFault {
    /// The driver is not loaded.
    #[error("this system has no {}", CONTROL)]
    NoDriver,
    /// This user may not add devices.
    #[error("no block device may be added: {0}")]
    Forbidden(io::Error),
    /// The driver's queue ended before the device started.
    #[error("the driver takes no answers: {0}")]
    NoAnswers(String),
    /// The requested block size is none that a disk can have.
    #[error("a block size of that many bytes cannot be")]
    BlockSize,
    /// The size of the disk is no multiple of its blocks' size.
    #[error("the disk's size is no multiple of {0} bytes")]
    Uneven(u32),
}
