//! What a salvage finds lost.

use crate::LostBytes;
use crate::fs::types::Ino;

/// What is lost with blocks of the metadata of which no copy is left, and what became of the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Those blocks.
    pub blocks: u64,
    /// Names whose files are lost. They are removed.
    pub removed: Vec<String>,
    /// What has lost its name.
    pub found: Vec<FoundFile>,
    /// What has lost one of its names, or more, by a name that it kept.
    pub unlinked: Vec<String>,
    /// Bytes of files whose places are lost.
    pub lost: Vec<LostBytes>,
    /// What has lost its attributes, or some of them, and nothing else.
    pub bare: Vec<String>,
    /// How many files and directories are lost with their names, if that is known.
    pub unnamed: Option<u64>,
}

impl Salvaged {
    /// Whether all that is lost can be made anew from the rest.
    #[must_use]
    pub fn is_harmless(&self) -> bool {
        let named = [&self.removed, &self.unlinked, &self.bare];
        let all = named.iter().all(|list| list.is_empty());
        all && self.found.is_empty() && self.lost.is_empty() && self.unnamed == Some(0)
    }
}

/// What has lost its name and has a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// The number of its inode.
    pub ino: Ino,
    /// `#` and that number, in `lost+found`.
    pub path: String,
}
