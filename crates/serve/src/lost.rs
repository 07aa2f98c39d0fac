//! What is lost to damage, said once: a program that reads on, or a kernel that tries again, would
//! fill the log.

use crate::log;
use oblivio_volume::fs::Ino;
use oblivio_volume::{DamagedPlace, Error, LostBytes};
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
        if self.news(key) {
            let more = "oblivio check VOLUME names all that is lost; everything else is served";
            log::note(&format!("{lost}. {more}"));
        }
    }

    /// Whether it is the first time, and not one of too many.
    fn news(&self, key: K) -> bool {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.len() < MOST && told.insert(key)
    }
}

impl ToldLost<Ino> {
    /// Says once of each file that something of it is lost. A kernel that caches takes a short
    /// answer for the end of the file, so a read that wants a lost byte fails, and the kernel asks
    /// for its pages one by one.
    pub fn tell_file(&self, ino: Ino, error: Option<&Error>) {
        let Some(Error::Lost(lost)) = error else { return };
        let what = match lost.is_metadata() {
            true => lost.what.clone(),
            false => format!("the file of inode {ino} (find DIR -inum {ino})"),
        };
        self.tell(ino, &LostBytes { what, ..lost.clone() });
    }
}

/// Says each damaged place once, as a scrub meets it.
pub fn damage_log() -> impl FnMut(&DamagedPlace) + Send {
    let said = ToldLost::<String>::default();
    move |place| {
        if said.news(place.to_string()) {
            let more = "oblivio check VOLUME names the files; everything else is served";
            log::note(&format!("damaged: {place}. {more}"));
        }
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
