//! The arguments of `lane`.

use super::open::OpenArgs;
use super::passphrase::NewPassphraseArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum LaneCommand {
    /// Show what waits in the open lanes of a mounted volume
    #[command(after_help = "\
Example:
  oblivio lane status ~/private")]
    Status(LaneStatusArgs),
    /// Give a lane another passphrase, or make an empty one anew
    #[command(after_help = "\
Examples:
  oblivio lane passphrase /dev/sdb1            type a passphrase of the lane, then the new one
  oblivio lane passphrase --anew /dev/sdb1     make lane 1 anew, empty

The old passphrase opens the lane too until all states that are on the disk now are written over: one
is with each opening that writes, and there are some hundreds. Of a lane that is made anew, it opens
what was there before, and writes over what is there now: forget it.")]
    Passphrase(Box<LanePassphraseArgs>),
}

#[derive(Args, Debug)]
pub struct LaneStatusArgs {
    /// The directory that the volume is mounted on
    pub dir: PathBuf,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct LanePassphraseArgs {
    /// The volume's file or partition
    pub volume: PathBuf,
    /// Which lane, counted from 1
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub lane: u8,
    /// Make the lane anew, empty: what it may hold is lost
    #[arg(long)]
    pub anew: bool,
    #[command(flatten)]
    pub open: OpenArgs,
    #[command(flatten)]
    pub new: NewPassphraseArgs,
}
