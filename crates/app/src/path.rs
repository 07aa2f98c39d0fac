//! Paths inside a volume.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;

/// Why a text is no path inside a volume.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    /// It does not begin with `/`.
    #[error("{0:?} is not a path inside a volume")]
    NotAbsolute(String),
    /// It has `..` in it, which symbolic links make ambiguous.
    #[error("{0:?} has `..` in it")]
    Upwards(String),
}

/// An absolute path inside a volume; its names may be any bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumePath(Vec<Vec<u8>>);

impl VolumePath {
    /// Reads a path as people write it.
    ///
    /// # Errors
    /// It does not begin with `/`, or has `..` in it.
    pub fn parse(text: impl AsRef<OsStr>) -> Result<Self, BadPath> {
        let bytes = text.as_ref().as_bytes();
        let shown = || text.as_ref().to_string_lossy().into_owned();
        if bytes.first() != Some(&b'/') {
            return Err(BadPath::NotAbsolute(shown()));
        }
        let mut names = Vec::new();
        for name in bytes.split(|&b| b == b'/') {
            match name {
                b"" | b"." => {}
                b".." => return Err(BadPath::Upwards(shown())),
                name => names.push(name.to_vec()),
            }
        }
        Ok(Self(names))
    }

    /// The root.
    pub fn root() -> Self {
        Self(Vec::new())
    }

    /// The last name; `None` for the root.
    pub fn name(&self) -> Option<&[u8]> {
        self.0.last().map(Vec::as_slice)
    }

    /// The path without its last name.
    #[must_use]
    pub fn parent(&self) -> Self {
        Self(self.0[..self.0.len().saturating_sub(1)].to_vec())
    }

    /// The path of a name in this directory.
    #[must_use]
    pub fn join(&self, name: &[u8]) -> Self {
        Self(self.0.iter().cloned().chain([name.to_vec()]).collect())
    }

    /// The names from the root down.
    pub fn names(&self) -> &[Vec<u8>] {
        &self.0
    }

    /// Whether this is `other` or below it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// The path's bytes.
    pub fn bytes(&self) -> Vec<u8> {
        if self.0.is_empty() {
            return b"/".to_vec();
        }
        self.0.iter().flat_map(|name| [b"/", name.as_slice()].concat()).collect()
    }
}

impl fmt::Display for VolumePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read() -> Result<(), BadPath> {
        let path = |text: &str| VolumePath::parse(text);
        assert_eq!(path("/")?.bytes(), b"/");
        assert_eq!(path("//a/./b/")?.to_string(), "/a/b");
        assert_eq!(path("/a/b")?.name(), Some(&b"b"[..]));
        assert_eq!(path("/a/b")?.parent(), path("/a")?);
        assert!(path("/a/b")?.is_within(&path("/a")?));
        assert!(!path("/ab")?.is_within(&path("/a")?));
        for bad in ["", "a", "../a", "/a/../b", "/.."] {
            assert!(path(bad).is_err(), "{bad}");
        }
        Ok(())
    }
}
