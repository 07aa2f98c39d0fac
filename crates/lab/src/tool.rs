//! The `oblivio` command, for experiments that run it.

use anyhow::{Result, ensure};
use std::path::PathBuf;

/// The path of the command.
#[derive(clap::Args, Clone, Debug)]
pub struct Tool {
    /// The `oblivio` binary; by default the one beside this one
    #[arg(long)]
    oblivio: Option<PathBuf>,
}

impl Tool {
    /// The binary.
    ///
    /// # Errors
    /// It does not exist.
    pub fn path(&self) -> Result<PathBuf> {
        let path = match &self.oblivio {
            Some(path) => path.clone(),
            None => std::env::current_exe()?.with_file_name("oblivio"),
        };
        ensure!(
            path.is_file(),
            "{} is not there; build it with `cargo build --profile dist -p oblivio-cli --all-features`",
            path.display()
        );
        Ok(path)
    }
}
