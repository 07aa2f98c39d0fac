//! Where passphrases come from, and what guessing one costs.

use crate::human::parse_size;
use clap::Args;
use oblivio_crypto::KdfParams;
use std::path::PathBuf;

/// Where the passphrase comes from.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Passphrase")]
pub struct PassphraseArgs {
    /// Take the first line of this file as the passphrase
    #[arg(long, value_name = "FILE", conflicts_with = "passphrase_fd")]
    pub passphrase_file: Option<PathBuf>,
    /// Take the first line from this open file descriptor as the passphrase
    #[arg(long, value_name = "N")]
    pub passphrase_fd: Option<u32>,
}

/// Where a new passphrase comes from.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "New passphrase")]
pub struct NewPassphraseArgs {
    /// Take the first line of this file as the new passphrase
    #[arg(long, value_name = "FILE", conflicts_with = "new_passphrase_fd")]
    pub new_passphrase_file: Option<PathBuf>,
    /// Take the first line from this open file descriptor as the new passphrase
    #[arg(long, value_name = "N")]
    pub new_passphrase_fd: Option<u32>,
    #[command(flatten)]
    pub kdf: KdfArgs,
}

/// What guessing a passphrase costs.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Price of guessing the passphrase")]
pub struct KdfArgs {
    /// Memory that each try takes [default: 64M]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub kdf_memory: Option<u64>,
    /// Passes over that memory [default: 3]
    #[arg(long, value_name = "N")]
    pub kdf_passes: Option<u32>,
}

impl KdfArgs {
    /// The parameters; an error when they are out of bounds.
    pub fn params(&self) -> anyhow::Result<KdfParams> {
        let mut params = KdfParams::default();
        if let Some(bytes) = self.kdf_memory {
            params.memory_kib = u32::try_from(bytes >> 10).unwrap_or(u32::MAX);
        }
        params.passes = self.kdf_passes.unwrap_or(params.passes);
        let bounds = "Memory goes from 32K to 4G, and memory times passes up to 64G.";
        match params.check() {
            Ok(()) => Ok(params),
            Err(error) => Err(crate::exit::usage(error.to_string(), bounds)),
        }
    }
}
