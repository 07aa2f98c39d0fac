//! The arguments of every command that opens a volume.

use super::passphrase::PassphraseArgs;
use crate::human::parse_size;
use clap::Args;
use std::path::PathBuf;

/// How a volume is opened.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Opening the volume")]
pub struct OpenArgs {
    /// Memory to use, as in 64M or 1G [default: 448M; a mount or a disk server: a sixteenth of this
    /// computer's, from 448M to 2G]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub memory: Option<u64>,
    /// I restored a backup: open the volume although it is older than what this computer saw
    #[arg(long)]
    pub accept_rollback: bool,
    /// I put another volume in this place: open it although this computer used another one here
    #[arg(long, hide_short_help = true)]
    pub accept_other_volume: bool,
    /// At a URL, or a shared disk: take the volume from the computer that has it, without asking.
    /// What that one has not synced is lost, and it writes nothing more
    #[arg(long)]
    pub take_over: bool,
    /// The file with this computer's token, for a shared volume; it is kept for the next time
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub token_file: Option<PathBuf>,
    /// Nobody sees reads where the volume is (a restored snapshot, a read-only medium of mine):
    /// read it, and write nothing there
    #[arg(long, hide_short_help = true)]
    pub unobserved: bool,
    /// In a folder that a sync client copies: go on from an older epoch although a newer one has
    /// not arrived yet. There will be two histories then
    #[arg(long, hide_short_help = true, conflicts_with = "history")]
    pub older: bool,
    /// In such a folder: look at the history of this name, and change nothing
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub history: Option<String>,
    /// Take what is there of what is damaged. `get` writes a damaged file as NAME.incomplete, with
    /// zeros for what is lost of it. In such a folder: look although files are missing or damaged,
    /// and change nothing
    #[arg(long, hide_short_help = true)]
    pub incomplete: bool,
    /// Round the accesses of each file operation up to a power of two
    #[arg(long, hide_short_help = true)]
    pub pad: bool,
    /// Sync the record of each access before its reads: then a power cut makes none be shown again.
    /// It costs a sync of the disk for each access
    #[arg(long, hide_short_help = true)]
    pub strict: bool,
    /// Accesses a second: exactly this many, whether needed or not
    #[arg(long, value_name = "RATE", hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub pace: Option<u32>,
    /// Seconds between quanta of the log, needed or not: `mount` and `nbd` set it
    #[arg(skip)]
    pub cover: Option<u64>,
    /// At a URL: the most that sealed blocks may take on this computer's disk, 0 for none [default:
    /// a quarter of the free space, at most 10G]
    #[arg(long, value_name = "SIZE", hide_short_help = true, value_parser = parse_size)]
    pub disk_cache: Option<u64>,
    /// Write what the storage was shown to this file, for `oblivio audit --trace`
    #[arg(long, value_name = "FILE", alias = "record", hide_short_help = true)]
    pub trace_out: Option<PathBuf>,
    /// No progress, no summary; errors and warnings only
    #[arg(short, long)]
    pub quiet: bool,
    #[command(flatten)]
    pub passphrase: PassphraseArgs,
}

impl OpenArgs {
    /// Those that mean nothing for a new volume.
    pub const OF_A_VOLUME: [&str; 7] = [
        "accept_rollback",
        "take_over",
        "unobserved",
        "older",
        "history",
        "incomplete",
        "trace_out",
    ];

    /// Whether a volume in a folder that a sync client copies is only looked at.
    pub fn only_looks(&self) -> bool {
        self.incomplete || self.history.is_some()
    }
}
