//! The log-on to an account, in the user's browser.

use crate::args::RemoteAdd;
use crate::browser;
use crate::exit::usage;
use crate::human::say;
use anyhow::Result;
use oblivio_app::remotes::{self, AccountClient, OnlinePlace, StoreSecret};
use std::env;
use std::time::Duration;

/// How long a user may take at the service's page.
const PATIENCE: Duration = Duration::from_secs(300);

/// Where programs are registered with each service.
fn registration(place: &OnlinePlace) -> &'static str {
    match place.service.scheme() {
        "dropbox" => "https://www.dropbox.com/developers/apps",
        "gdrive" => "https://console.cloud.google.com/apis/credentials",
        _ => "https://entra.microsoft.com, under App registrations",
    }
}

/// Logs on, and gives the tokens.
pub fn tokens(args: &RemoteAdd, place: &OnlinePlace) -> Result<StoreSecret> {
    let Some(id) = &args.client_id else {
        let what = "the service wants to know which program asks for tokens";
        let hint = format!(
            "Register one of your own ({}), and add --client-id ID. docs/online.md shows how. Tokens \
             that you have already go with --secret-file.",
            registration(place)
        );
        return Err(usage(what, hint));
    };
    let secret = args.client_secret_file.as_deref().map(remotes::secret_in);
    let client = AccountClient { id: id.clone(), secret: secret.transpose()? };
    let log_on = remotes::begin_log_on(place, client, args.port)?;
    say(format!("Open this page in your browser and log on, within {} minutes:", minutes()))?;
    say(format!("  {}", log_on.address()))?;
    say(format!("The browser then comes back to {} on this computer.", log_on.redirect()))?;
    let launcher = tempfile::tempdir()?;
    if has_display() {
        browser::open(&launcher.path().join("log-on.html"), log_on.address(), "Log on");
    }
    Ok(remotes::finish_log_on(log_on, PATIENCE)?)
}

fn minutes() -> u64 {
    PATIENCE.as_secs() / 60
}

fn has_display() -> bool {
    ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| env::var_os(name).is_some_and(|it| !it.is_empty()))
}
