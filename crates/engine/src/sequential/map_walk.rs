//! Walks down buffer maps: the nodes to read on the way to a set of leaves. All ways advance
//! together, one height at a time.

use super::ids::Generation;
use super::map_cache::NodeKey;
use super::map_node::{MapNode, SealedAt};
use super::map_shape::NodeAt;
use super::merge_buffer::LeafRead;
use super::vault::{DamagedExtent, Vault};
use crate::{BlockId, EngineError, Extent, Result};
use oblivio_crypto::Tag;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The end of a way.
#[derive(Clone, Copy, Debug)]
pub(super) enum Goal {
    /// The leaf of this bucket.
    Leaf(u64),
    /// The leaf that lists this block.
    Block(BlockId),
}

/// One way down.
struct Way {
    generation: Generation,
    goal: Goal,
    at: NodeAt,
    tag: Tag,
    end: Option<WayEnd>,
}

/// Where a way ends.
#[derive(Clone)]
enum WayEnd {
    Leaf(Arc<MapNode>),
    /// A node on it is damaged.
    Damaged,
    /// No leaf lists the block.
    NotListed,
}

/// What a way found.
pub(super) enum Found<'a> {
    /// The leaf of the bucket with this number.
    Leaf(u64, &'a MapNode),
    /// A node on the way is damaged, and everything below it.
    Damaged,
    /// No leaf lists the block. That comes after damage only, or from a foreign state.
    NotListed,
}

impl Found<'_> {
    /// What a leaf that was wanted by its number lists.
    ///
    /// # Errors
    /// [`NOT_LISTED`]: such a leaf is in its map.
    pub fn into_read(self) -> Result<LeafRead<SealedAt>> {
        match self {
            Self::Leaf(_, leaf) => Ok(leaf.as_read()),
            Self::Damaged => Ok(LeafRead::damaged()),
            Self::NotListed => Err(NOT_LISTED),
        }
    }
}

/// Several ways down.
pub(super) struct MapWalk {
    ways: Vec<Way>,
    keep_leaves: bool,
    wanted: BTreeMap<NodeKey, Tag>,
    damage: Vec<DamagedExtent>,
}

impl MapWalk {
    /// Ways to these goals. `keep_leaves` caches the leaves for the next reader.
    pub fn new(vault: &Vault, goals: &[(Generation, Goal)], keep_leaves: bool) -> Result<Self> {
        let way = |&(generation, goal): &(Generation, Goal)| {
            let maps = &vault.maps[generation.level.0 as usize];
            let (at, tag) = match goal {
                Goal::Leaf(leaf) => maps.way_to(generation, leaf)?,
                Goal::Block(_) => maps.root(generation)?,
            };
            Ok(Way { generation, goal, at, tag, end: None })
        };
        let ways = goals.iter().map(way).collect::<Result<_>>()?;
        Ok(Self { ways, keep_leaves, wanted: BTreeMap::new(), damage: Vec::new() })
    }

    /// Goes down as far as the caches lead. Returns the nodes to read next, in order; none when all
    /// ways are at their leaves.
    pub fn missing(&mut self, vault: &mut Vault) -> Result<Vec<Extent>> {
        self.wanted.clear();
        // Neighbours share a leaf; those of an aged disk share one of a few.
        let mut reached: Vec<Reached> = Vec::new();
        for way in &mut self.ways {
            if way.end.is_some() {
                continue;
            }
            let same = reached.iter().position(|it| it.generation == way.generation);
            if let Some(it) = same.map(|at| &reached[at]).filter(|it| it.is_goal(way.goal)) {
                (way.at, way.end) = (it.at, Some(WayEnd::Leaf(it.leaf.clone())));
                continue;
            }
            while way.end.is_none() {
                let key = (way.generation, way.at);
                let Some(node) = vault.cached(&key) else {
                    self.wanted.insert(key, way.tag);
                    break;
                };
                way.go_down(vault, node);
            }
            if let Some(WayEnd::Leaf(leaf)) = &way.end {
                let now = Reached { generation: way.generation, at: way.at, leaf: leaf.clone() };
                match same {
                    Some(at) => reached[at] = now,
                    None => reached.push(now),
                }
            }
        }
        Ok(self
            .wanted
            .keys()
            .map(|(generation, node)| vault.layout.node(*generation, *node))
            .collect())
    }

    /// Takes in the missing nodes. Ways through a damaged one end there.
    pub fn supply(&mut self, vault: &mut Vault, mut bytes: &mut [u8]) -> Result<()> {
        let mut read = BTreeMap::new();
        for (key, tag) in std::mem::take(&mut self.wanted) {
            let extent = vault.layout.node(key.0, key.1);
            let (node, rest) = std::mem::take(&mut bytes).split_at_mut(extent.bytes as usize);
            bytes = rest;
            let opened = match vault.open_node(key, tag, node, self.keep_leaves) {
                Err(EngineError::TamperedExtent { reason, .. }) => {
                    self.damage.push((extent, reason));
                    None
                }
                opened => Some(opened?),
            };
            read.insert(key, opened);
        }
        for way in self.ways.iter_mut().filter(|way| way.end.is_none()) {
            match read.get(&(way.generation, way.at)) {
                Some(Some(node)) => way.go_down(vault, node.clone()),
                Some(None) => way.end = Some(WayEnd::Damaged),
                None => {}
            }
        }
        Ok(())
    }

    /// What the ways found, in the order of the goals, once nothing is missing.
    pub fn found(&self) -> impl Iterator<Item = Found<'_>> {
        self.ways.iter().map(|way| match &way.end {
            Some(WayEnd::Leaf(leaf)) => Found::Leaf(way.at.index, leaf),
            Some(WayEnd::Damaged) | None => Found::Damaged,
            Some(WayEnd::NotListed) => Found::NotListed,
        })
    }

    /// The damaged nodes that were met.
    pub fn damage(&self) -> &[DamagedExtent] {
        &self.damage
    }
}

/// A leaf that a way reached.
struct Reached {
    generation: Generation,
    at: NodeAt,
    leaf: Arc<MapNode>,
}

impl Reached {
    /// Whether the way to this goal, in the same generation, ends here too.
    fn is_goal(&self, goal: Goal) -> bool {
        match goal {
            Goal::Leaf(leaf) => self.at.index == leaf,
            Goal::Block(block) => self.leaf.spans(block),
        }
    }
}

impl Way {
    /// Moves from a node to its child, or ends the way.
    fn go_down(&mut self, vault: &Vault, node: Arc<MapNode>) {
        if self.at.height == 0 {
            self.end = Some(WayEnd::Leaf(node));
            return;
        }
        let shape = vault.layout.shape(self.generation.level);
        let first = self.at.index * shape.fan_out();
        let child = match self.goal {
            Goal::Leaf(leaf) => {
                Some((shape.ancestor(leaf, self.at.height - 1).index - first) as usize)
            }
            Goal::Block(block) => node.find(block),
        };
        match child.and_then(|child| Some((child, node.lines().get(child)?))) {
            Some((child, line)) => {
                self.tag = line.tag;
                self.at = NodeAt { height: self.at.height - 1, index: first + child as u64 };
            }
            None => self.end = Some(WayEnd::NotListed),
        }
    }
}

/// The formula's promise does not hold: an engine fault, or a foreign state.
pub(super) const NOT_LISTED: EngineError = EngineError::State("a block is not where it should be");
