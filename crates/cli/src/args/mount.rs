//! A volume as a directory.

use super::open::OpenArgs;
use crate::human::parse_size;
use clap::Args;
use oblivio_serve::mount::Look;
use std::path::PathBuf;

/// Use a volume as a directory, with any program
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  oblivio mount ~/vault ~/private               until Ctrl-C
  oblivio mount --background ~/vault ~/private  until `oblivio umount ~/private`
  oblivio mount --read-only ~/vault ~/private
  oblivio mount --scrub 5M ~/vault ~/private    reads all that is stored in quiet moments
  oblivio mount share://nas:7420/team ~/team    one that computers share: docs/share.md

What a program syncs is safe at once; everything else is committed every few seconds and when the
volume is unmounted. docs/mount.md tells how to mount at boot.")]
pub struct MountArgs {
    /// The volume's folder, or share://HOST:PORT/NAME
    pub volume: PathBuf,
    /// An empty directory to mount it on
    pub dir: PathBuf,
    /// Return when the mount is up, and serve it in the background
    #[arg(short, long)]
    pub background: bool,
    /// Refuse changes
    #[arg(short, long)]
    pub read_only: bool,
    /// Let other users in, as far as owners and modes allow
    #[arg(long)]
    pub allow_other: bool,
    /// Mount on a directory that is not empty
    #[arg(long)]
    pub nonempty: bool,
    /// Seconds between commits of changes; a twenty-fifth of that after the last change
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    pub commit_every: u64,
    /// Answer with an error after this many seconds without progress in the storage [default: 20;
    /// shared: 60]
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,
    /// In quiet moments read what is stored, at most 5M, say, a second, round and round; the log
    /// names what is damaged
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub scrub: Option<u64>,
    /// Write a quantum of the log at this interval, needed or not, which hides when you write.
    /// What waits in an open lane goes along. For volumes against snapshots
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub cover: Option<u64>,
    /// Options as `mount` writes them, as in -o ro,scrub=5M,passphrase-file=FILE; of a
    /// shared volume, strict answers nothing from memory
    #[arg(short, value_name = "OPTIONS")]
    pub options: Vec<String>,
    /// This is the background process of a mount
    #[arg(long, hide = true)]
    pub child: bool,
    /// As `mount -f`: check what can be checked, and mount nothing
    #[arg(long, hide = true)]
    pub fake: bool,
    /// As `mount -s`: let options pass that are not known
    #[arg(long, hide = true)]
    pub sloppy: bool,
    #[command(flatten)]
    pub open: OpenArgs,
    #[arg(skip)]
    pub look: Look,
    #[arg(skip)]
    pub remount: bool,
}

/// Unmount a volume and wait until everything is safe
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  oblivio umount ~/private")]
pub struct UmountArgs {
    /// The directory that the volume is mounted on
    pub dir: PathBuf,
    /// Detach it at once; it ends when the last file is closed
    #[arg(short, long)]
    pub lazy: bool,
    /// Errors only
    #[arg(short, long)]
    pub quiet: bool,
}
