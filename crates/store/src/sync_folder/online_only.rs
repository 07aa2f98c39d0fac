//! Files that a sync client keeps online only, and fetches when somebody reads them.
//!
//! Such a file has its length and no block on this disk. So reads of it would be seen by who keeps
//! the copies, and hiding which blocks are read is all that a volume is for.
//!
//! # Why no other file looks like that
//!
//! - Extents are sealed, so no file system makes them smaller by compression.
//! - A file system that keeps the content of tiny files beside their names, without a block, does
//!   so up to 2 KiB. Smaller files say nothing: all of them are read at every opening.
//! - A client may leave holes for zeros. An extent always has sealed bytes as well.
//! - Some file systems count no blocks at all. Then no file has any: a trial file tells.

use super::{Making, SyncFolder, named};
use crate::Result;
use crate::ports::Held;
use std::os::unix::fs::MetadataExt;

/// Files from this length on have blocks.
const LEAST: u64 = 4096;
/// Bytes of the trial file.
const TRIAL: usize = 16 << 10;

impl SyncFolder {
    /// A file of the folder whose content is not on this computer, if there is one.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn online_only(&self) -> Result<Option<String>> {
        let (mut first, mut counts_blocks) = (None, false);
        for (name, len) in self.files.list()? {
            // Gone since: no matter.
            let Ok(found) = self.folder.join(&name).metadata() else { continue };
            counts_blocks |= found.blocks() > 0;
            if len >= LEAST && found.blocks() == 0 {
                first.get_or_insert(name);
            }
        }
        Ok(match first {
            Some(name) if counts_blocks || self.trial_has_blocks()? => Some(name),
            _ => None,
        })
    }

    /// Whether a file that is surely here has blocks.
    fn trial_has_blocks(&self) -> Result<bool> {
        let mut noise = vec![0; TRIAL];
        blake3::Hasher::new().finalize_xof().fill(&mut noise);
        let failed = |error| named(&self.folder, error);
        let trial = Making::new(&self.folder, &noise, super::MADE).map_err(failed)?;
        Ok(trial.0.metadata().map_err(failed)?.blocks() > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Objects, PutMode};
    use std::fs::File;

    #[test]
    fn a_file_without_its_content_is_found_unless_it_is_tiny() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("folder");
        let store = SyncFolder::create(&folder, None).unwrap();
        assert_eq!(store.online_only().unwrap(), None);
        File::create(folder.join("k-tiny")).unwrap().set_len(LEAST - 1).unwrap();
        assert_eq!(store.online_only().unwrap(), None, "it would be read anyway");
        File::create(folder.join("x-1")).unwrap().set_len(LEAST).unwrap();
        assert_eq!(store.online_only().unwrap().as_deref(), Some("x-1"), "none has blocks");
        store.put("x-0", &[7; 10_000], PutMode::IfAbsent).unwrap();
        assert_eq!(store.online_only().unwrap().as_deref(), Some("x-1"), "another one has");
        std::fs::remove_file(folder.join("x-1")).unwrap();
        assert_eq!(store.online_only().unwrap(), None);
        let left: Vec<_> = folder.read_dir().unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(left.len(), 2, "no trial file is left: {left:?}");
    }
}
