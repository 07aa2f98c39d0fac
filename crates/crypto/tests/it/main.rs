//! Keys, what is sealed with them, and passphrases.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests")]

mod cores;
mod groups;
mod sealing;
mod slots;
mod vectors;
