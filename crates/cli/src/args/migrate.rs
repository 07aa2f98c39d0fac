//! Moving a volume to another place.

use super::open::OpenArgs;
use super::passphrase::KdfArgs;
use clap::Args;
use std::path::PathBuf;

/// Copy a volume to another place: a bucket, a server, an account, a folder
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio migrate ~/vault 's3://bucket/vault?region=eu-central-1'
  oblivio migrate 's3://bucket/vault?region=eu-central-1' cloud:vault
  oblivio migrate drop:vault ~/vault

Between two online stores the sealed objects are copied as they are, if sessions can begin at the new
place as they do at the old one. Otherwise the files are copied into a new volume with the same
passphrase. To choose its engine or its block size, make it with `oblivio init` first; it must be
empty. Interrupted, run it again: what is there already is compared and kept.

The old volume stays as it is. Use one of the two from then on, not both.")]
pub struct MigrateArgs {
    /// The volume's place
    pub from: PathBuf,
    /// Where to: a URL, a new or empty folder, or a new volume without files
    pub to: PathBuf,
    /// Try the new store out with fewer bytes, over a slow or dear line (and with
    /// fewer races, if you say how many: then a store that lets two win may pass)
    #[arg(long, value_name = "RACES", num_args = 0..=1, require_equals = true, default_missing_value = "25")]
    pub small_probe: Option<usize>,
    #[command(flatten)]
    pub kdf: KdfArgs,
    #[command(flatten)]
    pub open: OpenArgs,
}
