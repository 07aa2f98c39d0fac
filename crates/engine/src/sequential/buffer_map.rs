//! The buffer maps of a level (§4.1): the root of each generation in its ring, and the nodes of the
//! generation being written, which are built bottom up (§5.1).

use super::ids::{Generation, GenerationBucket};
use super::map_node::Line;
use super::map_shape::{MapShape, NodeAt};
use crate::wire::{Reader, Writer};
use crate::{EngineError, Level, Result};
use oblivio_crypto::{TAG_BYTES, Tag};

/// The root of a generation's map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Root {
    number: u64,
    tag: Tag,
}

/// The maps of one level.
#[derive(Clone, Debug)]
pub(super) struct BufferMaps {
    level: Level,
    shape: MapShape,
    /// By place in the ring.
    roots: Vec<Option<Root>>,
    /// The generation being written.
    begun: Option<u64>,
    /// Its incomplete nodes, by height less one.
    open: Vec<Vec<Line>>,
}

/// A word that is no generation's number.
const NO_NUMBER: u64 = u64::MAX;

impl BufferMaps {
    pub fn new(level: Level, shape: MapShape, ring: u64) -> Self {
        let open = vec![Vec::new(); shape.top()];
        Self { level, shape, roots: vec![None; ring as usize], begun: None, open }
    }

    fn place(&self, number: u64) -> usize {
        (number % self.roots.len() as u64) as usize
    }

    /// Begins a generation in the place of an old one.
    pub fn begin(&mut self, number: u64) {
        let place = self.place(number);
        self.roots[place] = None;
        self.begun = Some(number);
        self.open.iter_mut().for_each(Vec::clear);
    }

    /// Adds a written node: a leaf, or an inner node from [`Self::close`].
    pub fn add(&mut self, node: NodeAt, line: Line) {
        match self.open.get_mut(node.height) {
            Some(parent) => parent.push(line),
            None => {
                let Some(number) = self.begun else { return };
                let place = self.place(number);
                self.roots[place] = Some(Root { number, tag: line.tag });
            }
        }
    }

    /// A node that is listed here, or a root, has another tag.
    pub fn rename(&mut self, before: Tag, tag: Tag) {
        let roots = self.roots.iter_mut().flatten().map(|root| &mut root.tag);
        let listed = self.open.iter_mut().flatten().map(|line| &mut line.tag);
        roots.chain(listed).filter(|it| **it == before).for_each(|it| *it = tag);
    }

    /// The lines of an inner node that is now complete.
    pub fn close(&mut self, node: NodeAt) -> Vec<Line> {
        std::mem::take(&mut self.open[node.height - 1])
    }

    /// The start of the way down to a leaf of a generation: a node whose tag is known here.
    ///
    /// # Errors
    /// `State` when the leaf was not written.
    pub fn way_to(&self, generation: Generation, leaf: u64) -> Result<(NodeAt, Tag)> {
        if let Ok(root) = self.root(generation) {
            return Ok(root);
        }
        let unknown = EngineError::State("a bucket that was never written is wanted");
        if self.begun != Some(generation.number) {
            return Err(unknown);
        }
        // Still being written: the lowest incomplete ancestor lists a complete child.
        for (above, lines) in self.open.iter().enumerate() {
            let parent = self.shape.ancestor(leaf, above + 1);
            let child = self.shape.ancestor(leaf, above);
            let Some(at) = child.index.checked_sub(parent.index * self.shape.fan_out()) else {
                continue;
            };
            // The open node at this height is the last one begun.
            if self.is_open(parent)
                && let Some(line) = lines.get(at as usize)
            {
                return Ok((child, line.tag));
            }
        }
        Err(unknown)
    }

    /// Whether an inner node of the begun generation collects children now.
    fn is_open(&self, node: NodeAt) -> bool {
        self.written() <= self.shape.last_leaf(node)
    }

    /// Leaves of the begun generation so far.
    fn written(&self) -> u64 {
        let mut leaves = 0;
        for (above, lines) in self.open.iter().enumerate() {
            leaves += lines.len() as u64 * self.shape.fan_out().pow(above as u32);
        }
        leaves
    }

    /// The root of a completely written generation.
    ///
    /// # Errors
    /// `State` when it is incomplete.
    pub fn root(&self, generation: Generation) -> Result<(NodeAt, Tag)> {
        debug_assert_eq!(generation.level, self.level);
        let root = self.roots[self.place(generation.number)];
        let root = root.filter(|root| root.number == generation.number);
        let root = root.ok_or(EngineError::State("a generation that is not there is wanted"))?;
        Ok((self.shape.root(), root.tag))
    }

    /// Appends the serialized maps. Their size is public.
    pub fn save(&self, out: &mut Writer<'_>) {
        for root in &self.roots {
            out.u64(root.map_or(NO_NUMBER, |root| root.number));
            out.bytes(&root.map_or(Tag::default(), |root| root.tag).0);
        }
        out.u64(self.begun.unwrap_or(NO_NUMBER));
        for lines in &self.open {
            out.u64(lines.len() as u64);
            for line in lines {
                out.u64(line.word());
                out.bytes(&line.tag.0);
            }
            let missing = self.shape.fan_out() as usize - lines.len();
            out.zeros(missing * (8 + TAG_BYTES));
        }
    }

    /// Loads the output of [`Self::save`], before the flush that writes `next`.
    ///
    /// # Errors
    /// `State` when the open nodes do not lead up to `next`.
    pub fn load(&mut self, input: &mut Reader<'_>, next: Option<GenerationBucket>) -> Result<()> {
        let number = |word| (word != NO_NUMBER).then_some(word);
        for root in &mut self.roots {
            let (word, tag) = (input.u64()?, input.tag()?);
            *root = number(word).map(|number| Root { number, tag });
        }
        self.begun = number(input.u64()?);
        for lines in &mut self.open {
            let count = input.u64()?;
            // A node with all its children is closed.
            if count >= self.shape.fan_out() {
                return Err(EngineError::State("a map node with too many children"));
            }
            lines.clear();
            for at in 0..self.shape.fan_out() {
                let line = Line::from_word(input.u64()?, input.tag()?);
                if at < count {
                    lines.push(line);
                }
            }
        }
        let next = next.filter(|next| next.index > 0);
        let begun = next.is_none_or(|next| self.begun == Some(next.generation.number));
        if !begun || self.written() != next.map_or(0, |next| next.index) {
            return Err(EngineError::State("a map that has not come as far as its level"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(node: NodeAt) -> Tag {
        let mut tag = [node.height as u8; 16];
        tag[8..].copy_from_slice(&node.index.to_le_bytes());
        Tag(tag)
    }

    /// While a generation grows, each leaf so far has a way, which starts at no open node.
    #[test]
    fn there_is_a_way_to_every_leaf_that_was_written() {
        for leaves in [1, 2, 3, 4, 9, 10, 26, 27, 28, 40] {
            let shape = MapShape::new(leaves, 3);
            let mut maps = BufferMaps::new(Level(1), shape.clone(), 4);
            for number in 3..5 {
                let generation = Generation { level: Level(1), number };
                maps.begin(number);
                for leaf in 0..leaves {
                    let node = NodeAt { height: 0, index: leaf };
                    assert!(maps.way_to(generation, leaf).is_err());
                    maps.add(node, Line::child(None, tag(node)));
                    for node in shape.closed_by(leaf) {
                        let lines = maps.close(node);
                        assert!(!lines.is_empty() && lines.len() <= 3);
                        maps.add(node, Line::child(None, tag(node)));
                    }
                    let mut bytes = Vec::new();
                    maps.save(&mut Writer(&mut bytes));
                    let mut loaded = BufferMaps::new(Level(1), shape.clone(), 4);
                    let next =
                        |index| (index < leaves).then_some(GenerationBucket { generation, index });
                    let another = loaded.load(&mut Reader(&bytes), next(leaf + 2));
                    assert_eq!(another.is_err(), leaf + 1 < leaves, "it has not come as far");
                    loaded.load(&mut Reader(&bytes), next(leaf + 1)).expect("its own bytes");
                    for leaf in 0..=leaf {
                        let (from, found) = loaded.way_to(generation, leaf).expect("written");
                        assert_eq!(from, shape.ancestor(leaf, from.height));
                        assert_eq!(found, tag(from));
                    }
                }
                maps.root(generation).expect("whole");
            }
            assert!(maps.root(Generation { level: Level(1), number: 7 }).is_err());
        }
    }
}
