//! What a salvage finds lost.

use crate::LostBytes;

/// What is lost with blocks of the metadata of which no copy is left, and what became of the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Those blocks.
    pub blocks: u64,
    /// Names whose files are lost. They are removed.
    pub removed: Vec<String>,
    /// What has lost its name, by its new one: the number of its inode, in `lost+found`.
    pub found: Vec<String>,
    /// Bytes of files whose places are lost; a file without ranges has lost all of them.
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
        let named = [&self.removed, &self.found, &self.bare];
        named.iter().all(|list| list.is_empty()) && self.lost.is_empty() && self.unnamed == Some(0)
    }
}
