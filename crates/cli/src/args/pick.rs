//! Choosing between the histories of a volume in a folder that a sync client copies.

use super::open::OpenArgs;
use clap::Args;
use std::path::PathBuf;

/// Choose which history goes on, where two computers wrote apart from each other
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio pick ~/Dropbox/private                 lists the histories
  oblivio mount ~/Dropbox/private DIR --history 1f0a6c22-3   look at one
  oblivio pick ~/Dropbox/private 1f0a6c22-3      this one goes on
  oblivio pick ~/Dropbox/private --drop 88e0b1d4-7   the other one is not needed any more

Nothing is merged: copy what you miss out of the other history before you drop it.")]
pub struct PickArgs {
    /// The volume's folder
    pub volume: PathBuf,
    /// The history that goes on; without it, they are listed
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Drop this history, which was not chosen
    #[arg(long = "drop", value_name = "NAME", conflicts_with = "name")]
    pub dropped: Option<String>,
    /// The list as JSON
    #[arg(long, conflicts_with_all = ["name", "dropped"])]
    pub json: bool,
    #[command(flatten)]
    pub open: OpenArgs,
}
