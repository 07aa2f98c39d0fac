//! A file system as a sequence of asks, by the design's table of asks for each operation: a file is
//! made with 3 (bucket, folder, inode), written with one for each block and one for its inode, and
//! opened with 1.

use super::work::{Wish, Work};

/// Blocks that a file has besides its content: bucket, folder, inode.
const OWN: u64 = 3;

/// What is done with all files at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Made, written and closed.
    Write,
    /// Opened and read.
    Read,
}

/// Where a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Made or opened.
    Begin,
    /// Its blocks.
    Content,
    /// Its inode, after all blocks.
    End,
    Over,
}

#[derive(Clone, Copy, Debug)]
struct File {
    stage: Stage,
    /// Asks of this stage that were made, and that were answered.
    made: u64,
    answered: u64,
}

/// Files that are written or read at once, each in its own order.
pub struct Files {
    way: Way,
    blocks_of_each: u64,
    files: Vec<File>,
    /// The file that may ask next: they take turns.
    turn: usize,
    /// The first block of the first file.
    first: u64,
}

impl Files {
    /// This many files of this many blocks; the first block of all is `first`.
    pub fn new(way: Way, files: usize, blocks_of_each: u64, first: u64) -> Self {
        let file = File { stage: Stage::Begin, made: 0, answered: 0 };
        Self { way, blocks_of_each, files: vec![file; files], turn: 0, first }
    }

    /// Blocks that the files take, their own included.
    pub fn blocks(&self) -> u64 {
        self.files.len() as u64 * (self.blocks_of_each + OWN)
    }

    /// Asks of all files.
    pub fn asks(&self) -> usize {
        let stages = [Stage::Begin, Stage::Content, Stage::End];
        let each: u64 = stages.iter().map(|stage| self.asks_of(*stage)).sum();
        each as usize * self.files.len()
    }

    /// Asks of a stage.
    fn asks_of(&self, stage: Stage) -> u64 {
        match (stage, self.way) {
            (Stage::Begin, Way::Write) => OWN,
            (Stage::Begin, Way::Read) | (Stage::End, Way::Write) => 1,
            (Stage::Content, _) => self.blocks_of_each,
            (Stage::End, Way::Read) | (Stage::Over, _) => 0,
        }
    }

    /// The block of an ask.
    fn block(&self, file: usize, stage: Stage, number: u64) -> u64 {
        let first = self.first + file as u64 * (self.blocks_of_each + OWN);
        match stage {
            Stage::Content => first + OWN + number,
            // The inode is the last of a file's own.
            Stage::Begin if self.way == Way::Write => first + number,
            _ => first + OWN - 1,
        }
    }
}

impl Work for Files {
    fn next(&mut self) -> Option<Wish> {
        let count = self.files.len();
        let mut turns = (0..count).map(|step| (self.turn + step) % count);
        let at = turns.find(|&at| self.files[at].made < self.asks_of(self.files[at].stage))?;
        let File { stage, made, .. } = self.files[at];
        self.files[at].made += 1;
        self.turn = (at + 1) % count;
        let writes = self.way == Way::Write;
        Some(Wish { block: self.block(at, stage, made), writes, tag: at })
    }

    fn answered(&mut self, wish: Wish) {
        self.files[wish.tag].answered += 1;
        while self.files[wish.tag].answered == self.asks_of(self.files[wish.tag].stage) {
            let stage = match self.files[wish.tag].stage {
                Stage::Begin => Stage::Content,
                Stage::Content => Stage::End,
                Stage::End => Stage::Over,
                Stage::Over => break,
            };
            self.files[wish.tag] = File { stage, made: 0, answered: 0 };
        }
    }

    fn is_over(&self) -> bool {
        self.files.iter().all(|file| file.stage == Stage::Over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The design's table: 3 asks make a file, ceil(n/4096) + 1 write and close it, 1 opens it.
    #[test]
    fn the_asks_are_those_of_the_table() {
        for (way, asks) in [(Way::Write, 3 + 5 + 1), (Way::Read, 1 + 5)] {
            let mut files = Files::new(way, 2, 5, 100);
            assert_eq!(files.asks(), 2 * asks);
            let mut seen = Vec::new();
            while let Some(wish) = files.next() {
                assert!((100..100 + files.blocks()).contains(&wish.block));
                assert_eq!(wish.writes, way == Way::Write);
                seen.push(wish.block);
                files.answered(wish);
            }
            assert_eq!(seen.len(), 2 * asks);
            assert!(files.is_over());
        }
    }

    /// No block is written before its file is made, and no inode before its file's blocks.
    #[test]
    fn a_stage_waits_for_the_one_before() {
        let mut files = Files::new(Way::Write, 1, 4, 0);
        let begin: Vec<_> = std::iter::from_fn(|| files.next()).collect();
        assert_eq!(begin.len(), 3);
        begin.into_iter().for_each(|wish| files.answered(wish));
        let content: Vec<_> = std::iter::from_fn(|| files.next()).collect();
        assert_eq!(content.len(), 4);
        content.iter().take(3).for_each(|wish| files.answered(*wish));
        assert_eq!(files.next(), None);
        files.answered(content[3]);
        assert_eq!(files.next().map(|wish| wish.block), Some(2));
    }
}
