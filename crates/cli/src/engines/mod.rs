//! What the command says of each engine. One that is not here is described by what all have.

mod extents;
mod sequential;
mod tree;
mod windows;

pub use windows::month;

use crate::facts::Holds;
use anyhow::Result;
use oblivio_volume::VolumeInfo;
use serde_json::Value;

/// Adds the engine's facts to those of the volume.
pub fn as_json(value: &mut Value, info: &VolumeInfo) {
    if let Some(tree) = info.tree() {
        tree::as_json(value, info, tree);
    } else if let Some(engine) = info.sequential() {
        sequential::as_json(value, info, engine);
    } else if let Some(engine) = info.windows() {
        windows::as_json(value, info, engine);
    } else if let Some(engine) = info.extents() {
        extents::as_json(value, info, engine);
    }
}

/// Prints them as rows.
pub fn rows(info: &VolumeInfo) -> Result<()> {
    if let Some(tree) = info.tree() {
        tree::rows(info, tree)
    } else if let Some(engine) = info.sequential() {
        sequential::rows(info, engine)
    } else if let Some(engine) = info.windows() {
        windows::rows(info, engine)
    } else if let Some(engine) = info.extents() {
        extents::rows(info, engine)
    } else {
        Ok(())
    }
}

/// Prints what leaks, and what an access costs.
pub fn in_words(info: &VolumeInfo, holds: &Holds) -> Result<()> {
    if let Some(tree) = info.tree() {
        tree::in_words(info, tree, holds)
    } else if let Some(engine) = info.sequential() {
        sequential::in_words(info, engine, holds)
    } else if let Some(engine) = info.windows() {
        windows::in_words(info, engine, holds)
    } else if let Some(engine) = info.extents() {
        extents::in_words(info, engine, holds)
    } else {
        Ok(())
    }
}
