//! Where the commands that use a volume and its watcher meet.

use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;
use oblivio_crypto::VolumeId;
use oblivio_serve::watch::Publisher;
use std::path::PathBuf;

/// What reports the work on a volume to its watcher.
pub fn publisher(volume: VolumeId) -> Publisher {
    socket(volume).map_or_else(Publisher::default, |socket| Publisher::at(socket, command()))
}

/// The socket of a volume's watcher, in the session's runtime folder if there is one, else in the
/// state folder; `None` without a home directory.
pub fn socket(volume: VolumeId) -> Option<PathBuf> {
    let xdg = Xdg::new().ok()?;
    let of_session = xdg.runtime_dir().filter(|dir| dir.is_dir());
    let base = of_session.or_else(|| xdg.state_dir());
    let folder = base.unwrap_or_else(|| xdg.home_dir().join(".local/state")).join("oblivio");
    Some(folder.join(format!("{volume}.watch")))
}

/// The word after `oblivio`: the page's name for this process.
fn command() -> String {
    let word = std::env::args().nth(1).unwrap_or_default();
    let is_word = word.len() <= 20 && word.bytes().all(|byte| byte.is_ascii_lowercase());
    if is_word { word } else { "oblivio".into() }
}
