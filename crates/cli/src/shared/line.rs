//! The line to a shared volume, and a session with it, as the options say.

use crate::args::OpenArgs;
use crate::exit::usage;
use anyhow::Result;
use oblivio_app::shared::{self, ShareLine, TokenError};
use oblivio_app::state_folder;
use oblivio_client::{Client, ClientOptions, FileKnown, Keyed};
use oblivio_share::ShareAddress;
use std::path::Path;
use std::time::Duration;

/// The line to a volume. Its threads are many and move little.
pub fn line(address: &ShareAddress, token_file: Option<&Path>) -> Result<ShareLine> {
    oblivio_store::give_memory_back();
    let line = shared::line(address, token_file, Some(&state_folder()?));
    line.map_err(|error| match error {
        TokenError::Missing(_) => {
            let hint = "The server's administrator makes one: oblivio share token add. Then name \
                        its file with --token-file.";
            usage(error.to_string(), hint)
        }
        TokenError::OtherVolume { ref wanted, .. } => {
            let hint = format!("It is needed for {wanted}.");
            usage(error.to_string(), hint)
        }
        TokenError::Line(error) => error.into(),
        TokenError::Kept(_) => error.into(),
    })
}

/// What this computer knows of a volume. One process at a time has it.
pub fn known(keyed: &Keyed, address: &ShareAddress, args: &OpenArgs) -> Result<FileKnown> {
    let (any_volume, accept) = (args.accept_other_volume, args.accept_rollback);
    Ok(shared::known(&state_folder()?, address, keyed, any_volume, accept)?)
}

/// Begins a session with a volume.
pub fn open(
    line: ShareLine,
    keyed: Keyed,
    address: &ShareAddress,
    args: &OpenArgs,
    timeout: Duration,
) -> Result<Client> {
    let known = known(&keyed, address, args)?;
    let options = ClientOptions { timeout, notices: true, ..ClientOptions::default() };
    Ok(Client::open(Box::new(line), keyed, Box::new(known), options)?)
}
