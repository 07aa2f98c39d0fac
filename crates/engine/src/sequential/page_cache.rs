//! Recently read pages of the access time map (§6.3, effect of caching): a sequential read finds
//! the times of its blocks in one page.

use crate::BlockId;
use std::collections::{BTreeMap, VecDeque};

/// The most pages kept.
const MOST: usize = 64;

/// The most recently read pages. A page that has its turn must be forgotten.
#[derive(Default)]
pub(super) struct PageCache {
    pages: BTreeMap<BlockId, Vec<u8>>,
    order: VecDeque<BlockId>,
}

impl PageCache {
    pub fn get(&self, page: BlockId) -> Option<&[u8]> {
        self.pages.get(&page).map(Vec::as_slice)
    }

    pub fn insert(&mut self, page: BlockId, content: Vec<u8>) {
        if self.pages.insert(page, content).is_none() {
            self.order.push_back(page);
        }
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.pages.remove(&oldest);
        }
    }

    pub fn forget(&mut self, page: BlockId) {
        if self.pages.remove(&page).is_some() {
            self.order.retain(|kept| *kept != page);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_kept_up_to_a_number_until_they_are_forgotten() {
        let mut cache = PageCache::default();
        for page in 0..100 {
            cache.insert(BlockId(page), vec![page as u8]);
            cache.insert(BlockId(page), vec![page as u8]);
            assert!(cache.pages.len() <= MOST && cache.order.len() == cache.pages.len());
        }
        assert_eq!(cache.get(BlockId(99)), Some(&[99][..]));
        assert_eq!(cache.get(BlockId(0)), None);
        cache.forget(BlockId(99));
        assert_eq!(cache.get(BlockId(99)), None);
        assert_eq!(cache.order.len(), cache.pages.len());
    }
}
