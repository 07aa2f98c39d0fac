//! What the storage sees of pairs of sessions, for the tests of servers; the code is that of the
//! volume's tests.

#![expect(clippy::print_stdout, reason = "the outcome of a long run is its numbers")]

#[path = "../../volume/tests/it/common/pairs.rs"]
pub mod pairs;
