//! A door for the fuzz target `map_node` in `fuzz/` to the nodes of buffer maps.
//!
//! **Not part of the API.** What must hold of the outcome is said by the target.

use super::map_node::MapNode;
use crate::BlockId;
use oblivio_crypto::{SEAL_HEADER, TAG_BYTES};

/// What a node says of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The address in each line; none for a fake.
    pub addresses: Vec<Option<u64>>,
    /// Whether a leaf says that the block in the line is there; none for a fake or an inner node.
    pub present: Vec<Option<bool>>,
    /// The line in whose part of the addresses the block is.
    pub line: Option<usize>,
    /// Whether the leaf lists it, if anything does.
    pub spans: bool,
    /// The node as it is written again.
    pub again: Vec<u8>,
}

/// Parses an opened node with so many lines.
pub fn map_node(plain: &[u8], leaf: bool, lines: usize, block: u64) -> Option<Node> {
    let (node, block) = (MapNode::decode(plain, leaf, lines)?, BlockId(block));
    let mut sealed = vec![0xff; SEAL_HEADER + plain.len() + TAG_BYTES];
    node.encode(&mut sealed);
    let addresses = node.lines().iter().map(|line| line.address().map(|block| block.0));
    let present = node.entries().into_iter().map(|entry| entry.map(|entry| entry.present));
    Some(Node {
        addresses: addresses.collect(),
        present: present.collect(),
        line: node.find(block),
        spans: node.spans(block),
        again: sealed[SEAL_HEADER..sealed.len() - TAG_BYTES].to_vec(),
    })
}
