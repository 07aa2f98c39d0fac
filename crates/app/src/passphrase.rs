//! The form of a passphrase in which every program derives keys from it.

use unicode_normalization::UnicodeNormalization;
use zeroize::Zeroizing;

/// Bytes in Unicode's composed form (NFC), if they are text: the same accent from another keyboard
/// or system opens the same volume.
#[must_use]
pub fn normal(typed: Zeroizing<Vec<u8>>) -> Zeroizing<Vec<u8>> {
    match std::str::from_utf8(&typed) {
        Ok(text) if !text.is_ascii() => {
            // Composed text is at most three times as long, so this buffer does not move and leaves
            // no copy behind.
            let mut composed = String::with_capacity(3 * text.len());
            composed.extend(text.nfc());
            Zeroizing::new(composed.into_bytes())
        }
        _ => typed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn composing_leaves_no_copy_behind() {
        // The longest result of composing; it must not have moved.
        let long = "\u{fb2c}".repeat(100);
        let composed = normal(Zeroizing::new(long.clone().into_bytes()));
        assert!(composed.capacity() <= 3 * long.len());
    }
}
