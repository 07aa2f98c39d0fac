//! Where this computer keeps what it knows.

use anyhow::{Context, Result};
use etcetera::BaseStrategy;
use std::path::PathBuf;

/// The folder in which this computer keeps what it knows.
pub fn folder() -> Result<PathBuf> {
    let xdg = etcetera::base_strategy::Xdg::new()
        .context("there is no home directory. Set HOME or XDG_STATE_HOME")?;
    let state = xdg.state_dir().unwrap_or_else(|| xdg.home_dir().join(".local/state"));
    Ok(state.join("oblivio"))
}
