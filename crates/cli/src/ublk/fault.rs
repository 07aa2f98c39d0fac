//! Failures of the driver, with advice.

use crate::exit::{Code, fault};
use anyhow::Error;
use oblivio_ublk::CONTROL;
use std::io::{self, ErrorKind};

/// The driver is not loaded.
pub(super) fn not_there() -> Error {
    fault(
        Code::General,
        format!("this system has no {CONTROL}"),
        "Load the driver: modprobe ublk_drv. It comes with Linux 6.0 and later where \
         CONFIG_BLK_DEV_UBLK is set; elsewhere serve the disk with `oblivio nbd`.",
    )
}

/// The driver's or the system's error, with advice.
pub(super) fn explain(error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => not_there(),
        ErrorKind::PermissionDenied => fault(
            Code::General,
            format!("no block device may be added: {error}"),
            "Run it as root. If you are root, io_uring is switched off: see \
             /proc/sys/kernel/io_uring_disabled.",
        ),
        _ => Error::new(error).context("the block device could not be made"),
    }
}
