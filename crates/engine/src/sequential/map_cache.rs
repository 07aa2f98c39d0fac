//! Recently read nodes of buffer maps (§6.3, map caches): sequential reads find their blocks in one
//! leaf. Keys are never reused, so no entry grows stale.

use super::ids::Generation;
use super::map_node::MapNode;
use super::map_shape::NodeAt;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A node of one generation.
pub(super) type NodeKey = (Generation, NodeAt);

/// The most recently read nodes, up to a limit.
pub(super) struct MapCache {
    most: usize,
    clock: u64,
    nodes: BTreeMap<NodeKey, (u64, Arc<MapNode>)>,
    by_age: BTreeMap<u64, NodeKey>,
}

impl MapCache {
    pub fn new(most: usize) -> Self {
        Self { most, clock: 0, nodes: BTreeMap::new(), by_age: BTreeMap::new() }
    }

    pub fn get(&mut self, key: &NodeKey) -> Option<Arc<MapNode>> {
        let (age, node) = self.nodes.get_mut(key)?;
        self.by_age.remove(age);
        self.clock += 1;
        *age = self.clock;
        self.by_age.insert(self.clock, *key);
        Some(node.clone())
    }

    pub fn insert(&mut self, key: NodeKey, node: Arc<MapNode>) {
        self.clock += 1;
        self.by_age.insert(self.clock, key);
        if let Some((age, _)) = self.nodes.insert(key, (self.clock, node)) {
            self.by_age.remove(&age);
        }
        while self.nodes.len() > self.most {
            let Some((_, oldest)) = self.by_age.pop_first() else { return };
            self.nodes.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;

    #[test]
    fn what_was_used_lately_stays() {
        let key = |index| (Generation { level: Level(0), number: 0 }, NodeAt { height: 0, index });
        let node = Arc::new(MapNode::inner(Vec::new()));
        let mut cache = MapCache::new(3);
        for index in 0..50 {
            cache.insert(key(index), node.clone());
            assert!(cache.get(&key(0)).is_some(), "in use, yet gone at {index}");
            assert!(cache.nodes.len() <= 3 && cache.by_age.len() == cache.nodes.len());
        }
        assert!(cache.get(&key(49)).is_some() && cache.get(&key(40)).is_none());
        let mut none = MapCache::new(0);
        none.insert(key(0), node);
        assert!(none.get(&key(0)).is_none());
    }
}
