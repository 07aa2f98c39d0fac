//! What every computer may find: its newest state, or a later one.

/// Blocks written and read, from 1 on.
pub const BLOCKS: u64 = 10;

/// The content of the blocks: the number of the write, 0 before the first.
pub type Content = [u64; BLOCKS as usize];

/// What a computer finds of it: nothing where a block is lost to damage.
pub type Seen = [Option<u64>; BLOCKS as usize];

/// A past state: after one write, on another state.
#[derive(Clone, Debug)]
struct State {
    parent: usize,
    content: Content,
}

/// All states, of every history.
pub struct Oracle(Vec<State>);

impl Oracle {
    /// One state, without writes.
    pub fn new() -> Self {
        Self(vec![State { parent: 0, content: [0; BLOCKS as usize] }])
    }

    /// Adds a write of a block to a state; gives the new state. The written content is its number.
    pub fn write(&mut self, parent: usize, block: u64) -> usize {
        let state = self.0.len();
        let mut content = self.0[parent].content;
        content[block as usize - 1] = state as u64;
        self.0.push(State { parent, content });
        state
    }

    /// The state that `early` is or leads to, and that has this content; the first where lost
    /// blocks leave a choice.
    pub fn find(&self, early: usize, found: &Seen) -> Option<usize> {
        let fits = |state: &State| {
            let mut both = state.content.iter().zip(found);
            both.all(|(then, now)| now.is_none_or(|now| now == *then))
        };
        let fitting = (0..self.0.len()).filter(|&state| fits(&self.0[state]));
        let mut fitting = fitting.collect::<Vec<_>>().into_iter();
        // What is no later state is reported as what it is.
        let first = fitting.clone().next();
        fitting.find(|&state| self.leads(early, state)).or(first)
    }

    /// Whether `late` is `early`, or descends from it.
    pub fn leads(&self, early: usize, late: usize) -> bool {
        let mut at = late;
        while at > early {
            at = self.0[at].parent;
        }
        at == early
    }
}
