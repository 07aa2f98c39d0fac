//! The access time map: by pages in the ORAM itself (§6.3), or in memory. A switch selects one.
//!
//! A page holds the access times of neighbouring blocks. It is a block like any other, at an
//! address after the data. Each flush updates a fixed number of pages in round-robin order,
//! whatever they hold: so a flush reveals nothing, and no write waits for a page. Memory holds the
//! times of blocks written since their page's last turn, and the pages' own times.

use super::access_time_map::{AccessTimeMap, Accessed, FIRST, NEVER, SETTLED};
use super::ids::{Generation, Turn};
use super::pages::{Pages, TIME_BYTES};
use super::schedule::Schedule;
use crate::BlockId;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// In a page: the time is not known, because the page before it was lost to damage.
const UNKNOWN: u32 = u32::MAX;
/// The number of distinct times in pages.
const MODULUS: u64 = UNKNOWN as u64 - FIRST as u64;

/// The known access times.
#[derive(Clone, Debug)]
pub struct Times {
    pages: Pages,
    /// The times of all blocks, or of the pages only.
    map: AccessTimeMap,
    /// Blocks of data written since their page had its turn.
    recent: BTreeMap<BlockId, Turn>,
    /// Turns of pages so far. A page read before a turn is old after it.
    version: u64,
}

impl Times {
    pub(super) fn new(pages: Pages, map: AccessTimeMap) -> Self {
        Self { pages, map, recent: BTreeMap::new(), version: 0 }
    }

    pub(super) fn pages(&self) -> &Pages {
        &self.pages
    }

    /// The map in memory: of all blocks, or of the pages.
    pub fn map(&self) -> &AccessTimeMap {
        &self.map
    }

    /// The place of an address in the map in memory; none when its time is in a page.
    fn in_map(&self, block: BlockId) -> Option<BlockId> {
        if self.pages.count == 0 {
            return Some(block);
        }
        block.0.checked_sub(self.pages.first).map(BlockId)
    }

    /// The access time of a block, seen from `now`, or the page that holds it.
    pub fn get(&self, block: BlockId, now: Turn) -> Result<Accessed, BlockId> {
        match (self.in_map(block), self.recent.get(&block)) {
            (Some(at), _) => Ok(self.map.get(at, now)),
            (None, Some(time)) => Ok(Accessed::At(*time)),
            (None, None) => Err(self.pages.of(block)),
        }
    }

    /// Records a write of a block.
    pub(super) fn set(&mut self, block: BlockId, time: Turn) {
        match self.in_map(block) {
            Some(at) => self.map.set(at, time),
            None => {
                self.recent.insert(block, time);
            }
        }
    }

    /// Marks a block as settled if it is in the last level. Pages are marked at their turn.
    pub(super) fn settle(&mut self, block: BlockId, schedule: &Schedule, now: Turn) {
        if let Some(at) = self.in_map(block)
            && let Accessed::At(time) = self.map.get(at, now)
            && schedule.is_settled(time, now)
        {
            self.map.settle(at);
        }
    }

    /// Blocks of data whose times stay in memory until their page has its turn.
    pub fn recent(&self) -> usize {
        self.recent.len()
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// A page in which all times are unknown, in place of one that is lost to damage.
    pub(super) fn lost_page(bytes: usize) -> Vec<u8> {
        vec![0xff; bytes]
    }

    /// The generation that the newest copy of a block comes to, beside another one of its level, by
    /// what memory and these pages know: whether it is older, newer or the same. `None` when nobody
    /// knows.
    pub(super) fn newest_beside(
        &self,
        block: BlockId,
        generation: Generation,
        (schedule, now): (&Schedule, Turn),
        pages: &BTreeMap<BlockId, Vec<u8>>,
    ) -> Option<Ordering> {
        let known = self.get(block, now);
        let in_page = |page| pages.get(&page).map(|content| self.in_page(content, block, now));
        match known.map_or_else(in_page, Some)? {
            Accessed::At(time) => {
                Some(schedule.generation(generation.level, time).number.cmp(&generation.number))
            }
            Accessed::Never | Accessed::Settled => Some(Ordering::Less),
            Accessed::Unknown => None,
        }
    }

    /// A page's time for a block. A block unknown to it may still be in the last level: it was
    /// written and settled, and a restart lost its time before the page had its turn.
    pub(super) fn in_page(&self, page: &[u8], block: BlockId, now: Turn) -> Accessed {
        let at = (block.0 % self.pages.times_per_page) as usize * TIME_BYTES;
        let bytes = page.get(at..).and_then(|rest| rest.first_chunk());
        match bytes.map_or(NEVER, |bytes| u32::from_le_bytes(*bytes)) {
            NEVER | SETTLED => Accessed::Settled,
            UNKNOWN => Accessed::Unknown,
            code => {
                let age = (now.0 % MODULUS + MODULUS - u64::from(code - FIRST)) % MODULUS;
                Accessed::At(Turn(now.0.saturating_sub(age)))
            }
        }
    }

    /// Adds the writes since its last turn to a page. Memory forgets them unless `keep` is set.
    pub(super) fn update_page(
        &mut self,
        page: BlockId,
        content: &mut [u8],
        schedule: &Schedule,
        now: Turn,
        keep: bool,
    ) {
        let blocks = self.pages.blocks(page);
        for block in blocks.clone().map(BlockId) {
            let known = match self.recent.get(&block) {
                Some(time) => Accessed::At(*time),
                None => self.in_page(content, block, now),
            };
            let code = match known {
                Accessed::Never | Accessed::Settled => SETTLED,
                Accessed::Unknown => UNKNOWN,
                Accessed::At(time) if schedule.is_settled(time, now) => SETTLED,
                Accessed::At(time) => (time.0 % MODULUS) as u32 + FIRST,
            };
            let at = (block.0 - blocks.start) as usize * TIME_BYTES;
            content[at..at + TIME_BYTES].copy_from_slice(&code.to_le_bytes());
        }
        self.version += 1;
        if !keep {
            let mut later = self.recent.split_off(&BlockId(blocks.start));
            let mut beyond = later.split_off(&BlockId(blocks.end));
            self.recent.append(&mut beyond);
        }
    }
}
