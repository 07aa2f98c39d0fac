//! What a volume says of itself beside what all volumes have in common: data that its engine makes,
//! and that others show or ask for by name. So nobody else has to know the engine.

pub mod flushes;
pub mod words;

use flushes::Flushes;
use words::count;

/// A value for programs.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// A count.
    Number(u64),
    /// A ratio.
    Ratio(f64),
    /// Whether something is so.
    Flag(bool),
    /// A name.
    Text(String),
    /// Counts, in an order.
    Numbers(Vec<u64>),
    /// Names, in an order.
    Texts(Vec<String>),
}

/// Whom a sentence is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audience {
    All,
    Files,
    Disk,
}

/// What can be drawn of a store while its volume is used.
#[derive(Clone, Debug, PartialEq)]
pub enum Picture {
    /// Paths of a tree.
    Paths {
        /// Bytes of a bucket.
        bucket_bytes: u64,
        /// Bytes of the blocks that the tree is sized for.
        size_class_bytes: u64,
        /// The level of the leaves.
        depth: u32,
    },
    /// Writes that go round in levels.
    Rounds {
        /// The object that holds the levels.
        object: &'static str,
        /// The levels, end to end: their names and bytes.
        levels: Vec<(String, u64)>,
        /// What has been written there so far.
        flushes: Flushes,
    },
}

/// What an engine reports of a volume.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineReport {
    /// Values by their names, for programs.
    pub facts: Vec<(&'static str, Fact)>,
    /// Labels and values, for people.
    pub rows: Vec<(&'static str, String)>,
    /// What a watcher can draw, if anything.
    pub picture: Option<Picture>,
    sentences: Vec<(Audience, String)>,
}

impl EngineReport {
    /// The count of this name, if there is one.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.facts.iter().find_map(|(its, fact)| match fact {
            Fact::Number(number) if *its == name => Some(*number),
            _ => None,
        })
    }

    /// What leaks and what an access costs, line by line, for the user of files or of a disk.
    pub fn sentences(&self, disk: bool) -> impl Iterator<Item = &str> {
        let other = if disk { Audience::Files } else { Audience::Disk };
        self.sentences.iter().filter(move |(who, _)| *who != other).map(|(_, line)| line.as_str())
    }

    /// Adds facts that are counts.
    pub fn numbers<const N: usize>(&mut self, counts: [(&'static str, u64); N]) {
        self.facts.extend(counts.map(|(name, count)| (name, Fact::Number(count))));
    }

    /// Adds a row.
    pub fn row(&mut self, label: &'static str, value: impl Into<String>) {
        self.rows.push((label, value.into()));
    }

    /// Adds the row on what the opening replayed, if it did.
    pub fn recovered(&mut self, replayed: u64, what: &str) {
        if replayed > 0 {
            let parts = count(replayed, what);
            self.row("recovered", format!("{parts} of a session that did not end"));
        }
    }

    /// Says one line.
    pub fn say(&mut self, line: impl Into<String>) {
        self.sentences.push((Audience::All, line.into()));
    }

    /// Says one thing of files, and another of a disk.
    pub fn say_of(&mut self, files: &str, disk: &str) {
        let lines = [(Audience::Files, files.into()), (Audience::Disk, disk.into())];
        self.sentences.extend(lines);
    }

    /// Says how many passphrases there are, which everybody can count.
    pub fn say_openers(&mut self, passphrases: usize) {
        self.say(format!("  - that {} can open it", count(passphrases as u64, "passphrase")));
    }
}
