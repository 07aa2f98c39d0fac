//! The leaks that are planted, by their numbers in the design.

/// What a planted scribe does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// 1: a block in the stash shows a partition drawn anew, not that of its label.
    FreshPartition,
    /// 2: an ask reads its block's slot although a merge reads it too.
    MergeSetSlot,
    /// 3: a merge that begins again draws other fillers.
    OtherFillers,
    /// 4: an ask for a block that another ask is about to bring reads nothing.
    NoDummy,
    /// 5: an ask for such a block is answered a trip later.
    LateDuplicate,
    /// 6: what the scribe has in memory is answered at once.
    AsTheyCome,
    /// 7: a read sends no block along.
    ShortReads,
    /// 8: a turn is left out if its partition has nothing in the stash.
    SkippedTurn,
    /// 9: a merge reads blocks only.
    BlocksOnly,
    /// 10: a batch that is shown again reads other empty slots.
    NewSlotOnRetry,
    /// 11: empty slots are drawn from all, read ones too.
    Replacement,
    /// 12: a turn comes when the stash is full.
    ByStash,
    /// 13: the answer of an absent block is shorter.
    ShortAbsent,
    /// 14: a new scribe goes on from an old state.
    StaleState,
    /// 17: a batch that meets a merge is answered at once if its blocks are not in the set.
    AnswerAtOnce,
}

impl Flaw {
    /// All of them. 15 and 16 are of the paper's construction, and planted there.
    pub const ALL: [Flaw; 15] = [
        Flaw::FreshPartition,
        Flaw::MergeSetSlot,
        Flaw::OtherFillers,
        Flaw::NoDummy,
        Flaw::LateDuplicate,
        Flaw::AsTheyCome,
        Flaw::ShortReads,
        Flaw::SkippedTurn,
        Flaw::BlocksOnly,
        Flaw::NewSlotOnRetry,
        Flaw::Replacement,
        Flaw::ByStash,
        Flaw::ShortAbsent,
        Flaw::StaleState,
        Flaw::AnswerAtOnce,
    ];

    /// Its name in a report.
    pub fn name(self) -> &'static str {
        match self {
            Flaw::FreshPartition => "1: a fresh partition on a stash hit",
            Flaw::MergeSetSlot => "2: a slot of a merge's set read by an ask",
            Flaw::OtherFillers => "3: fillers drawn anew on a repeated merge",
            Flaw::NoDummy => "4: no empty slot for a collision",
            Flaw::LateDuplicate => "5: a duplicate in flight answered later",
            Flaw::AsTheyCome => "6: answers as they come",
            Flaw::ShortReads => "7: reads without a block",
            Flaw::SkippedTurn => "8: a turn left out when the stash is empty",
            Flaw::BlocksOnly => "9: a merge reads blocks only",
            Flaw::NewSlotOnRetry => "10: a new slot on a retry",
            Flaw::Replacement => "11: empty slots drawn with replacement",
            Flaw::ByStash => "12: a merge when the stash is full",
            Flaw::ShortAbsent => "13: a shorter answer for absent blocks",
            Flaw::StaleState => "14: a takeover from an old state",
            Flaw::AnswerAtOnce => "17: answered during a merge if not in its set",
        }
    }

    /// The check that must find it: the begin of the names of its findings.
    pub fn found_by(self) -> &'static str {
        match self {
            Flaw::FreshPartition => "S4 recent turns",
            Flaw::MergeSetSlot => "S5 outside merges",
            Flaw::OtherFillers | Flaw::NewSlotOnRetry | Flaw::StaleState => "S8",
            Flaw::NoDummy | Flaw::ShortReads | Flaw::BlocksOnly | Flaw::ShortAbsent => "S2",
            Flaw::LateDuplicate => "S3 and S6",
            Flaw::AsTheyCome | Flaw::AnswerAtOnce => "S7",
            Flaw::SkippedTurn | Flaw::ByStash => "S3 schedule",
            Flaw::Replacement => "S1",
        }
    }
}
