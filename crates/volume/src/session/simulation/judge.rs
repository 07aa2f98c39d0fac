//! What must hold after a schedule: nothing acknowledged is lost, no number is begun twice, what
//! the newest commit needs is there, and no name ever has two contents.

use crate::session::entry::{COMMIT, Mark, RELEASE};
use crate::session::history::History;
use crate::session::names::{HINT, SessionId};
use std::collections::BTreeMap;

/// An entry that was sent: its place, kind and payload.
type Known = (Mark, u64, Vec<u8>);

/// What a session was told and did.
#[derive(Clone, Default)]
struct Life {
    number: u64,
    history: History,
    /// In order, from number 1 on.
    entries: Vec<(Mark, u64, Vec<u8>)>,
    acknowledged: u64,
    /// The last checkpoint after which something was deleted.
    confirmed: Option<Mark>,
}

/// What is known of all computers.
#[derive(Default)]
pub struct ComputersJudge {
    lives: BTreeMap<u64, Life>,
    contents: BTreeMap<String, Vec<u8>>,
    /// Whether one name may have two contents: to see what else finds a fault.
    contents_pass: bool,
    pub wrong: Option<String>,
    pub commits: u64,
    pub overtaken: u64,
}

impl ComputersJudge {
    pub fn new(contents_pass: bool) -> Self {
        Self { contents_pass, ..Self::default() }
    }

    pub fn accuse(&mut self, why: String) {
        self.wrong.get_or_insert(why);
    }

    pub fn sessions(&self) -> u64 {
        self.lives.len() as u64
    }

    pub fn acknowledged(&self) -> u64 {
        self.lives.values().map(|life| life.acknowledged).sum()
    }

    /// An object is stored.
    pub fn stored(&mut self, name: &str, bytes: &[u8]) {
        match self.contents.get(name) {
            // Any hint may be the one that is stored last.
            Some(held) if held != bytes && !self.contents_pass && name != HINT => {
                self.accuse(format!("{name} has two contents"));
            }
            Some(_) => {}
            None => {
                self.contents.insert(name.to_owned(), bytes.to_vec());
            }
        }
    }

    /// A session has begun.
    pub fn begun(&mut self, id: SessionId, history: &History) {
        if self.lives.values().any(|life| life.number == id.number) {
            self.accuse(format!("number {} was begun twice", id.number));
        }
        let life = Life { number: id.number, history: history.clone(), ..Life::default() };
        self.lives.insert(id.random, life);
    }

    /// A session's last entry, and the number up to which it was told they are acknowledged.
    pub fn went_on(&mut self, last: Mark, kind: u64, payload: &[u8], acknowledged: u64) {
        let Some(life) = self.lives.get_mut(&last.session.random) else { return };
        if last.index == life.entries.len() as u64 + 1 {
            life.entries.push((last, kind, payload.to_vec()));
        }
        if acknowledged > life.acknowledged {
            let new = &life.entries[life.acknowledged as usize..acknowledged as usize];
            self.commits += new.iter().filter(|(_, kind, _)| *kind == COMMIT).count() as u64;
            life.acknowledged = acknowledged;
        }
    }

    /// A session deleted what this checkpoint replaced.
    pub fn confirmed(&mut self, mark: Mark) {
        if let Some(life) = self.lives.get_mut(&mark.session.random) {
            life.confirmed = Some(mark);
        }
    }

    /// All entries up to a mark, of the sessions before it too.
    fn chain(&self, mark: Option<Mark>) -> Result<Vec<&Known>, String> {
        let (mut at, mut chain) = (mark, Vec::new());
        while let Some(mark) = at {
            let life = self.lives.get(&mark.session.random);
            let life = life.ok_or_else(|| format!("{mark:?} is of no session"))?;
            let own = life.entries.get(..mark.index as usize).unwrap_or_default();
            if own.last().is_none_or(|(last, ..)| *last != mark) {
                return Err(format!("{mark:?} was never made"));
            }
            chain.extend(own.iter().rev());
            at = life.history.parent;
        }
        chain.reverse();
        Ok(chain)
    }

    /// After a schedule: judges each history.
    pub fn conclude(&mut self) {
        if let Err(why) = self.histories() {
            self.accuse(why);
        }
    }

    fn histories(&self) -> Result<(), String> {
        for life in self.lives.values() {
            let number = life.number;
            let chain = self.chain(life.history.parent)?;
            for other in self.lives.values().filter(|other| other.number < number) {
                for (mark, ..) in &other.entries[..other.acknowledged as usize] {
                    if !chain.iter().any(|(held, ..)| held == mark) {
                        let index = mark.index;
                        let of = other.number;
                        return Err(format!("session {number} lacks entry {index} of {of}"));
                    }
                }
            }
            let at = self.start(life, &chain)?;
            let records: Vec<_> = chain[at.map_or(0, |at| at + 1)..]
                .iter()
                .filter(|(_, kind, _)| *kind != RELEASE)
                .map(|record| (*record).clone())
                .collect();
            if life.history.records != records {
                return Err(format!("the history of session {number} is not what was stored"));
            }
        }
        Ok(())
    }

    /// Where the commit is that a session starts from. It is one of the session before it, or the
    /// one that this started from; not before one after which something was deleted.
    fn start(&self, life: &Life, chain: &[&Known]) -> Result<Option<usize>, String> {
        let number = life.number;
        let before = life.history.parent.and_then(|it| self.lives.get(&it.session.random));
        let inherited = before.and_then(|before| before.history.commit.clone());
        let Some((mark, payload)) = &life.history.commit else {
            return match inherited {
                Some(_) => Err(format!("session {number} starts from no commit")),
                None => Ok(None),
            };
        };
        let at = chain.iter().position(|it| (it.0, it.1, &it.2) == (*mark, COMMIT, payload));
        let at = at.ok_or_else(|| format!("session {number} starts from no checkpoint"))?;
        let own = before.is_some_and(|before| before.number == mark.session.number);
        if !own && inherited.map(|it| it.0) != Some(*mark) {
            return Err(format!("session {number} starts from another commit than the one before"));
        }
        let confirmed = chain.iter().rposition(|(mark, ..)| {
            self.lives.get(&mark.session.random).is_some_and(|life| life.confirmed == Some(*mark))
        });
        match confirmed > Some(at) {
            true => Err(format!("session {number} starts from a commit that was replaced")),
            false => Ok(Some(at)),
        }
    }
}
