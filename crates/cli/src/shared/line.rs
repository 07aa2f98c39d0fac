//! The line to a shared volume, and a session with it, as the options say.

use crate::args::OpenArgs;
use crate::exit::usage;
use anyhow::Result;
use oblivio_app::shared::{self, Line, TokenError};
use oblivio_app::state_folder;
use oblivio_client::{Client, FileKnown, Keyed, Options};
use oblivio_share::Address;
use std::path::Path;
use std::time::Duration;

/// The line to a volume.
pub fn line(address: &Address, token_file: Option<&Path>) -> Result<Line> {
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
pub fn known(keyed: &Keyed, address: &Address, args: &OpenArgs) -> Result<FileKnown> {
    let (any_volume, accept) = (args.accept_other_volume, args.accept_rollback);
    Ok(shared::known(&state_folder()?, address, keyed, any_volume, accept)?)
}

/// Begins a session with a volume.
pub fn open(
    line: Line,
    keyed: Keyed,
    address: &Address,
    args: &OpenArgs,
    timeout: Duration,
) -> Result<Client> {
    let known = known(&keyed, address, args)?;
    let options = Options { timeout, notices: true, ..Options::default() };
    Ok(Client::open(Box::new(line), keyed, Box::new(known), options)?)
}
