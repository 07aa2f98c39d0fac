//! Oblivious-RAM engines as pure state machines: they name what to read and write and do no I/O.

mod ids;
mod ops;

pub use ids::{BlockId, BucketId, Label, Leaf, Level};
pub use ops::{Action, BlockAnswer, BlockOp};
