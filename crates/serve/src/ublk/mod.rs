//! A volume as a block device of this computer, without a client in between.
//!
//! The kernel's requests go into the same queue as those of NBD clients, and the same server works
//! through it. `session` holds the threads together, `stop` ends it well.

mod fault;
mod session;
mod stop;

pub use fault::UblkFault;
pub use session::{UblkServing, serve};
pub use stop::until_ended;

use crate::error::Result;
use oblivio_ublk::CONTROL;
use std::path::Path;

/// Checks that the driver is loaded.
///
/// # Errors
/// It is not.
pub fn check_driver() -> Result<()> {
    match Path::new(CONTROL).exists() {
        true => Ok(()),
        false => Err(UblkFault::NoDriver.into()),
    }
}
