//! The token by which a server admits this computer.

use oblivio_share::{Error as ServerError, ShareAddress, Token};
use oblivio_store::replace_file;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Why there is no line to a shared volume.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The administrator of the server has given none.
    #[error("this computer has no token for {0} yet")]
    Missing(ShareAddress),
    /// It admits to another volume of the server.
    #[error("the token is one for the volume {found}")]
    OtherVolume {
        /// To this one.
        found: String,
        /// This one was meant.
        wanted: String,
    },
    /// It cannot be read, or the line cannot be made from it.
    #[error(transparent)]
    Line(#[from] ServerError),
    /// It cannot be kept for the next time.
    #[error("keeping the token")]
    Kept(#[from] io::Error),
}

/// Where the token of an address is kept, once it was used.
fn place(address: &ShareAddress, state: &Path) -> PathBuf {
    let ShareAddress { host, port, volume } = address;
    let host: String = host.chars().map(|c| if c == ':' { '_' } else { c }).collect();
    state.join("tokens").join(format!("{host}_{port}_{volume}"))
}

/// The token from the user's file, or the one that was used before. It is kept for the next time,
/// if there is a folder for it.
///
/// # Errors
/// When there is none, or one of another volume.
pub(super) fn of(
    address: &ShareAddress,
    file: Option<&Path>,
    state: Option<&Path>,
) -> Result<Token, TokenError> {
    let Some(state) = state else {
        let file = file.ok_or_else(|| TokenError::Missing(address.clone()))?;
        return with(address, Token::load(file)?);
    };
    let kept = place(address, state);
    let Some(file) = file else {
        if !kept.exists() {
            return Err(TokenError::Missing(address.clone()));
        }
        return with(address, Token::load(&kept)?);
    };
    let token = with(address, Token::load(file)?)?;
    if !kept.exists() || Token::load(&kept).ok().as_ref() != Some(&token) {
        let folder = kept.parent().unwrap_or(state);
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let line = Zeroizing::new(format!("{}\n", *token.line()));
        replace_file(&kept, line.as_bytes())?;
    }
    Ok(token)
}

/// The same token for the address that the user gave: a server may have several names.
fn with(address: &ShareAddress, token: Token) -> Result<Token, TokenError> {
    if token.address.volume != address.volume {
        let (found, wanted) = (token.address.volume, address.volume.clone());
        return Err(TokenError::OtherVolume { found, wanted });
    }
    Ok(Token { address: address.clone(), ..token })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn address(volume: &str) -> ShareAddress {
        ShareAddress::parse(&format!("share://[::1]:7/{volume}")).expect("an address")
    }

    #[test]
    fn a_token_is_kept_for_the_next_time_if_there_is_a_folder() {
        let dir = tempfile::tempdir().expect("a folder");
        let (file, state) = (dir.path().join("token"), dir.path().join("state"));
        let other_name = ShareAddress { host: "nas".into(), ..address("team") };
        let (fingerprint, secret) = ([1; 32], Zeroizing::new([2; 32]));
        let token = Token { address: other_name, fingerprint, secret };
        token.store(&file).expect("a file");

        let missing = of(&address("team"), None, Some(&state));
        assert!(matches!(missing, Err(TokenError::Missing(_))));
        let other = of(&address("other"), Some(&file), Some(&state));
        assert!(matches!(other, Err(TokenError::OtherVolume { .. })));
        let nowhere = of(&address("team"), Some(&file), None).expect("a token");
        assert!(nowhere.address == address("team") && !state.exists());
        assert!(of(&address("team"), None, None).is_err());

        let first = of(&address("team"), Some(&file), Some(&state)).expect("a token");
        fs::remove_file(&file).expect("it was there");
        let later = of(&address("team"), None, Some(&state)).expect("it was kept");
        assert!(first == later && later.address == address("team"));
    }
}
