//! Leaks that are planted: what a program would do that tells of its lanes. The volume is the real
//! one; around it stand a store, a home and an owner's hand that do what a leaking one would.

mod secret;
mod store;

pub use secret::Secret;
pub use store::Leaky;

use super::acts::Who;
use super::referee::Check;
use super::world::Said;
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_volume::sequential::SequentialVolume;
use oblivio_volume::{BlockSpace, DamagedPlace, Known, SessionHint};
use std::sync::Arc;

/// A leak, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leak {
    Honest,
    // ---- places: a lane is written only when it is open
    DiskOnlyIfOpen,
    LogOnlyIfOpen,
    StateOnlyIfOpen,
    TimesOnlyIfOpen,
    RecoverySkipsBurnt,
    NodeOnlyIfClosed,
    PlacesByOwnFlush,
    StateAtOwnTurn,
    SlotAtOnce,
    FlagInHeader,
    LongerLog,
    QuantaAsLongAsWaits,
    // ---- order and number of calls
    LaneFirst,
    LaneInItsOwnCall,
    OtherOrder,
    SyncOfItsOwn,
    Trims,
    QuantumLater,
    // ---- bytes of lanes
    BurntFromKey,
    BurntFromCounter,
    BurntTwice,
    BurntStays,
    StateStays,
    ZerosBehind,
    SaltInTheOpen,
    CounterInTheOpen,
    BitInTheOpen,
    FewerOnes,
    // ---- what is read, and how long it takes
    BurntNotRead,
    TriedOnlyIfNeeded,
    Slower,
    // ---- errors
    ErrorCloses,
    DigestOnlyIfOpen,
    // ---- the home
    NoteFirst,
    NoteNamesLane,
    NoteMore,
    NameOfItsOwn,
    // ---- the volume itself
    OneRandomness,
    OneSealer,
    HiddenSync,
    PadsForMuch,
    EndWaits,
    RootSaysWhen,
    // ---- words
    SmallerByLane,
    SaysWhen,
}

impl Leak {
    /// All of them, by what shows them.
    pub const PLANTED: [(Check, &'static [Self]); 8] = {
        use Leak::*;
        [
            (
                Check::Calls,
                &[
                    DiskOnlyIfOpen,
                    LogOnlyIfOpen,
                    StateOnlyIfOpen,
                    TimesOnlyIfOpen,
                    RecoverySkipsBurnt,
                    NodeOnlyIfClosed,
                    PlacesByOwnFlush,
                    StateAtOwnTurn,
                    SlotAtOnce,
                    FlagInHeader,
                    LongerLog,
                    QuantaAsLongAsWaits,
                    LaneFirst,
                    LaneInItsOwnCall,
                    OtherOrder,
                    SyncOfItsOwn,
                    Trims,
                    QuantumLater,
                    HiddenSync,
                    PadsForMuch,
                    EndWaits,
                ],
            ),
            (
                Check::Lane,
                &[
                    OneRandomness,
                    BurntFromKey,
                    BurntFromCounter,
                    BurntTwice,
                    BurntStays,
                    StateStays,
                    ZerosBehind,
                    SaltInTheOpen,
                    CounterInTheOpen,
                    BitInTheOpen,
                    FewerOnes,
                ],
            ),
            (Check::Outer, &[OneSealer, RootSaysWhen]),
            (Check::Work, &[BurntNotRead, NoteFirst]),
            (Check::Tries, &[TriedOnlyIfNeeded]),
            (Check::Time, &[Slower]),
            (Check::Home, &[NoteNamesLane, NoteMore, NameOfItsOwn]),
            (Check::Words, &[ErrorCloses, DigestOnlyIfOpen, SmallerByLane, SaysWhen]),
        ]
    };

    /// What a home gets in the place of a note.
    pub fn notes(self, known: &Known, secret: &Arc<Secret>) -> Vec<Known> {
        let (mut note, now) = (*known, secret.get());
        match self {
            Self::NoteNamesLane if now.open => {
                note.session =
                    Some(SessionHint { number: 1, random: 0, pointer: 0, entry: 0, last: 0 });
            }
            Self::NoteMore if now.open => return vec![note; 2],
            Self::NameOfItsOwn if now.open => note.computer.0[0] ^= 1,
            // It was made before.
            Self::NoteFirst if now.opening => return Vec::new(),
            _ => {}
        }
        vec![note]
    }

    /// What the owner's writes in lanes do to the volume.
    pub fn after_deeds(self, volume: &mut SequentialVolume, secret: &Arc<Secret>) {
        let (open, waits, accepted) = {
            let now = secret.get();
            (now.open, now.waits(), now.accepted())
        };
        match self {
            Self::HiddenSync if waits > 0 => drop(volume.commit()),
            Self::PadsForMuch if waits > 3 => {
                let op =
                    BlockOp { id: BlockId(0), action: Action::Patch { offset: 0, bytes: vec![] } };
                drop(volume.access(vec![op]));
            }
            Self::RootSaysWhen if open => volume.set_root(&accepted.to_le_bytes()),
            _ => {}
        }
    }

    /// What is said after an opening or a look.
    pub fn change_words(self, said: &mut Said, secret: &Arc<Secret>, who: Who) {
        let now = secret.get();
        match self {
            Self::SmallerByLane if now.missed > 0 && now.own > 0 => said.words.push_str("less"),
            Self::SaysWhen if now.was_open && who == Who::Inspector => {
                let why = "it was open last time".to_owned();
                said.damaged.push(DamagedPlace { object: "lane-1".into(), bytes: 0..0, why });
            }
            _ => {}
        }
    }
}
