//! The text form of identities and digests: hexadecimal digits.

/// Bytes as lower case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes from twice as many hexadecimal digits.
pub fn unhex<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let mut out = [0; N];
    if hex.len() != 2 * N || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_as_many_digits_as_asked_for_are_bytes() {
        assert_eq!(unhex(&hex(&[0, 0xaf, 0x10])), Some([0, 0xaf, 0x10]));
        for bad in ["", "0", "000", "+1", "0g", "\u{e9}"] {
            assert_eq!(unhex::<1>(bad), None, "{bad:?}");
        }
    }
}
