//! A volume as a disk, for any client of the network block device protocol.
//!
//! `negotiation` agrees on a connection; then `transmission` decodes its requests into one queue
//! for all connections. One `server` works through the queue on a
//! [`Disk`](oblivio_volume::disk::Disk), with `readers` beside it where reads are no accesses, and
//! `replies` go back. A budget bounds a client's requests under way. `session` holds the threads
//! together. `lanes` serves the volume's open lanes, each a `lane_export`; `carried` answers their
//! flushes. `listen` accepts clients, `tls` encrypts their connections if `certificates` are given,
//! `stop` ends them well, `wire` has the protocol's numbers. `within` serves blocks of another
//! kind.

mod certificates;
mod fault;
pub(crate) mod fuzzing;
mod listen;
mod negotiation;
mod readers;
mod replies;
pub(crate) mod request;
pub(crate) mod server;
mod session;
mod stop;
#[cfg(test)]
mod tests;
mod tls;
mod transmission;
pub(crate) mod wire;
pub mod within;

pub use certificates::config as tls_config;
pub use fault::{DiskFault, TlsFault};
pub use listen::{ListenGuard, ListenPlace, Listener};
pub use request::OnDiskRequest;
pub use rustls::ServerConfig as TlsConfig;
pub use server::DiskOptions;
pub use session::{DiskServing, serve};
pub use stop::until_ended;
