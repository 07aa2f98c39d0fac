//! What the house looks like, as tests: which crate may use which, circles of modules, who names an
//! engine, how much a struct shows and does, names of public types, lengths of files and functions,
//! and the words of comments and documents.
//!
//! A finding says what to do about it. [`limits`] holds the numbers; some are where the house
//! stands today, and only go down.

mod circles;
mod comments;
mod engines;
mod fields;
mod finding;
mod layers;
mod lengths;
pub mod limits;
mod modules;
mod names;
mod prose;
mod source;

pub use finding::Finding;
pub use source::{Source, read};

/// Everything out of order in a repository's files.
pub fn findings(sources: &[Source]) -> Vec<Finding> {
    let checks = [
        layers::findings,
        circles::findings,
        engines::findings,
        fields::findings,
        names::findings,
        lengths::findings,
        comments::findings,
        prose::findings,
    ];
    checks.into_iter().flat_map(|check| check(sources)).collect()
}
