//! Bytes that are wiped on drop, and kept out of swap and core dumps where the system allows it.

use memmap2::MmapMut;
use std::fmt;
use zeroize::Zeroize;

/// The place of a secret.
///
/// The system locks and marks whole pages and does not count the locks: if two secrets shared a
/// page, dropping one would unlock the other. So each secret has its own page, from the system and
/// not from the allocator, and the mark goes with the page. The few long-lived keys can afford it.
enum Page<const N: usize> {
    Own(MmapMut),
    /// The system has no free page.
    Shared(Box<[u8; N]>),
}

impl<const N: usize> Page<N> {
    /// Zeros. Locking and marking can fail, for instance at the user's limit of locked memory. The
    /// secret is then as safe as any other memory, which is better than refusing to open a volume.
    fn new() -> Self {
        let Ok(map) = MmapMut::map_anon(N.max(1)) else { return Self::Shared(Box::new([0; N])) };
        let _ = map.lock();
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::DontDump);
        Self::Own(map)
    }

    fn bytes(&self) -> &[u8; N] {
        match self {
            Self::Own(map) => map.first_chunk().expect("a page that was made for N bytes"),
            Self::Shared(bytes) => bytes,
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8; N] {
        match self {
            Self::Own(map) => map.first_chunk_mut().expect("a page that was made for N bytes"),
            Self::Shared(bytes) => bytes,
        }
    }
}

/// `N` secret bytes: never copied, never printed, wiped on drop; locked in memory and left out of
/// core dumps when possible.
pub struct Secret<const N: usize>(Page<N>);

impl<const N: usize> Secret<N> {
    /// A secret that `fill` writes in its final place, so that no copy remains.
    pub fn new(fill: impl FnOnce(&mut [u8; N])) -> Self {
        let mut page = Page::new();
        fill(page.bytes_mut());
        Self(page)
    }

    /// The bytes, for a short use.
    pub fn expose(&self) -> &[u8; N] {
        self.0.bytes()
    }

    /// Whether both are equal, in a time that reveals no position of a difference.
    pub fn same_as(&self, other: &Self) -> bool {
        same_bytes(self.expose(), other.expose())
    }
}

impl<const N: usize> Drop for Secret<N> {
    fn drop(&mut self) {
        self.0.bytes_mut().zeroize();
    }
}

impl<const N: usize> fmt::Debug for Secret<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Compares in constant time (lengths are public).
pub(crate) fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(a, b).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_and_compares() {
        let secret = Secret::<32>::new(|bytes| bytes.fill(7));
        assert_eq!(secret.expose(), &[7; 32]);
        assert!(secret.same_as(&Secret::new(|bytes| bytes.fill(7))));
        assert!(!secret.same_as(&Secret::new(|bytes| bytes[31] = 7)));
        assert!(!same_bytes(&[1, 2], &[1, 2, 3]));
    }

    #[test]
    fn debug_shows_nothing() {
        assert_eq!(format!("{:?}", Secret::<4>::new(|b| b.fill(0xab))), "Secret(..)");
    }

    #[test]
    fn each_secret_has_its_own_page() {
        let secrets: Vec<Secret<32>> = (0..64).map(|n| Secret::new(|b| b.fill(n))).collect();
        for secret in &secrets {
            assert_eq!(secret.expose().as_ptr() as usize % 4096, 0);
        }
    }

    #[test]
    fn more_secrets_than_can_be_locked_still_work() {
        // 8 MiB is a common limit; this asks for 16.
        let secrets: Vec<Secret<8>> =
            (0..4096u64).map(|n| Secret::new(|b| *b = n.to_le_bytes())).collect();
        assert!(secrets.iter().zip(0u64..).all(|(s, n)| s.expose() == &n.to_le_bytes()));
    }
}
