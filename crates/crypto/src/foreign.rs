//! What others' protocols and files want. Nothing of a volume stands on it.

use aws_lc_rs::cipher::{AES_256, DecryptingKey, DecryptionContext, UnboundCipherKey};
use aws_lc_rs::digest;
use aws_lc_rs::iv::FixedLength;
use zeroize::Zeroizing;

/// SHA-256, for services that want it of public bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    out
}

/// The key under which rclone hides passwords from a glance. It stands in its source, so such a
/// password is no secret from anybody who has the file.
const RCLONE_KEY: [u8; 32] = [
    0x9c, 0x93, 0x5b, 0x48, 0x73, 0x0a, 0x55, 0x4d, 0x6b, 0xfd, 0x7c, 0x63, 0xc8, 0x86, 0xa9, 0x2b,
    0xd3, 0x90, 0x19, 0x8e, 0xb8, 0x12, 0x8a, 0xfb, 0xf4, 0xde, 0x16, 0x2b, 0x8b, 0x95, 0xf6, 0x38,
];

/// A password that rclone made unreadable (`rclone obscure`): 16 bytes to begin with, then AES-256
/// in counter mode. `None` if it is none.
pub fn reveal_of_rclone(hidden: &[u8]) -> Option<Zeroizing<String>> {
    let (first, rest) = hidden.split_at_checked(16)?;
    let key = DecryptingKey::ctr(UnboundCipherKey::new(&AES_256, &RCLONE_KEY).ok()?).ok()?;
    let first = FixedLength::from(<&[u8; 16]>::try_from(first).ok()?);
    let mut plain = Zeroizing::new(rest.to_vec());
    let plain = key.decrypt(&mut plain, DecryptionContext::Iv128(first)).ok()?;
    std::str::from_utf8(plain).ok().map(|text| Zeroizing::new(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len() / 2)
            .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hex"))
            .collect()
    }

    #[test]
    fn the_hash_is_the_standards() {
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc").to_vec(), bytes(known));
    }

    /// The values of rclone's own test (`fs/config/obscure/obscure_test.go`), as bytes.
    #[test]
    fn what_rclone_hides_is_found() {
        let (a, b) = ("61".repeat(16), "62".repeat(16));
        let reveal = |hex: String| reveal_of_rclone(&bytes(&hex)).map(|text| text.to_string());
        assert_eq!(reveal(format!("{a}731a1a022511")).as_deref(), Some("potato"));
        assert_eq!(reveal(format!("{b}9de070459b03")).as_deref(), Some("potato"));
        assert_eq!(reveal(a.clone()).as_deref(), Some(""));
        assert_eq!(reveal(a[..30].to_owned()), None);
    }
}
