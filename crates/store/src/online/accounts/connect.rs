//! Where the three services answer, and the driver for each.

use super::super::driver::Driver;
use super::super::secrets::Secret;
use super::super::url::{Place, Service};
use super::account::Shared;
use super::client::{AT_ONCE, Client};
use super::http::{Judge, is_safe};
use super::tokens::Tokens;
use super::{dropbox, gdrive, onedrive};
use std::path::PathBuf;

/// Where a service answers: its requests, its contents, and its tokens.
struct Addresses {
    requests: &'static str,
    content: &'static str,
    tokens: &'static str,
}

const DROPBOX: Addresses = Addresses {
    requests: "https://api.dropboxapi.com",
    content: "https://content.dropboxapi.com",
    tokens: "https://api.dropboxapi.com/oauth2/token",
};

const GDRIVE: Addresses = Addresses {
    requests: "https://www.googleapis.com",
    content: "https://www.googleapis.com",
    tokens: "https://oauth2.googleapis.com/token",
};

const ONEDRIVE: Addresses = Addresses {
    requests: "https://graph.microsoft.com",
    content: "https://graph.microsoft.com",
    tokens: "https://login.microsoftonline.com/common/oauth2/v2.0/token",
};

/// The driver for a place, with the tokens that the secret holds. They are written back to `file`.
pub(in crate::online) fn driver(
    place: &Place,
    secret: &Secret,
    file: Option<PathBuf>,
    connections: reqwest::ClientBuilder,
) -> Result<Box<dyn Driver>, &'static str> {
    let endpoint = place.query("endpoint").map(|it| it.trim_end_matches('/'));
    if endpoint.is_some_and(|it| !is_safe(it)) {
        return Err("the endpoint must begin with https://, as it gets a token");
    }
    let address = |real: &str| match endpoint {
        Some(endpoint) => format!("{endpoint}{}", path_of(real)),
        None => real.to_owned(),
    };
    // A redirection is followed by hand, and never with a token.
    let connections = connections.redirect(reqwest::redirect::Policy::none());
    let http = connections.build().map_err(|_| "the connections cannot be set up")?;
    let (addresses, judge): (_, Judge) = match place.service {
        Service::Dropbox => (DROPBOX, dropbox::judge),
        Service::GDrive => (GDRIVE, gdrive::judge),
        _ => (ONEDRIVE, onedrive::judge),
    };
    let tokens = Tokens::new(secret, file, address(addresses.tokens))?;
    let client = Client::new(http, tokens, AT_ONCE, judge);
    let (requests, path) = (address(addresses.requests), &place.path);
    Ok(match place.service {
        Service::Dropbox => {
            let content = address(addresses.content);
            Box::new(Shared::new(dropbox::Dropbox::new(client, [requests, content], path)))
        }
        Service::GDrive => Box::new(Shared::new(gdrive::GDrive::new(client, requests, path))),
        _ => Box::new(Shared::new(onedrive::OneDrive::new(client, &requests, path))),
    })
}

/// What follows the host of an address.
fn path_of(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |it| it.1);
    rest.find('/').map_or("", |at| &rest[at..])
}
