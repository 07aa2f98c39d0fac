//! What programs share, with real volumes. Each module is a suite.
#![allow(clippy::disallowed_methods, reason = "tests run processes and wait for them")]

mod moving;
