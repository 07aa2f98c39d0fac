//! Numbers of inodes and handles where one mount has several file systems.

use super::op::{FileOp, LockRequest, NamePlace};

/// A file system of a mount: the volume's own, or that of a lane. Its inodes and handles carry its
/// mark in all that goes to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountPart(u8);

/// The bits of the mark. Below them no inode and no handle ends its days; above is the sign, which
/// some programs would show.
const SHIFT: u32 = 61;
const MARK: u64 = 0b11;

impl MountPart {
    /// The volume's own.
    pub const OWN: Self = Self(0);

    /// That of a lane, counted from 0.
    pub fn lane(number: usize) -> Option<Self> {
        let number = u8::try_from(number + 1).ok();
        number.filter(|number| u64::from(*number) <= MARK).map(Self)
    }

    /// Which lane it is, counted from 0; `None` of the volume's own.
    pub fn as_lane(self) -> Option<usize> {
        usize::from(self.0).checked_sub(1)
    }

    /// A number of this part as the kernel gets it.
    pub fn mark(self, number: u64) -> u64 {
        number | u64::from(self.0) << SHIFT
    }

    /// The part of a number from the kernel, and the number there.
    pub fn of(marked: u64) -> (Self, u64) {
        let part = (marked >> SHIFT & MARK) as u8;
        (Self(part), marked & !(MARK << SHIFT))
    }
}

impl<Data> FileOp<Data> {
    /// Each inode and handle of the request.
    fn numbers(&mut self) -> Vec<&mut u64> {
        match self {
            Self::Lookup(at)
            | Self::Unlink(at)
            | Self::RmDir(at)
            | Self::MkNod { at, .. }
            | Self::MkDir { at, .. }
            | Self::SymLink { at, .. }
            | Self::Create { at, .. } => vec![&mut at.parent],
            Self::Link { ino, at } => vec![ino, &mut at.parent],
            Self::Rename { from, to, .. } => vec![&mut from.parent, &mut to.parent],
            Self::GetAttr { ino, fh } | Self::SetAttr { ino, fh, .. } | Self::Sync { ino, fh } => {
                [ino].into_iter().chain(fh).collect()
            }
            Self::ReadLink { ino }
            | Self::Open { ino, .. }
            | Self::OpenDir { ino }
            | Self::StatFs { ino }
            | Self::Forget { ino }
            | Self::GetXattr { ino, .. }
            | Self::SetXattr { ino, .. }
            | Self::ListXattr { ino, .. }
            | Self::RemoveXattr { ino, .. } => vec![ino],
            Self::Ask { ino, fh }
            | Self::Read { ino, fh, .. }
            | Self::Write { ino, fh, .. }
            | Self::Flush { ino, fh, .. }
            | Self::Release { ino, fh, .. }
            | Self::ReadDir { ino, fh, .. }
            | Self::Allocate { ino, fh, .. }
            | Self::Seek { ino, fh, .. } => vec![ino, fh],
            Self::ReleaseDir { fh } => vec![fh],
            Self::GetLock(LockRequest { ino, fh, .. })
            | Self::SetLock { lock: LockRequest { ino, fh, .. }, .. } => vec![ino, fh],
        }
    }

    /// Takes the marks off its numbers. `None` if it is about two parts: nothing moves between
    /// them.
    pub fn unmark(&mut self) -> Option<MountPart> {
        let mut found = None;
        for number in self.numbers() {
            let (part, bare) = MountPart::of(*number);
            *number = bare;
            if found.replace(part).is_some_and(|before| before != part) {
                return None;
            }
        }
        found
    }

    /// The names that it is about.
    pub fn names(&self) -> impl Iterator<Item = &NamePlace> {
        let [first, second] = match self {
            Self::Lookup(at) | Self::Unlink(at) | Self::RmDir(at) => [Some(at), None],
            Self::MkNod { at, .. }
            | Self::MkDir { at, .. }
            | Self::SymLink { at, .. }
            | Self::Create { at, .. }
            | Self::Link { at, .. } => [Some(at), None],
            Self::Rename { from, to, .. } => [Some(from), Some(to)],
            _ => [None, None],
        };
        first.into_iter().chain(second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(parent: u64) -> NamePlace {
        NamePlace { parent, name: b"name".to_vec() }
    }

    #[test]
    fn a_number_comes_back_with_its_part() {
        let parts =
            [Some(MountPart::OWN), MountPart::lane(0), MountPart::lane(1), MountPart::lane(2)];
        for part in parts.into_iter().flatten() {
            for number in [0, 1, 7, (1 << SHIFT) - 1] {
                assert_eq!(MountPart::of(part.mark(number)), (part, number));
                assert!(part.mark(number) >> 63 == 0, "the sign is free");
            }
        }
        assert_eq!(MountPart::lane(3), None, "there is no mark for it");
        assert_eq!(MountPart::lane(1).and_then(MountPart::as_lane), Some(1));
        assert_eq!(MountPart::OWN.as_lane(), None);
    }

    #[test]
    fn nothing_is_about_two_parts() {
        let lane = MountPart::lane(0).expect("the first");
        let rename = |from, to| FileOp::<Vec<u8>>::Rename {
            from: at(from),
            to: at(to),
            mode: oblivio_volume::fs::RenameMode::Replace,
            whiteout: None,
        };
        assert_eq!(rename(1, lane.mark(1)).unmark(), None);
        assert_eq!(rename(lane.mark(1), 1).unmark(), None);
        let mut within = rename(lane.mark(5), lane.mark(1));
        assert_eq!(within.unmark(), Some(lane));
        assert!(
            matches!(within, FileOp::Rename { from, to, .. } if (from.parent, to.parent) == (5, 1))
        );
        let mut own = FileOp::<Vec<u8>>::Read { ino: 9, fh: 3, offset: 1 << 62, len: 1 };
        assert_eq!(own.unmark(), Some(MountPart::OWN));
        assert!(matches!(own, FileOp::Read { ino: 9, fh: 3, offset, .. } if offset == 1 << 62));
    }
}
