//! Making a volume, and moving files in and out.

use super::{KdfArgs, OpenArgs};
use crate::human::parse_size;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// Make a volume in a new or empty folder
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio init ~/vault
  oblivio init --size 50G --passphrase-file secret.txt /mnt/stick/vault
  oblivio init --disk 20G ~/disk                       a disk, for `oblivio nbd`

The size is only a limit: the folder grows as the volume fills. There is no way in without the
passphrase, and nobody can reset it.")]
pub struct InitArgs {
    /// The folder to make it in
    pub volume: PathBuf,
    /// The most that the volume may ever hold
    #[arg(long, value_name = "SIZE", default_value = "256G", value_parser = parse_size)]
    pub size: u64,
    /// Make a disk of this size instead of room for files; `oblivio nbd` serves it
    #[arg(long, value_name = "SIZE", conflicts_with = "size", value_parser = parse_size)]
    pub disk: Option<u64>,
    /// Bytes in a block: larger is faster for large files, smaller for small ones
    #[arg(long, value_name = "SIZE", default_value = "16K", value_parser = parse_size)]
    pub block_size: u64,
    #[command(flatten)]
    pub kdf: KdfArgs,
    #[command(flatten)]
    pub open: OpenArgs,
}

/// Store files in a volume
#[derive(Args, Debug)]
#[command(
    override_usage = "oblivio put [OPTIONS] VOLUME LOCAL... REMOTE",
    after_help = "\
Examples:
  oblivio put ~/vault letter.txt photo.jpg /
  oblivio put -r ~/vault Documents /                  makes /Documents
  mysqldump shop | oblivio put ~/vault - /shop.sql    from standard input
  date | oblivio put ~/vault - /logs --name now.txt

A file that is there already is replaced in one step: after a crash it is the old or the new one.
Modes, times, owners, symbolic and hard links and holes are kept; sockets and devices are skipped.
With -v a file is named once it is safe on disk, not before."
)]
pub struct PutArgs {
    /// The volume's folder
    pub volume: PathBuf,
    /// What to store (`-` for standard input), then where in the volume
    #[arg(value_name = "PATHS", num_args = 2.., required = true)]
    pub paths: Vec<OsString>,
    /// Store directories with all that is in them
    #[arg(short, long)]
    pub recursive: bool,
    /// The file's name when standard input is stored in a directory
    #[arg(long, value_name = "NAME")]
    pub name: Option<OsString>,
    /// Name each file when it is safe
    #[arg(short, long)]
    pub verbose: bool,
    /// A summary as JSON; with -v a line of JSON for each file before it
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub open: OpenArgs,
}

/// Bring files back from a volume
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio get ~/vault /letter.txt .
  oblivio get -r ~/vault /Documents restored      as cp does: into it if it exists
  oblivio get -r ~/vault / everything
  oblivio get ~/vault /shop.sql - | mysql shop    to standard output")]
pub struct GetArgs {
    /// The volume's folder
    pub volume: PathBuf,
    /// What to bring back, a path inside the volume
    pub remote: OsString,
    /// Where to, or `-` for standard output
    pub local: OsString,
    /// Bring back directories with all that is in them
    #[arg(short, long)]
    pub recursive: bool,
    /// Replace files that are there already
    #[arg(short, long)]
    pub force: bool,
    /// Name each file when it is written
    #[arg(short, long)]
    pub verbose: bool,
    /// A summary as JSON; with -v a line of JSON for each file before it
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub open: OpenArgs,
}

/// Write files of a volume to standard output
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio cat ~/vault /letter.txt
  oblivio cat ~/vault /part1 /part2 > whole")]
pub struct CatArgs {
    /// The volume's folder
    pub volume: PathBuf,
    /// Files in the volume
    #[arg(required = true)]
    pub remote: Vec<OsString>,
    #[command(flatten)]
    pub open: OpenArgs,
}
