//! SqORAM: oblivious writes, for an adversary who sees writes only (PoPETs 2020).

mod access_time_map;
mod config;
mod ids;
mod layout;
mod map_shape;
mod merge_buffer;
mod placement;
mod schedule;
mod seal;
mod write_queue;

pub use access_time_map::{AccessTimeMap, Accessed};
pub use config::SequentialConfig;
pub use ids::{Bucket, Flush, Generation, Slot, Turn};
pub use layout::{Cost, Extent, Layout};
pub use map_shape::{MapShape, NodeAt};
pub use merge_buffer::{Entry, MergeBuffer, Origin, Pick};
pub use placement::{Found, Placement, Planned};
pub use schedule::{Home, Schedule};
pub use write_queue::WriteQueue;
