//! Folders in accounts of Dropbox, Google Drive and OneDrive, over drivers of our own.
//!
//! The library that speaks to the other services cannot create an object exclusively here, nor
//! store several at once. Each driver keeps all objects of a store in one folder of the account,
//! and knows nothing but their names. Upper and lower case are the same to two of the services;
//! names of a volume's objects are in lower case.

mod client;
mod dropbox;
mod http;
mod tokens;

use super::driver::Driver;
use super::secrets::Secret;
use super::url::{Place, Service};
use client::Client;
use std::path::PathBuf;
use tokens::Tokens;

/// Requests at once. More are answered with "wait" soon.
const AT_ONCE: usize = 8;

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

/// The driver for a place, with the tokens that the secret holds. They are written back to `file`.
pub(super) fn driver(
    place: &Place,
    secret: &Secret,
    file: Option<PathBuf>,
    connections: reqwest::ClientBuilder,
) -> Result<Box<dyn Driver>, &'static str> {
    let endpoint = place.query("endpoint").map(|it| it.trim_end_matches('/'));
    if endpoint.is_some_and(|it| !http::is_safe(it)) {
        return Err("the endpoint must begin with https://, as it gets a token");
    }
    let address = |real: &str| match endpoint {
        Some(endpoint) => format!("{endpoint}{}", path_of(real)),
        None => real.to_owned(),
    };
    // A redirection is followed by hand, and never with a token.
    let connections = connections.redirect(reqwest::redirect::Policy::none());
    let http = connections.build().map_err(|_| "the connections cannot be set up")?;
    let client = |addresses: &Addresses, judge| {
        let tokens = Tokens::new(secret, file, address(addresses.tokens))?;
        Ok::<_, &'static str>(Client::new(http, tokens, AT_ONCE, judge))
    };
    Ok(match place.service {
        Service::Dropbox => Box::new(dropbox::Dropbox::new(
            client(&DROPBOX, dropbox::judge)?,
            [address(DROPBOX.requests), address(DROPBOX.content)],
            &place.path,
        )),
        _ => return Err("this service has no driver of ours"),
    })
}

/// What follows the host of an address.
fn path_of(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |it| it.1);
    rest.find('/').map_or("", |at| &rest[at..])
}
