//! Places that look like URLs.

use std::path::Path;

/// Services whose URLs are folders of the user's account: `dropbox:/path`.
const ACCOUNTS: [&str; 3] = ["dropbox", "gdrive", "onedrive"];

/// The scheme of a place that looks like a URL: `s3` of `s3://bucket`.
pub fn scheme(place: &Path) -> Option<&str> {
    let text = place.to_str()?;
    let account = text.split_once(":/").map(|it| it.0);
    if let Some(account) = account.filter(|it| ACCOUNTS.contains(it)) {
        return Some(account);
    }
    let (scheme, _) = text.split_once("://")?;
    let mut letters = scheme.chars();
    let is_scheme = letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    is_scheme.then_some(scheme)
}

/// Whether volumes may be at URLs of this scheme.
pub fn is_service(scheme: &str) -> bool {
    let hosts = ["s3", "r2", "b2", "gs", "az", "webdav", "webdavs", "sftp"];
    hosts.contains(&scheme) || ACCOUNTS.contains(&scheme)
}
