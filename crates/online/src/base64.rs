//! Bytes as letters.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// As most services want it.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let byte = |index: usize| u32::from(part.get(index).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for index in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * index)) as usize & 63];
            text.push(if index <= part.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// As it stands in an address.
pub(super) fn encode_for_url(bytes: &[u8]) -> String {
    encode(bytes).trim_end_matches('=').replace('+', "-").replace('/', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms() {
        assert_eq!(encode(b"\xfb\xff\xfe"), "+//+");
        assert_eq!(encode_for_url(b"\xfb\xff\xfe"), "-__-");
        assert_eq!((encode(b"a"), encode_for_url(b"a")), ("YQ==".into(), "YQ".into()));
    }
}
