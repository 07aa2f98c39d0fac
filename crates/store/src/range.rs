//! Ranges of objects: one of a read, one of a write.

use std::sync::Arc;

/// One read of a range of an object. The store fills the whole buffer, or the call fails.
#[derive(Debug)]
pub struct ReadAt<'a> {
    /// The object's name.
    pub object: &'a str,
    /// First byte in the object.
    pub offset: u64,
    /// The buffer to fill.
    pub buf: &'a mut [u8],
}

/// One write into an object. The store creates or extends it as needed.
#[derive(Clone, Copy, Debug)]
pub struct WriteAt<'a> {
    /// The object's name.
    pub object: &'a str,
    /// First byte in the object.
    pub offset: u64,
    /// The data to write.
    pub data: &'a [u8],
    pub(crate) shared: Option<&'a Arc<Vec<u8>>>,
}

impl<'a> WriteAt<'a> {
    /// A write of a range.
    #[must_use]
    pub const fn new(object: &'a str, offset: u64, data: &'a [u8]) -> Self {
        Self { object, offset, data, shared: None }
    }

    /// The same with data that a store may keep for a while instead of a copy.
    #[must_use]
    pub fn shared(object: &'a str, offset: u64, data: &'a Arc<Vec<u8>>) -> Self {
        Self { object, offset, data, shared: Some(data) }
    }

    /// The data, to keep.
    #[must_use]
    pub fn to_kept(&self) -> Arc<Vec<u8>> {
        match self.shared {
            Some(shared) if std::ptr::eq(shared.as_slice(), self.data) => Arc::clone(shared),
            _ => Arc::new(self.data.to_vec()),
        }
    }
}
