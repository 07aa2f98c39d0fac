//! Where the three services answer, and the driver for each.

use super::super::config::SecretFrom;
use super::super::driver::Driver;
use super::super::secrets::StoreSecret;
use super::super::url::{OnlinePlace, Service, is_safe};
use super::account::Shared;
use super::client::{AT_ONCE, Client};
use super::http::Judge;
use super::tokens::Tokens;
use super::{dropbox, gdrive, onedrive};

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

/// The driver for a place, with the tokens that the secret holds. Newer ones are kept where it is
/// from.
pub(crate) fn driver(
    place: &OnlinePlace,
    secret: &StoreSecret,
    from: &SecretFrom,
    connections: reqwest::ClientBuilder,
) -> Result<Box<dyn Driver>, &'static str> {
    let address = addresses_at(place)?;
    let http = client(connections)?;
    let (addresses, judge): (_, Judge) = match place.service {
        Service::Dropbox => (DROPBOX, dropbox::judge),
        Service::GDrive => (GDRIVE, gdrive::judge),
        _ => (ONEDRIVE, onedrive::judge),
    };
    let tokens = Tokens::new(secret, Some(from.clone()), address(addresses.tokens))?;
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

/// Where a place's service answers really: at another server, if the URL names one.
pub(super) fn addresses_at(place: &OnlinePlace) -> Result<impl Fn(&str) -> String, &'static str> {
    let endpoint = place.query("endpoint").map(|it| it.trim_end_matches('/').to_owned());
    if endpoint.as_ref().is_some_and(|it| !is_safe(it)) {
        return Err("the endpoint must begin with https://, as it gets a token");
    }
    Ok(move |real: &str| match &endpoint {
        Some(endpoint) => format!("{endpoint}{}", path_of(real)),
        None => real.to_owned(),
    })
}

/// Connections for requests of ours. They follow no redirection: that is done by hand, and never
/// with a token.
pub(super) fn client(connections: reqwest::ClientBuilder) -> Result<reqwest::Client, &'static str> {
    connections.build().map_err(|_| "the connections cannot be set up")
}

/// Where somebody logs on at a service, where tokens are given, and what they are for.
pub(super) fn log_on_at(service: Service) -> [&'static str; 3] {
    match service {
        Service::Dropbox => [
            "https://www.dropbox.com/oauth2/authorize",
            DROPBOX.tokens,
            "files.metadata.read files.content.read files.content.write",
        ],
        Service::GDrive => [
            "https://accounts.google.com/o/oauth2/v2/auth",
            GDRIVE.tokens,
            // Files that this program made, and no others.
            "https://www.googleapis.com/auth/drive.file",
        ],
        _ => [
            "https://login.microsoftonline.com/common/oauth2/v2.0/authorize",
            ONEDRIVE.tokens,
            "Files.ReadWrite offline_access",
        ],
    }
}

/// What follows the host of an address.
fn path_of(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |it| it.1);
    rest.find('/').map_or("", |at| &rest[at..])
}
