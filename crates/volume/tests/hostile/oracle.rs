//! What every computer may find: its newest state, or one that leads on from it.

/// Blocks that are written and read, from 1 on.
pub const BLOCKS: u64 = 10;

/// What the blocks hold: the number of the write, 0 before the first.
pub type Content = [u64; BLOCKS as usize];

/// A state that there was: after one write, on another state.
#[derive(Clone, Debug)]
struct State {
    parent: usize,
    content: Content,
}

/// All states that there ever were, in whatever history.
pub struct Oracle(Vec<State>);

impl Oracle {
    /// One state: nothing was written.
    pub fn new() -> Self {
        Self(vec![State { parent: 0, content: [0; BLOCKS as usize] }])
    }

    /// A write of a block to a state; gives the state that it leads to. What is written is its number.
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

    /// Whether `late` is `early`, or leads on from it.
    pub fn leads(&self, early: usize, late: usize) -> bool {
        let mut at = late;
        while at > early {
            at = self.0[at].parent;
        }
        at == early
    }
}
