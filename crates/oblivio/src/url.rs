//! Places that look like URLs.

use std::path::Path;

/// The scheme of a place that looks like a URL: `s3` of `s3://bucket`.
pub fn scheme(place: &Path) -> Option<&str> {
    let (scheme, _) = place.to_str()?.split_once("://")?;
    let mut letters = scheme.chars();
    let is_scheme = letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    is_scheme.then_some(scheme)
}

/// Whether volumes may be at URLs of this scheme.
pub fn is_service(scheme: &str) -> bool {
    ["s3", "r2", "b2", "gs", "az", "webdav", "webdavs", "sftp"].contains(&scheme)
}
