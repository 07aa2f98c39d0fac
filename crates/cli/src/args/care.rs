//! Looking after a volume, and watching what its store sees.

use super::open::OpenArgs;
use super::passphrase::{NewPassphraseArgs, PassphraseArgs};
use crate::human::{parse_size, parse_time};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// Show what a volume is, what it costs, and what its storage learns
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio info ~/vault
  oblivio info --json ~/vault
  oblivio info share://nas:7420/team")]
pub struct InfoArgs {
    /// The volume's folder
    pub volume: PathBuf,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub open: OpenArgs,
}

/// Read everything and check that it is what was written
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio check ~/vault
  oblivio check --json ~/vault
  oblivio check --scrub --for 10m ~/vault      goes on each night where it stopped
  oblivio check --limit-rate 20M ~/vault       everything at once, every month
  oblivio check share://nas:7420/team

Every stored bucket is read and authenticated, then every file. Ends with 0 when all is clean and
with 5 when something is not. A scrub reads what is stored and no files: it can stop at any moment,
and this computer notes where. Ctrl-C ends it well.")]
pub struct CheckArgs {
    /// The volume's folder
    pub volume: PathBuf,
    /// Read what is stored from where the last scrub stopped, and heal what has a second copy
    #[arg(long)]
    pub scrub: bool,
    /// Stop the scrub after 10m, say, or 2h
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time, requires = "scrub")]
    pub lasting: Option<Duration>,
    /// Read at most 20M, say, of the stored parts a second: a disk in use stays quick
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub limit_rate: Option<u64>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub open: OpenArgs,
}

/// Make a damaged volume whole again, with everything in it that can still be read
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio repair --dry-run ~/vault             what is damaged, and what is lost with it
  oblivio repair ~/vault                       shows the same, asks, and does it
  oblivio repair --from /backup/vault ~/vault  and takes what is lost from an older copy
  oblivio repair --yes --zeros ~/vault         with zeros where bytes were lost

What is lost reads as an error afterwards, until it is written or the file is removed. All else is
stored anew. An older copy gives each block that nobody accessed since, of a disk as well. Of other
blocks the files are compared: one that is unchanged there is whole again, another version is put
beside it as NAME.older. Nothing is taken from a copy unseen: it opens by its own passphrase.")]
pub struct RepairArgs {
    /// The volume's folder
    pub volume: PathBuf,
    /// Show what would be done, and change nothing in the files
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
    /// Write zeros where bytes are lost, so that they can be read
    #[arg(long)]
    pub zeros: bool,
    /// An older copy of the same volume; it is only read
    #[arg(long, value_name = "BACKUP")]
    pub from: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub open: OpenArgs,
}

/// Raise or lower the size limit of a volume; nothing is moved
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio resize ~/vault 512G          let it grow to so much
  oblivio resize ~/vault 20G           or no further than that
  oblivio resize --json ~/vault 1T

The size is only a limit: it takes no space. It cannot be lower than what the volume holds. A disk and
a volume against snapshots have the size that they were made with.")]
pub struct ResizeArgs {
    /// The volume's folder
    pub volume: PathBuf,
    /// The new limit, as in 64M, 20G or 1T
    #[arg(value_parser = parse_size)]
    pub size: u64,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub open: OpenArgs,
}

#[derive(Debug, Subcommand)]
pub enum PassphraseCommand {
    /// Let one more passphrase open the volume
    #[command(after_help = "\
Examples:
  oblivio passphrase add ~/vault
  oblivio passphrase add --new-passphrase-file theirs.txt ~/vault
  oblivio passphrase add share://nas:7420/team")]
    Add(PassphraseNew),
    /// Take away the passphrase that is typed; the last one stays
    #[command(after_help = "\
Example:
  oblivio passphrase remove ~/vault")]
    Remove(PassphraseRemove),
    /// Replace a passphrase; nothing is encrypted again
    #[command(after_help = "\
Example:
  oblivio passphrase change ~/vault

Who had the old passphrase and a copy of the volume from then can still read that copy.")]
    Change(PassphraseNew),
    /// Count the passphrases that open the volume; needs none of them
    #[command(after_help = "\
Example:
  oblivio passphrase list ~/vault")]
    List(PassphraseList),
}

#[derive(Args, Debug)]
pub struct PassphraseNew {
    /// The volume's folder
    pub volume: PathBuf,
    /// The file with this computer's token, for a shared volume; it is kept for the next time
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    #[command(flatten)]
    pub passphrase: PassphraseArgs,
    #[command(flatten)]
    pub new: NewPassphraseArgs,
}

#[derive(Args, Debug)]
pub struct PassphraseRemove {
    /// The volume's folder
    pub volume: PathBuf,
    /// The file with this computer's token, for a shared volume; it is kept for the next time
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    #[command(flatten)]
    pub passphrase: PassphraseArgs,
}

#[derive(Args, Debug)]
pub struct PassphraseList {
    /// The volume's folder
    pub volume: PathBuf,
    /// The file with this computer's token, for a shared volume; it is kept for the next time
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// Judge what a storage was shown: could it tell what was done?
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio audit                                   five ways of working, compared
  oblivio audit --self-test                       are planted leaks caught?
  oblivio put --trace-out t.jsonl ~/vault f /     record a real command, then
  oblivio audit --trace t.jsonl --picture t.png   judge and draw it

Without --trace a fresh volume in memory is worked on in five ways (one block over and over, all in
turn, at random, few often, two in turn), and what its storage saw is judged and compared. Ends
with 0 when nothing was found, 1 when something leaks. Timing is not judged.")]
pub struct AuditArgs {
    /// Judge this recorded trace; give it several times, in order, to judge the sessions of one
    /// volume together
    #[arg(long, value_name = "FILE", conflicts_with_all = ["blocks", "accesses"])]
    pub trace: Vec<PathBuf>,
    /// Compare with this trace (or these) of other work: their places, and the public facts of
    /// each
    #[arg(long, value_name = "FILE", requires = "trace")]
    pub against: Vec<PathBuf>,
    /// Fail too when the two differ in public facts: counts, grouping, syncs or commits
    #[arg(long, requires = "against")]
    pub strict: bool,
    /// The trace was recorded with this --pace: judge its times too
    #[arg(long, value_name = "RATE", requires = "trace", conflicts_with = "against")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub pace: Option<u32>,
    /// Blocks in the volume under test
    #[arg(long, value_name = "N", default_value_t = 1024)]
    pub blocks: u64,
    /// Blocks requested in each of the five workloads
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub accesses: usize,
    /// First make sure that the audit catches every leak planted for it
    #[arg(long)]
    pub self_test: bool,
    /// Draw what the storage saw, beside the same work on plain encryption (.png or .svg)
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,
    /// The probability of calling an honest volume leaky
    #[arg(long, value_name = "P", default_value_t = 1e-6)]
    pub false_alarm_rate: f64,
    /// Show every test of every judgement
    #[arg(short, long)]
    pub verbose: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// No progress
    #[arg(short, long)]
    pub quiet: bool,
}

/// Show on real files, in under a minute, what a storage sees and what it does not
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  oblivio demo

Works in a temporary folder with a made-up passphrase and cleans up after itself; only the picture
stays. Takes the files of the current directory (a few hundred, at most 20 MB), or makes some.")]
pub struct DemoArgs {
    /// Use the files of this directory
    #[arg(value_name = "DIRECTORY")]
    pub files: Option<PathBuf>,
    /// Where the picture goes [default: oblivio-demo.svg in the system's temporary folder]
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,
}

/// Print completions for a shell
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio completions bash > ~/.local/share/bash-completion/completions/oblivio
  oblivio completions zsh > ~/.zfunc/_oblivio
  oblivio completions fish > ~/.config/fish/completions/oblivio.fish")]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Write the manual pages of all commands to a folder
///
/// For those who make packages: the pages are made from the same text as `--help`.
#[cfg(feature = "man")]
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  oblivio man --dir /usr/local/share/man/man1")]
pub struct ManArgs {
    /// The folder, which exists
    #[arg(long)]
    pub dir: PathBuf,
}
