//! `remote import-rclone`.

use super::rclone::{self, RcloneRemote};
use crate::args::RemoteImport;
use crate::exit::{Code, fault, usage};
use crate::human::say;
use anyhow::{Context, Result};
use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;
use oblivio_app::remotes::{self, NewRemote, NewSecret, StoreSecret};
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use zeroize::Zeroizing;

/// Runs the command.
pub fn run(args: &RemoteImport) -> Result<()> {
    let (rclones, path) = args.name.split_once(':').unwrap_or((&args.name, ""));
    let name = args.new_name.as_deref().unwrap_or(rclones);
    let file = file(args)?;
    let text = match fs::read_to_string(&file) {
        Ok(text) => Zeroizing::new(text),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let what = format!("{}: there is no such file", file.display());
            return Err(fault(Code::Path, what, "`rclone config file` says where it is."));
        }
        Err(error) => return Err(error).context(file.display().to_string()),
    };
    let sections = rclone::parse(&text).map_err(|(what, hint)| usage(what, hint))?;
    let section = sections.get(rclones).ok_or_else(|| {
        let what = format!("rclone has no remote called {rclones}");
        let names: Vec<&str> = sections.keys().map(String::as_str).collect();
        fault(Code::Path, what, format!("It has: {}.", names.join(", ")))
    })?;
    let remote = RcloneRemote { section, path, region: args.region.as_deref() };
    let found = remote.found();
    let found = found.map_err(|(what, hint)| usage(format!("{rclones}: {what}"), hint))?;
    let place = remotes::place(name, &found.url)?;
    let secret = found.secret.map(|secret| StoreSecret::new(secret.to_string()));
    let secret = match secret {
        None => NewSecret::None,
        Some(secret) if args.keyring => NewSecret::Keyring(secret),
        Some(secret) if found.tokens => NewSecret::Beside(secret),
        Some(secret) => NewSecret::Here(secret),
    };
    let (user, plain) = (found.user, found.plain);
    remotes::add(NewRemote { name: name.to_owned(), place, user, plain, secret })?;
    say(format!("Added {name} to {}: {}", remotes::file()?.display(), found.url))?;
    if plain {
        eprintln!("oblivio: warning: its password goes over the network for all to read");
    }
    say(format!("Try it out: oblivio remote test {name}"))
}

/// rclone's file.
fn file(args: &RemoteImport) -> Result<PathBuf> {
    if let Some(file) = &args.config {
        return Ok(file.clone());
    }
    if let Some(file) = std::env::var_os("RCLONE_CONFIG").filter(|it| !it.is_empty()) {
        return Ok(PathBuf::from(file));
    }
    let dirs =
        Xdg::new().map_err(|_| usage("there is no home directory", "Set HOME, or --config."))?;
    Ok(dirs.config_dir().join("rclone/rclone.conf"))
}
