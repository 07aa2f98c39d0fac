//! What every command that serves a disk takes.

use super::OpenArgs;
use clap::Args;
use std::path::PathBuf;

/// A disk to be served, and how.
#[derive(Args, Clone, Debug)]
pub struct ServeArgs {
    /// The volume's folder, file or partition
    pub volume: PathBuf,
    /// Let nothing be changed
    #[arg(short, long)]
    pub read_only: bool,
    /// Come back when the disk can be used, and serve it in the background
    #[arg(short, long)]
    pub background: bool,
    /// Commit what changed every so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    pub commit_every: u64,
    /// Answer with an error when the storage did nothing for so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    pub timeout: u64,
    /// The process that a server in the background goes on in
    #[arg(long, hide = true)]
    pub child: bool,
    #[command(flatten)]
    pub open: OpenArgs,
}
