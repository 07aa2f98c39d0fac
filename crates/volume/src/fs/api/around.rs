//! Reading, of what is whole and of what is not.

use super::super::read::same_error;
use super::super::types::Handle;
use super::FileSystem;
use crate::Result;
use crate::fs::ReadAround;

impl FileSystem {
    /// Reads a range; the answer is shorter at the end of the file. Long ranges are best: all their
    /// blocks are fetched together.
    ///
    /// # Errors
    /// `Lost` names the bytes of the range that are lost to damage; `Invalid` for a closed handle,
    /// and the block space's own.
    pub fn read(&self, handle: Handle, offset: u64, len: usize) -> Result<Vec<u8>> {
        self.read_around(handle, offset, len)?.whole()
    }

    /// As [`Self::read`], and gives what is there if some of it is lost. The store sees the same.
    ///
    /// # Errors
    /// Those of [`Self::read`], and `Lost` only where the metadata is lost.
    pub fn read_around(&self, handle: Handle, offset: u64, len: usize) -> Result<ReadAround> {
        self.run(|state| state.read(handle, offset, len))
    }

    /// Reads many ranges of any files, each as [`read_around`](Self::read_around), and fetches all
    /// their blocks together, each once. A failed request leaves the others alone if possible.
    pub fn read_many_around(&self, requests: &[(Handle, u64, usize)]) -> Vec<Result<ReadAround>> {
        match self.run(|state| state.read_many(requests)) {
            Ok(answers) => answers,
            Err(error) => requests.iter().map(|_| Err(same_error(&error))).collect(),
        }
    }
}
