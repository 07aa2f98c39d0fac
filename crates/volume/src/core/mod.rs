//! The volume core: what stands between the file layer and an engine of trees, once for all homes.
//!
//! A [`Ledger`] makes the engine durable in one kind of store, and knows no policy. Here is what
//! waits for it: writes that no record has, writes that no batch carried out, and the rule that a
//! failure closes the handle. A [`Policy`] says when all that is carried out, and in which batches:
//! it alone differs between a tree on a disk and one in windows.
//!
//! Why nothing is lost: an operation is accepted when it [waits](waiting); a sync returns once the
//! ledger has it in a record or a commit; [`replay`] gives records back to what waits.

mod deferred;
mod ledger;
mod limit;
mod lost;
mod replay;
mod shown;
mod size;
mod space;
mod waiting;

pub use ledger::{Core, Ledger, Policy};
pub(crate) use ledger::{LEAST_BLOCKS, LEAST_SYNC, MOST_OPS, SYNC_BYTES};
pub(crate) use limit::Limit;
pub(crate) use shown::{rule_of, runs};
