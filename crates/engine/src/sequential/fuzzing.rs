//! Gives the fuzz target `map_node` in `fuzz/` access to the nodes of buffer maps.
//!
//! **Not part of the API.** The target states the properties of the outcome.

use super::map_node::MapNode;
use crate::BlockId;
use oblivio_crypto::{SEAL_HEADER, TAG_BYTES};

/// A parsed node, and one block in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedNode {
    /// The address in each line; none for a fake.
    pub addresses: Vec<Option<u64>>,
    /// Whether a leaf marks the block in the line as present; none for a fake or an inner node.
    pub present: Vec<Option<bool>>,
    /// The line whose address range includes the block.
    pub line: Option<usize>,
    /// Whether the leaf lists it, if any leaf does.
    pub spans: bool,
    /// The node, encoded again.
    pub again: Vec<u8>,
}

/// Parses an opened node of `lines` lines.
pub fn map_node(plain: &[u8], leaf: bool, lines: usize, block: u64) -> Option<ParsedNode> {
    let (node, block) = (MapNode::decode(plain, leaf, lines)?, BlockId(block));
    let mut sealed = vec![0xff; SEAL_HEADER + plain.len() + TAG_BYTES];
    node.encode(&mut sealed);
    let addresses = node.lines().iter().map(|line| line.address().map(|block| block.0));
    let present = node.entries().into_iter().map(|entry| entry.map(|entry| entry.present));
    Some(ParsedNode {
        addresses: addresses.collect(),
        present: present.collect(),
        line: node.find(block),
        spans: node.spans(block),
        again: sealed[SEAL_HEADER..sealed.len() - TAG_BYTES].to_vec(),
    })
}
