//! Names of the parts of a table or checkpoint in a store somewhere else.

use oblivio_store::share::Object;

/// A run of parts, all of which have this length, the last one excepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The server's start, and how many runs it had begun before.
    pub start: u64,
    pub begun: u64,
    pub part_bytes: u64,
}

impl Run {
    /// The name of a part.
    pub fn part(&self, object: Object, part: u64) -> String {
        let (kind, number) = match object {
            Object::Table(table) => ('t', table.0),
            Object::Checkpoint(at) => ('c', at.0),
        };
        format!("{kind}-{number:016x}-{:x}-{:x}-{part:x}", self.start, self.begun)
    }

    /// The parts of an object of this length.
    pub fn parts(&self, object: Object, len: u64) -> impl Iterator<Item = (String, u64)> + '_ {
        let bytes = self.part_bytes;
        let of = move |part| (self.part(object, part), bytes.min(len - part * bytes));
        (0..len.div_ceil(bytes)).map(of)
    }
}

/// Whether a name is that of a part: nothing else is ever deleted.
pub(super) fn is_part(name: &str) -> bool {
    let fields: Vec<&str> = name.split('-').collect();
    let hex = |text: &&str| u64::from_str_radix(text, 16).is_ok();
    matches!(&fields[..], ["t" | "c", rest @ ..] if rest.len() == 4 && rest.iter().all(hex))
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_store::share::{Number, ServerTable};

    #[test]
    fn only_parts_are_ever_deleted() {
        let run = Run { start: u64::MAX, begun: 7, part_bytes: 8 };
        for object in [Object::Table(ServerTable(u64::MAX)), Object::Checkpoint(Number(0))] {
            let names: Vec<_> = run.parts(object, 17).collect();
            assert_eq!(names.iter().map(|it| it.1).collect::<Vec<_>>(), [8, 8, 1]);
            assert!(
                names
                    .iter()
                    .all(|(name, _)| is_part(name) && oblivio_store::check_name(name).is_ok())
            );
        }
        for other in ["owner", "header", "t-1", "s-1-2-3-4", "t-1-2-3-x", "b-0-1-2"] {
            assert!(!is_part(other), "{other}");
        }
    }
}
