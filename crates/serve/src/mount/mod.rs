//! A volume as a directory, through FUSE.
//!
//! `kernel` puts requests into a queue, and one `server` works through it with `names`, `data` and
//! `directories`. `session` holds the threads together, `stop` ends them well,
//! `attach`, `remount` and `umount` deal with the mount itself.

mod adopt;
pub(crate) mod attach;
pub(crate) mod busy;
mod data;
mod directories;
mod fault;
mod kernel;
mod lane_status;
mod low_space;
mod names;
mod notices;
mod parts;
mod references;
mod remount;
mod request;
mod room;
mod server;
mod session;
mod stop;
mod tells;
#[cfg(test)]
pub(crate) mod tests;
mod threads;
mod umount;
pub mod within;
mod writers;

pub use adopt::adopt_root;
pub use attach::{Look, is_mounted};
pub use fault::{MountFault, MountRefusal};
pub use lane_status::lane_statuses;
pub use remount::{current, remount};
pub use session::{MountOptions, Mounted, READ_AHEAD, report_to, serve};
pub use stop::until_ended;
pub use umount::{LostFiles, UmountWait, umount};
