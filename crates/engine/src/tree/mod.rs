//! Path ORAM with Freecursive's front end.
//!
//! The way of a request: [`TreeOram`] (front end: position map, PLB, PMMAC) asks its [`Backend`]
//! for paths; the back end moves blocks between stash, cache and buckets.

mod backend;
mod batch;
mod bitset;
mod block_pool;
mod bounds;
mod bucket_cache;
mod buffer_pool;
mod changes;
pub mod config;
mod delta;
mod doubt;
mod eviction;
mod frontend;
mod geometry;
mod keys;
mod liveness;
mod map_walk;
mod measures;
mod meters;
mod paths;
mod plb;
mod pmmac;
mod position_map;
mod short_leaves;
mod size;
mod state;
mod top;
mod top_index;
mod top_log;
mod verifier;
mod window_records;
mod window_share;
mod window_state;
mod windows;

pub use backend::{Backend, PathAccess, Round};
pub use batch::Intent;
pub use bounds::STASH_BOUND;
pub use config::TreeConfig;
pub use doubt::CurrentLabels;
pub use eviction::{Eviction, reverse_lexicographic};
pub use frontend::{AHEAD_BYTES, TreeJob, TreeOram};
pub use geometry::{Geometry, Shape, buckets_in, depth_for, shape_for};
pub use keys::TreeKeys;
pub use meters::Meters;
pub use position_map::MapFormat;
pub use size::size_class_after;
pub use top::{TopControl, TopView};
pub use top_log::{FoundTop, LOG_ENTRIES, TopRule};
pub use verifier::{Lacking, PartChecked, Verifier, current_labels};
pub use windows::{BucketSpot, Shapes, Windows};
