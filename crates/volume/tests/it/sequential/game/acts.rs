//! The inspector's acts. He sees all that came of each before he names the next one.

use super::super::model::{Event, any_event};
use oblivio_testkit::Dice;
use std::time::Duration;

/// Who opens a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// By the outer passphrase, whatever is hidden.
    Inspector,
    /// By the passphrase that he likes.
    Owner,
}

/// Something done to what stands in a lane while the volume is closed. Which lane, which of its
/// objects, and which places, follow from the numbers.
#[derive(Clone, Copy, Debug)]
pub enum Harm {
    Flip {
        object: u64,
        at: u64,
        bits: u8,
    },
    Zeros {
        object: u64,
        at: u64,
        len: u64,
    },
    Swap {
        object: u64,
        at: u64,
        with: u64,
        len: u64,
    },
    /// An object as it was in the last copy, or all of the lanes.
    Back {
        object: Option<u64>,
    },
    /// A bit of what is not a lane's.
    Outer {
        object: u64,
        at: u64,
    },
}

/// An act that both worlds see.
#[derive(Clone, Debug)]
pub enum Act {
    Open(Who),
    Outer(Event),
    /// `info`, `check`, all contents.
    Look,
    Sleep(Duration),
    /// The power will fail after this many operations of the store.
    Cut(u64),
    /// It fails now, and what survives follows from this number. Or it had failed.
    Crash(u64),
    /// The program is killed: the system still writes all that it was given.
    Kill,
    /// A copy of the whole disk.
    Copy,
    Harm(Harm),
    /// The whole disk is as it was in the last copy, and opened as a backup that was restored.
    Restore,
}

/// The inspector.
pub struct Inspector {
    dice: Dice,
    blocks: u64,
    who: Option<Who>,
    has_copy: bool,
    /// Whether the power was cut, or may be.
    cut: bool,
    /// Each event small and synced at once, which fills the log.
    syncs: bool,
}

impl Inspector {
    pub fn new(mut dice: Dice, blocks: u64) -> Self {
        let syncs = dice.below(3) == 0;
        // The volume was made, and its owner has it open.
        let who = Some(Who::Owner);
        Self { dice, blocks, who, has_copy: false, cut: false, syncs }
    }

    /// The next act, after what was seen, of which `seen` is a digest. `works` says whether the
    /// volume is open and usable.
    pub fn next(&mut self, seen: u64, works: bool) -> Act {
        // What he does next depends on all that he saw, bytes of lanes included.
        self.dice = Dice::new(self.dice.next_u64() ^ seen);
        match self.who {
            Some(_) if !works => {
                self.close();
                Act::Crash(self.dice.next_u64())
            }
            Some(who) => self.next_open(who),
            None => self.next_closed(),
        }
    }

    fn close(&mut self) {
        (self.who, self.cut) = (None, false);
    }

    fn next_open(&mut self, who: Who) -> Act {
        let dice = &mut self.dice;
        match dice.below(40) {
            0 => {
                self.close();
                Act::Kill
            }
            1 => {
                self.close();
                Act::Crash(self.dice.next_u64())
            }
            2 | 3 if !self.cut => {
                self.cut = true;
                Act::Cut(dice.below(30))
            }
            4 | 5 => Act::Sleep(Duration::from_millis(dice.below(2000))),
            6 | 7 if who == Who::Inspector => Act::Look,
            8 | 9 => Act::Outer(Event::Finish),
            10..20 if self.syncs => Act::Outer(Event::Commit),
            _ => Act::Outer(any_event(dice, self.blocks)),
        }
    }

    fn next_closed(&mut self) -> Act {
        let dice = &mut self.dice;
        match dice.below(12) {
            0 => {
                self.has_copy = true;
                Act::Copy
            }
            1..=4 => Act::Harm(any_harm(dice, self.has_copy)),
            5 if self.has_copy && dice.below(4) == 0 => {
                self.who = Some(Who::Inspector);
                Act::Restore
            }
            _ => {
                let who = if dice.below(3) == 0 { Who::Inspector } else { Who::Owner };
                self.who = Some(who);
                Act::Open(who)
            }
        }
    }
}

fn any_harm(dice: &mut Dice, has_copy: bool) -> Harm {
    let [object, at, with] = [(); 3].map(|()| dice.next_u64());
    let len = 1 + dice.below(600);
    match dice.below(12) {
        0..4 => Harm::Flip { object, at, bits: 1 << dice.below(8) },
        4 | 5 => Harm::Zeros { object, at, len },
        6 | 7 => Harm::Swap { object, at, with, len },
        8..11 if has_copy => Harm::Back { object: (dice.below(3) > 0).then_some(object) },
        8..11 => Harm::Flip { object, at, bits: 0xff },
        _ => Harm::Outer { object, at },
    }
}
