//! The place of a sealed object: the associated data that ties a ciphertext to its place.

use crate::VolumeId;

/// Bytes of an encoded place.
pub const PLACE_BYTES: usize = 40;

/// The kind of a sealed object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A bucket of the engine.
    Bucket = 1,
    /// A checkpoint of the client's state.
    State = 2,
    /// A padded change to the client's state.
    Delta = 3,
    /// A commit record.
    Commit = 4,
    /// A record of the journal.
    Journal = 5,
    /// A part of the volume's header.
    Header = 6,
    /// A record of an audit.
    Audit = 7,
    /// A block of the sequential engine.
    Slot = 8,
    /// A node of a buffer map of the sequential engine.
    MapNode = 9,
    /// A part of the access times of a sequential volume after a clean shutdown.
    Times = 10,
    /// An ask of a client, for the scribe of its volume.
    Ask = 11,
    /// The scribe's answer.
    Answer = 12,
    /// A record of a shared volume's history.
    History = 13,
    /// A part of a scribe's state.
    Checkpoint = 14,
    /// What a batch of a shared volume changed, for all clients.
    Notice = 15,
    /// An entry of a session of a volume in an online store.
    Entry = 16,
    /// What a session says of itself when it takes its number.
    Claim = 17,
    /// Where a session's newest commit is.
    Pointer = 18,
    /// A part of the client's state, of a tree in windows.
    Part = 19,
    /// An epoch of a volume in a folder that a sync client copies.
    Epoch = 20,
    /// Which epoch a computer stands on.
    Stand = 21,
    /// What a computer asks of the session that has the volume.
    Want = 22,
    /// An entry of the log of a tree's top.
    TopEntry = 23,
    /// What is burnt, and opened by nobody.
    Burnt = 24,
    /// A passphrase's slot in front of a lane's state.
    LaneSlot = 25,
    /// The stretched passphrases in a lane's state.
    LaneKeys = 26,
    /// An entry of the query log of the `paper` construction.
    PaperQuery = 32,
    /// An entry of its result log.
    PaperResult = 33,
    /// A slot of one of its levels.
    PaperSlot = 34,
    /// A segment of a level's filter.
    PaperSegment = 35,
    /// An element of a list of slots under construction.
    PaperSlotList = 36,
    /// An element of a list of filter positions under construction.
    PaperPositionList = 37,
}

/// The place and version of a sealed object. A ciphertext opens there and nowhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The volume.
    pub volume: VolumeId,
    /// The kind of object.
    pub kind: Kind,
    /// Its number within its kind.
    pub index: u64,
    /// Its version.
    pub version: u64,
}

impl Place {
    /// The associated data: `[volume 16][kind 1][zeros 7][index 8 LE][version 8 LE]`.
    pub(crate) fn encode(&self) -> [u8; PLACE_BYTES] {
        let mut out = [0; PLACE_BYTES];
        out[..16].copy_from_slice(&self.volume.0);
        out[16] = self.kind as u8;
        out[24..32].copy_from_slice(&self.index.to_le_bytes());
        out[32..].copy_from_slice(&self.version.to_le_bytes());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_pinned() {
        let place =
            Place { volume: VolumeId([0xee; 16]), kind: Kind::Commit, index: 0x0102, version: 3 };
        let mut expected = [0; 40];
        expected[..16].fill(0xee);
        expected[16] = 4;
        expected[24] = 2;
        expected[25] = 1;
        expected[32] = 3;
        assert_eq!(place.encode(), expected);
    }
}
