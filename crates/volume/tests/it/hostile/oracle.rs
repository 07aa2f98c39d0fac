//! What every computer may find: its newest state, or a later one.

/// Blocks written and read, from 1 on.
pub const BLOCKS: u64 = 10;

/// The content of the blocks: the number of the write, 0 before the first.
pub type Content = [u64; BLOCKS as usize];

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

    /// The state with this content.
    pub fn find(&self, content: &Content) -> Option<usize> {
        self.0.iter().position(|state| state.content == *content)
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
