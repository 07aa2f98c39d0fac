//! The token by which a server admits this computer.

use crate::exit::usage;
use anyhow::{Context, Result};
use oblivio_share::{Address, Token};
use oblivio_store::replace_file;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Where the token of an address is kept, once it was used.
fn place(address: &Address) -> Result<PathBuf> {
    let Address { host, port, volume } = address;
    let host: String = host.chars().map(|c| if c == ':' { '_' } else { c }).collect();
    Ok(super::state::folder()?.join("tokens").join(format!("{host}_{port}_{volume}")))
}

/// The token from the user's file, or the one that was used before. It is kept for the next time.
///
/// # Errors
/// When there is none, or one of another volume.
pub fn of(address: &Address, file: Option<&Path>) -> Result<Token> {
    let kept = place(address)?;
    let Some(file) = file else {
        if !kept.exists() {
            let what = format!("this computer has no token for {address} yet");
            let hint = "The server's administrator makes one: oblivio share token add. Then name \
                        its file with --token-file.";
            return Err(usage(what, hint));
        }
        return with(address, Token::load(&kept)?);
    };
    let token = with(address, Token::load(file)?)?;
    if !kept.exists() || Token::load(&kept).ok().as_ref() != Some(&token) {
        let dir = kept.parent().context("no folder for tokens")?;
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let line = Zeroizing::new(format!("{}\n", *token.line()));
        replace_file(&kept, line.as_bytes()).context("keeping the token")?;
    }
    Ok(token)
}

/// The same token for the address that the user gave: a server may have several names.
fn with(address: &Address, token: Token) -> Result<Token> {
    if token.address.volume != address.volume {
        let what = format!("the token is one for the volume {}", token.address.volume);
        return Err(usage(what, format!("It is needed for {}.", address.volume)));
    }
    Ok(Token { address: address.clone(), ..token })
}
