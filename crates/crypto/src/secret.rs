//! Bytes that are wiped when dropped and kept out of swap where the system allows it.

use std::fmt;
use zeroize::Zeroize;

/// Holds a secret alone on its page.
///
/// The system locks whole pages and does not count how often: had two secrets a page in common,
/// dropping one would unlock the other. (Where pages are larger than 4 KiB they may still share
/// one; then the lock is lost early, the wiping is not.) The few long-lived keys can afford it.
#[repr(align(4096))]
struct Page<const N: usize>([u8; N]);

/// `N` secret bytes: never copied, never printed, wiped on drop, locked in memory when possible.
///
/// Locking can fail, for instance at the user's limit of locked memory. The secret is then as safe
/// as any other memory, which beats refusing to open a volume.
pub struct Secret<const N: usize> {
    // Declared before the page: unlocked while the page is still there.
    _lock: Option<region::LockGuard>,
    page: Box<Page<N>>,
}

impl<const N: usize> Secret<N> {
    /// A secret that `fill` writes in its final place, so that no copy stays behind.
    pub fn new(fill: impl FnOnce(&mut [u8; N])) -> Self {
        let mut page = Box::new(Page([0; N]));
        // A failed lock is no reason to fail: see above.
        let lock = region::lock(page.0.as_ptr(), N).ok();
        fill(&mut page.0);
        Self { _lock: lock, page }
    }

    /// The bytes, for the moment they are needed.
    pub fn expose(&self) -> &[u8; N] {
        &self.page.0
    }

    /// Whether both are equal, in a time that tells nothing about where they differ.
    pub fn same_as(&self, other: &Self) -> bool {
        same_bytes(self.expose(), other.expose())
    }
}

impl<const N: usize> Drop for Secret<N> {
    fn drop(&mut self) {
        self.page.0.zeroize();
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
