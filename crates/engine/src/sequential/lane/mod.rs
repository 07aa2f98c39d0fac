//! A lane: a smaller engine that is written beside an outer one (docs/decisions/0051-lanes.md).
//!
//! A lane has the outer engine's schedule, with smaller buckets. Each flush of the outer engine
//! writes to each of the lane's levels a bucket, its map leaf, and a page for an inner node. Places
//! follow from the number of the outer flush alone, so they tell nothing of what the lane holds, or
//! whether it holds anything: [`LaneLayout`].
//!
//! A lane counts its own flushes, and misses those during which it is shut. Its rings are longer
//! than it needs. Until it missed as many flushes as its grace, nothing that it needs is
//! overwritten. It misses whole turns, so that its turns end with the outer ones.
//!
//! The lane's engine is a [`Sequential`](super::Sequential) like any other. It sees a disk of its
//! own, and [`LaneDisk`] says where that is.

mod disk;
mod gaps;
mod layout;
mod node_turns;

pub use disk::{LaneDisk, LanePiece};
pub use layout::LaneLayout;
