//! The fuzz targets as plain functions. `tests/seeds.rs` runs them over the seeds and over every
//! input that ever crashed one, without libFuzzer.
//!
//! A panic is a bug. Each function also asserts the properties of every outcome.

mod engine;
mod input;
mod nbd;
mod partition;
mod records;
mod sequential;
mod share;
mod share_frame;
mod texts;
mod volume;
mod watch;

pub use engine::{bucket, engine_state};
pub use nbd::{choice, nbd};
pub use partition::partition_table;
pub use records::{commit, header, journal, key_slots};
pub use sequential::{map_node, quantum, sequential_state, sequential_times};
pub use share::{share_answer, share_ask, share_notice, share_record, share_state, states};
pub use share_frame::share_frame;
pub use texts::trace;
pub use volume::{fs_root, volume_state};
pub use watch::watch;
