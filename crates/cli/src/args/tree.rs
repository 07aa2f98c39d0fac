//! Looking at the files of a volume and changing their tree.

use super::open::OpenArgs;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// List files
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio ls ~/vault
  oblivio ls -la ~/vault /Documents
  oblivio ls --json -R ~/vault / | jq -r .path")]
pub struct LsArgs {
    /// The volume's folder
    pub volume: PathBuf,
    /// Directories or files in the volume
    #[arg(default_value = "/")]
    pub remote: Vec<OsString>,
    /// Modes, owners, sizes and times too
    #[arg(short, long)]
    pub long: bool,
    /// Names that begin with a dot too
    #[arg(short, long)]
    pub all: bool,
    /// Directories below too, by their whole paths
    #[arg(short = 'R', long)]
    pub recursive: bool,
    /// Sizes in bytes
    #[arg(short, long)]
    pub bytes: bool,
    /// A line of JSON for each file
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub open: OpenArgs,
}

/// Copy files within a volume
#[derive(Args, Debug)]
#[command(
    override_usage = "oblivio cp [OPTIONS] VOLUME FROM... TO",
    after_help = "\
Examples:
  oblivio cp ~/vault /letter.txt /letter-2.txt
  oblivio cp -r ~/vault /Documents /backup"
)]
pub struct CpArgs {
    /// The volume's folder
    pub volume: PathBuf,
    /// What to copy, then where to
    #[arg(value_name = "PATHS", num_args = 2.., required = true)]
    pub paths: Vec<OsString>,
    /// Copy directories with everything in them
    #[arg(short, long)]
    pub recursive: bool,
    #[command(flatten)]
    pub open: OpenArgs,
}

/// Move or rename files within a volume
#[derive(Args, Debug)]
#[command(
    override_usage = "oblivio mv [OPTIONS] VOLUME FROM... TO",
    after_help = "\
Examples:
  oblivio mv ~/vault /letter.txt /letters/2026.txt
  oblivio mv ~/vault /a /b /c /letters"
)]
pub struct MvArgs {
    /// The volume's folder
    pub volume: PathBuf,
    /// What to move, then where to
    #[arg(value_name = "PATHS", num_args = 2.., required = true)]
    pub paths: Vec<OsString>,
    /// Do not replace a file that exists
    #[arg(short, long)]
    pub no_clobber: bool,
    #[command(flatten)]
    pub open: OpenArgs,
}

/// Remove files from a volume
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio rm ~/vault /letter.txt
  oblivio rm -r ~/vault /Documents")]
pub struct RmArgs {
    /// The volume's folder
    pub volume: PathBuf,
    /// What to remove
    #[arg(required = true)]
    pub remote: Vec<OsString>,
    /// Remove directories with everything in them
    #[arg(short, long)]
    pub recursive: bool,
    /// Ignore files that do not exist
    #[arg(short, long)]
    pub force: bool,
    #[command(flatten)]
    pub open: OpenArgs,
}

/// Make directories in a volume
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio mkdir ~/vault /letters
  oblivio mkdir -p ~/vault /photos/2026/summer")]
pub struct MkdirArgs {
    /// The volume's folder
    pub volume: PathBuf,
    /// The directories to make
    #[arg(required = true)]
    pub remote: Vec<OsString>,
    /// Make parent directories too; one that exists is no error
    #[arg(short, long)]
    pub parents: bool,
    #[command(flatten)]
    pub open: OpenArgs,
}

/// Show everything known of files
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio stat ~/vault /letter.txt
  oblivio stat --json ~/vault /letter.txt | jq .size")]
pub struct StatArgs {
    /// The volume's folder
    pub volume: PathBuf,
    /// Files in the volume
    #[arg(required = true)]
    pub remote: Vec<OsString>,
    /// A line of JSON for each
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub open: OpenArgs,
}

/// Show how much space directories take
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio du ~/vault
  oblivio du --depth 2 ~/vault /Documents")]
pub struct DuArgs {
    /// The volume's folder
    pub volume: PathBuf,
    /// Directories or files in the volume
    #[arg(default_value = "/")]
    pub remote: Vec<OsString>,
    /// Levels of subdirectories to show
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub depth: usize,
    /// Sizes in bytes
    #[arg(short, long)]
    pub bytes: bool,
    /// A line of JSON for each
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub open: OpenArgs,
}
