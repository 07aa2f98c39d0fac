//! A call to Linux that no library has: the unsafe code of this crate.
#![allow(unsafe_code)]

use std::fs::File;

/// Has the system begin to write out what it was given of a range, and waits for nothing: a sync has less to
/// do then. An error is told by that sync.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn begin(file: &File, offset: u64, len: u64) {
    use std::os::fd::AsRawFd;
    if let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) {
        // SAFETY: it takes numbers only, and the file is open while it is borrowed.
        unsafe {
            libc::sync_file_range(file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE)
        };
    }
}

/// Other systems begin when they like.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn begin(_file: &File, _offset: u64, _len: u64) {}
