//! Shared volumes on trial: the suites that every [`Share`] passes,
//! doubles that fail and lag, and a recorder of what the server sees.

mod clock;
mod fault;
mod latency;
mod model;
mod record;
mod rig;
mod suites;

pub use clock::TestClock;
pub use fault::{FaultShare, When};
pub use latency::LatencyShare;
pub use model::model;
pub use record::{RecordShare, Seen};
pub use rig::{Rig, SLOT, ask_id, entry_of_asks, session_of};
pub use suites::{refused_ask, suites};

use oblivio_store::share::{Share, ShareClock};

/// Opens one shared volume. A later call opens it again, once the first one is dropped.
pub type ShareOpener = Box<dyn Fn() -> Box<dyn Share>>;

/// Makes an opener of a new, empty volume whose leases follow the clock.
pub type FreshShare<'a> = &'a dyn Fn(ShareClock) -> ShareOpener;
