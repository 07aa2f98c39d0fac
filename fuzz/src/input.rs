//! Turns a fuzzer's bytes into choices.

/// The rest of the input. Once it is used up, everything is zero.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// The next `len` bytes, or as many as are left.
    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// The next two bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// The next eight bytes.
    pub fn u64(&mut self) -> u64 {
        (0..8).fold(0, |number, at| number | u64::from(self.byte()) << (8 * at))
    }

    /// Whether anything is left.
    pub fn more(&self) -> bool {
        !self.0.is_empty()
    }

    /// Changes `bytes` by the rest of the input: patches of `[offset 2][length 1][bytes]`. One of
    /// length 0 cuts at its offset; one beyond the end appends. True if anything changed.
    pub fn patch(&mut self, bytes: &mut Vec<u8>) -> bool {
        let before = bytes.clone();
        while self.more() {
            let offset = usize::from(self.u16());
            let len = usize::from(self.byte());
            let new = self.take(len);
            if len == 0 {
                bytes.truncate(offset);
            } else if offset >= bytes.len() {
                bytes.extend_from_slice(new);
            } else {
                let end = bytes.len().min(offset + new.len());
                bytes[offset..end].copy_from_slice(&new[..end - offset]);
            }
        }
        *bytes != before
    }
}
