//! Oblivious-RAM engines as pure state machines: they name the reads and writes and do no I/O.
//!
//! [`tree`] is Path ORAM with Freecursive's front end. [`sequential`] is SqORAM, for an adversary
//! who sees only writes. [`pyramid`] serves several clients at once. [`linear`] reads and writes
//! everything; it is the oracle for the others. A caller begins a [`Job`] on an engine, and
//! [`carry_out`] does its [`Step`]s on a [`Carrier`].
//!
//! It must not know stores, files, passphrases or time: bytes come in sealed and go out sealed, and
//! randomness is a value.
//!
//! The ten types that matter most:
//!
//! | type | what it is |
//! |---|---|
//! | `BlockOp`, `Action`, `BlockAnswer` | what a caller wants of a block, and what it gets |
//! | `Job`, `Step`, `Carrier` | work under way, what it wants next, and who does that |
//! | `tree::TreeOram` | Path ORAM, in a tree of buckets |
//! | `sequential::Sequential` | SqORAM, in a ring of levels |
//! | `pyramid::PyramidOram` | PD-ORAM, in partitions of tables |
//! | `EngineError` | what an adversary, or a full volume, makes of it |

mod driver;
mod error;
mod ids;
pub mod linear;
pub mod memory;
mod ops;
pub mod pyramid;
pub mod sequential;
mod step;
pub mod tree;
mod wire;
mod work;

pub use driver::{Carrier, Lend, advance, carry_out};
pub use error::{EngineError, Result};
pub use ids::{Address, BlockId, BucketId, Label, Leaf, Level};
pub use ops::{Action, BlockAnswer, BlockOp, BlockOutcome, Lost};
pub use step::{Data, Extent, Job, Read, SealedBucket, Step, Write, WritePiece};
pub use work::WorkPart;
