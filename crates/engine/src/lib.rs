//! Oblivious-RAM engines as pure state machines: they name the reads and writes and do no I/O.
//!
//! [`tree`] is Path ORAM with Freecursive's front end. [`sequential`] is SqORAM, for an adversary
//! who sees only writes. [`linear`] reads and writes everything; it is the oracle for the others. A
//! caller submits a batch of [`BlockOp`]s and carries out the [`Step`]s until [`Step::Done`].

mod error;
mod ids;
pub mod linear;
pub mod memory;
mod ops;
pub mod sequential;
mod step;
pub mod tree;
mod wire;

pub use error::{EngineError, Result};
pub use ids::{BlockId, BucketId, Label, Leaf, Level, TreeId};
pub use ops::{Action, BlockAnswer, BlockOp};
pub use step::{Engine, SealedBucket, Step};
