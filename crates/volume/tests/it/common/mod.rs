//! What several suites use.

pub mod disks;
pub mod pairs;
