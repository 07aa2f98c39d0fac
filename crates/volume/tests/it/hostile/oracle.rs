//! What every computer may find: its newest state, or a later one.

use oblivio_volume::Error;

/// What a schedule gives; an error is something forbidden.
pub type Outcome<T> = Result<T, String>;

/// Blocks written and read, from 1 on.
pub const BLOCKS: u64 = 10;

/// The content of the blocks: the number of the write, 0 before the first.
pub type Content = [u64; BLOCKS as usize];

/// What a computer finds of it: nothing where a block is lost to damage.
pub type Seen = [Option<u64>; BLOCKS as usize];

/// A past state: after one write, on another state; on one of several where lost blocks left a
/// choice.
#[derive(Clone, Debug)]
struct State {
    parents: Vec<usize>,
    content: Content,
}

/// All states, of every history.
pub struct Oracle(Vec<State>);

impl Oracle {
    /// One state, without writes.
    pub fn new() -> Self {
        Self(vec![State { parents: Vec::new(), content: [0; BLOCKS as usize] }])
    }

    /// Adds a write of a block to a state; gives the new state. The written content is its number.
    pub fn write(&mut self, parent: usize, block: u64) -> usize {
        self.write_on(&[parent], block)
    }

    /// The same on one of these states, it is not known which.
    pub fn write_on(&mut self, parents: &[usize], block: u64) -> usize {
        let state = self.0.len();
        let mut content = self.0[parents[0]].content;
        content[block as usize - 1] = state as u64;
        self.0.push(State { parents: parents.to_vec(), content });
        state
    }

    /// The states that `early` is or leads to, and that have this content: several where blocks are
    /// lost. If there is none, one that it does not lead to.
    pub fn find(&self, early: usize, found: &Seen) -> Vec<usize> {
        let fits = |state: &State| {
            let mut both = state.content.iter().zip(found);
            both.all(|(then, now)| now.is_none_or(|now| now == *then))
        };
        let fitting: Vec<usize> = (0..self.0.len()).filter(|&state| fits(&self.0[state])).collect();
        let later: Vec<usize> =
            fitting.iter().copied().filter(|&state| self.leads(early, state)).collect();
        // What is no later state is reported as what it is.
        if later.is_empty() { fitting.into_iter().take(1).collect() } else { later }
    }

    /// Whether `late` is `early`, or descends from it.
    pub fn leads(&self, early: usize, late: usize) -> bool {
        let mut from = vec![late];
        while let Some(at) = from.pop() {
            if at == early {
                return true;
            }
            from.extend(self.0[at].parents.iter().filter(|&&parent| parent >= early));
        }
        false
    }
}

/// Only these errors may end a session.
pub fn expect_refusal(error: &Error, died: bool) -> Outcome<()> {
    match error {
        Error::RolledBack(_) | Error::OtherVolume(_) | Error::Tampered(_) => Ok(()),
        Error::Unsupported(_) | Error::Busy => Ok(()),
        Error::Closed(_) | Error::Store(_) if died => Ok(()),
        // An object of the wrong length.
        Error::Store(_) | Error::WrongPassphrase => Ok(()),
        other => Err(format!("an error of another kind: {other:?}")),
    }
}
