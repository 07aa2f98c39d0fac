//! `remote add`: a name, a URL, and a secret from wherever it is.

use super::log_on;
use crate::args::RemoteAdd;
use crate::exit::usage;
use crate::human::say;
use crate::passphrase;
use anyhow::{Context, Result};
use oblivio_app::remotes::{self, NewRemote, NewSecret, OnlinePlace, Service, StoreSecret};
use std::path::Path;

/// Runs the command.
pub fn run(args: &RemoteAdd) -> Result<()> {
    let place = remotes::place(&args.name, &args.url)?;
    refuse_misfits(args, &place)?;
    let secret = secret(args, &place)?;
    let (name, user) = (args.name.clone(), args.user.clone());
    remotes::add(NewRemote { name, place, user, plain: args.plain, secret })?;
    let file = remotes::file()?;
    say(format!("Added {} to {}.", args.name, file.display()))?;
    say(format!("Try it out: oblivio remote test {0}   Use it: oblivio init {0}:FOLDER", args.name))
}

fn refuse_misfits(args: &RemoteAdd, place: &OnlinePlace) -> Result<()> {
    let logs_on = args.client_id.is_some();
    if logs_on && !place.service.is_account() {
        let what = "only dropbox, gdrive and onedrive have a log-on";
        return Err(usage(what, "Leave out --client-id."));
    }
    if logs_on && (args.secret_file.is_some() || args.secret_command.is_some() || args.no_secret) {
        let what = "a log-on makes the secret itself";
        return Err(usage(what, "Leave out --client-id, or what names another secret."));
    }
    let in_the_clear = matches!(place.service, Service::WebDav)
        || place.query("endpoint").is_some_and(|endpoint| endpoint.starts_with("http://"));
    if args.plain && !in_the_clear {
        let what = "--plain is for webdav:// and for endpoints with http://";
        return Err(usage(what, "Leave it out."));
    }
    let keys = matches!(place.service, Service::S3 | Service::R2 | Service::B2);
    let given = args.secret_file.is_some() || args.secret_command.is_some() || args.keyring;
    if keys && given && args.user.is_none() {
        let what = "the secret belongs to an access key";
        return Err(usage(what, "Add --user with the id of the key."));
    }
    let is_sftp = place.service == Service::Sftp;
    if is_sftp && given {
        let what = "sftp takes the keys of `ssh`, and no secret";
        return Err(usage(what, "Leave it out; ?key= in the URL names another key."));
    }
    Ok(())
}

fn secret(args: &RemoteAdd, place: &OnlinePlace) -> Result<NewSecret> {
    if let Some(file) = &args.secret_file {
        let path = absolute(file)?;
        return match args.keyring {
            true => Ok(NewSecret::Keyring(remotes::secret_in(file)?)),
            false => Ok(NewSecret::File(path)),
        };
    }
    if let Some(command) = &args.secret_command {
        return Ok(NewSecret::Command(command.clone()));
    }
    if place.service.is_account() && !args.no_secret {
        return log_on::tokens(args, place).map(|tokens| match args.keyring {
            true => NewSecret::Keyring(tokens),
            false => NewSecret::Beside(tokens),
        });
    }
    // `ssh` has its own keys, and a key of Google's is a file of many lines.
    let none = args.no_secret || matches!(place.service, Service::Sftp | Service::Gcs);
    match if none { None } else { ask(args)? } {
        None if args.keyring => Err(usage("there is no secret to keep", "Leave out --keyring.")),
        None => Ok(NewSecret::None),
        Some(secret) if args.keyring => Ok(NewSecret::Keyring(secret)),
        Some(secret) => Ok(NewSecret::Here(secret)),
    }
}

/// A path that means the same from elsewhere.
fn absolute(file: &Path) -> Result<String> {
    let path = std::path::absolute(file).context("the secret's file")?;
    match path.into_os_string().into_string() {
        Ok(path) => Ok(path),
        Err(_) => Err(usage("the secret's file has a name that is no text", "Rename it.")),
    }
}

fn ask(args: &RemoteAdd) -> Result<Option<StoreSecret>> {
    let question = format!("Password or key for {} (empty for none): ", args.name);
    passphrase::secret(&question).map(|typed| typed.map(StoreSecret::new))
}
