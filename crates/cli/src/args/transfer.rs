//! Making a volume, and moving files in and out.

use super::open::OpenArgs;
use super::passphrase::KdfArgs;
use crate::human::parse_size;
use crate::price::{Use, parse_use};
use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use oblivio_volume::LaneParameters;
use std::ffi::OsString;
use std::path::PathBuf;

/// Make a volume
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio init ~/vault                                 asks who can see the storage
  oblivio init --seen-by storage --size 50G /mnt/cloud/vault
  oblivio init --seen-by snapshots --size 20G ~/disk   a disk, for `oblivio nbd`
  oblivio init --seen-by snapshots --size 20G --files ~/private
  oblivio init --seen-by snapshots --size 20G --one-file ~/disk.img
  oblivio init --seen-by snapshots --size 20G --one-file --lanes none ~/disk.img
  oblivio init --sync-folder --size 20G ~/Dropbox/private   copied by a sync client
  sudo oblivio init --seen-by snapshots --size 100G --fill /dev/sdb1
  oblivio init --seen-by storage --disk 20G ~/disk     a disk in a cloud
  oblivio init share://nas:7420/team --token-file token  one that computers share
  oblivio init share://nas:7420/disk --disk 20G        a disk at a server
  oblivio init 's3://bucket/vault?region=eu-central-1'  in a bucket; also r2, b2, gs, az
  oblivio init webdavs://cloud.example.org/dav/vault   also webdav, sftp
  oblivio init dropbox:/vault                          in an account; also gdrive, onedrive

Against storage that sees every read and write, the size is only a limit: the folder grows as the
volume fills. Against snapshots all of the space is taken at once. There is no way in without the
passphrase, and nobody can reset it.")]
#[command(mut_args(|arg| {
    // Of a volume that is there already.
    let id = arg.get_id().as_str();
    let needs_one = OpenArgs::OF_A_VOLUME.contains(&id);
    if needs_one { arg.hide(true) } else { arg }
}))]
pub struct InitArgs {
    /// Where to make it: a new or empty folder; against snapshots also an empty file or a partition
    pub volume: PathBuf,
    /// Who may see the storage [default: storage, or asked for]
    #[arg(long, value_name = "WHO")]
    pub seen_by: Option<SeenBy>,
    /// Size limit of the volume [default: 256G, of a share 16G; required against snapshots]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub size: Option<u64>,
    /// Make a disk of this size instead of room for files; `oblivio nbd` serves it
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["size", "files"], value_parser = parse_size)]
    pub disk: Option<u64>,
    /// Make room for files; without it, a volume against snapshots holds a disk
    #[arg(long)]
    pub files: bool,
    /// Bytes in a block [default: 16K, against snapshots 4K]: larger is faster for large files,
    /// smaller for small ones
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub block_size: Option<u64>,
    /// Against snapshots: keep everything in one new file instead of a folder
    #[arg(long)]
    pub one_file: bool,
    /// In one file or on a partition: the lanes that are written beside the volume, used or not, as
    /// the part of its size that each has: 1/4, or 1/8,1/8 for two; `none` saves a seventh of the
    /// writes and the space [default: 1/8]
    #[arg(long, value_name = "PARTS", value_parser = parse_lanes)]
    pub lanes: Option<LaneParameters>,
    /// How much may be written while the lanes are shut, before they lose anything: a part of the
    /// volume's size [default: 1/16]
    #[arg(long, value_name = "PART", value_parser = parse_part)]
    pub grace: Option<u8>,
    /// The folder is one that a sync client copies (Dropbox, Nextcloud, Syncthing): files are made
    /// once and never change, and two computers may use the volume by turns
    #[arg(long, conflicts_with_all = ["one_file", "overwrite"])]
    pub sync_folder: bool,
    /// Overwrite the file or partition, whatever is in it
    #[arg(long)]
    pub overwrite: bool,
    /// Against snapshots: write random bytes over all of it first, to hide how much was ever
    /// written
    #[arg(long)]
    pub fill: bool,
    /// Against snapshots: keep the block map on the disk, which saves memory (otherwise two bytes a
    /// block) and costs a twentieth more writing
    #[arg(long)]
    pub map_on_disk: bool,
    /// Against snapshots: whether the disk has seeks, as one that turns has; without them less is
    /// written for each byte [default: yes, or asked for]
    #[arg(long, value_name = "yes|no", value_parser = BoolishValueParser::new())]
    #[arg(conflicts_with_all = ["map_on_disk", "sync_folder"])]
    pub seeks: Option<bool>,
    #[command(flatten)]
    pub kdf: KdfArgs,
    /// At a URL: try the store out with fewer bytes, over a slow or dear line (and with
    /// fewer races, if you say how many: then a store that lets two win may pass)
    #[arg(long, value_name = "RACES", num_args = 0..=1, require_equals = true, default_missing_value = "25")]
    pub small_probe: Option<usize>,
    /// At a URL: the bill of a month, with this much read and written a day, as 2G/500M, or
    /// 50G,2G/500M with 50G in the volume
    #[arg(long, value_name = "USE", value_parser = parse_use)]
    pub expect: Option<Use>,
    /// At a URL: the prices of the service, if they are not known or have changed
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub price: Option<PathBuf>,
    #[command(flatten)]
    pub open: OpenArgs,
}

impl InitArgs {
    /// Whether everything is kept in one file, or on a partition.
    pub fn is_in_one(&self) -> bool {
        self.one_file || (self.volume.exists() && !self.volume.is_dir())
    }
}

/// A part, as 1/8: one in how many.
fn parse_part(text: &str) -> Result<u8, String> {
    let part = text.trim().strip_prefix("1/").and_then(|part| part.parse().ok());
    part.filter(|part| *part > 0).ok_or_else(|| format!("{text:?} is no part, as 1/8"))
}

/// A part for each lane, with the usual grace; `none` counts none.
fn parse_lanes(text: &str) -> Result<LaneParameters, String> {
    let usual = LaneParameters::default();
    if text == "none" {
        return Ok(LaneParameters { count: 0, ..usual });
    }
    let parts = text.split(',').map(parse_part).collect::<Result<Vec<_>, _>>()?;
    match parts[..] {
        [share, ..] if parts.len() <= 2 && parts.iter().all(|part| *part == share) => {
            Ok(LaneParameters { count: parts.len() as u8, share, ..usual })
        }
        _ => Err("one lane, or two of the same part".into()),
    }
}

/// Who may see the storage of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SeenBy {
    /// Its keeper, who sees every read and write: a cloud, a server, a stick that is not yours
    Storage,
    /// Somebody who sees writes but never a read: an inspector who images the disk, or a service
    /// that syncs a folder of this computer
    Snapshots,
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
    /// Store directories with everything in them
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
  oblivio get ~/vault /shop.sql - | mysql shop    to standard output

A file of which something is lost to damage is named, and not written; all others are. The exit code
is 17 then.")]
pub struct GetArgs {
    /// The volume's folder
    pub volume: PathBuf,
    /// What to bring back, a path inside the volume
    pub remote: OsString,
    /// Where to, or `-` for standard output
    pub local: OsString,
    /// Bring back directories with everything in them
    #[arg(short, long)]
    pub recursive: bool,
    /// Replace files that exist
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
