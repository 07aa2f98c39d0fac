//! The arguments of every command that serves a disk.

use super::open::OpenArgs;
use clap::Args;
use std::path::PathBuf;

/// A disk to serve, and how.
#[derive(Args, Clone, Debug)]
pub struct ServeArgs {
    /// The volume's folder, file or partition
    pub volume: PathBuf,
    /// Refuse changes
    #[arg(short, long)]
    pub read_only: bool,
    /// Return when the disk is ready, and serve it in the background
    #[arg(short, long)]
    pub background: bool,
    /// Seconds between commits of changes
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    pub commit_every: u64,
    /// Answer with an error after this many seconds without progress in the storage
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    pub timeout: u64,
    /// Write a quantum of the log at this interval, needed or not, which hides when you write.
    /// What waits in an open lane goes along. For volumes against snapshots
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub cover: Option<u64>,
    /// This is the background process of a server
    #[arg(long, hide = true)]
    pub child: bool,
    #[command(flatten)]
    pub open: OpenArgs,
}
