//! What is lost to damage, said once: a program that reads on, or a kernel that tries again, would
//! fill the log.

use crate::log;
use oblivio_volume::LostBytes;
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

/// The most things that are said one by one.
const MOST: usize = 1000;

/// What was said already: by the file, or by the place.
pub struct ToldLost<K>(Mutex<HashSet<K>>);

impl<K: Hash + Eq> Default for ToldLost<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Hash + Eq> ToldLost<K> {
    /// Says what is lost of this thing, unless that was said before.
    pub fn tell(&self, key: K, lost: &LostBytes) {
        let line = self.news(key).then(|| {
            let more = "oblivio check VOLUME names all that is lost; everything else is served";
            format!("{lost}. {more}")
        });
        if let Some(line) = line {
            log::note(&line);
        }
    }

    /// Whether it is the first time, and not one of too many.
    fn news(&self, key: K) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.len() < MOST && told.insert(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_news_once_and_a_log_is_not_filled() {
        let told = ToldLost::default();
        assert!(told.news(3) && told.news(4) && !told.news(3));
        assert_eq!((10..5_000).filter(|&key| told.news(key)).count(), MOST - 2);
    }
}
