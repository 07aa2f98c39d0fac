//! The tables that a damaged file still has: trees, walked around lost pages.

use super::kinds::{Gap, Key, Kind};
use super::pages::{
    Geometry, Image, Page, PageNumber, TableRoot, Widths, children, pairs, separators,
};
use std::collections::{BTreeMap, HashSet};

/// No tree is deeper.
const DEPTH: usize = 64;
/// The highest order of a page.
const MOST_ORDER: u64 = 20;

/// What is known of a table.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) pairs: BTreeMap<Key, Vec<u8>>,
    pub(super) gaps: Vec<Gap>,
}

impl Tree {
    /// A table of which nothing is known.
    pub(super) fn lost() -> Self {
        Self { pairs: BTreeMap::new(), gaps: vec![Gap::default()] }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.gaps.is_empty()
    }
}

/// All tables of the file system.
pub(super) type Tables = BTreeMap<Kind, Tree>;

/// How the keys of a tree are read.
pub(super) type ReadKey<'a> = &'a dyn Fn(&[u8]) -> Option<Key>;

/// A walk over the pages.
pub(super) struct Walk<'a> {
    pub(super) image: &'a Image,
    pub(super) geometry: Geometry,
    /// The places of all pages that belong to what was walked.
    pub(super) reached: HashSet<u64>,
}

impl Walk<'_> {
    /// The tables in a tree of tables, and whether those are all.
    pub(super) fn tables(
        &mut self,
        root: Option<PageNumber>,
    ) -> (BTreeMap<String, TableRoot>, bool) {
        let widths = Widths { key: None, value: None };
        let tree = self.tree(root, widths, &|key| Some(Key::Text(key.to_vec())));
        let (mut tables, mut whole) = (BTreeMap::new(), tree.is_whole());
        for (key, record) in tree.pairs {
            let Key::Text(name) = key else { continue };
            match TableRoot::load(&record) {
                Some(table) => {
                    tables.insert(String::from_utf8_lossy(&name).into_owned(), table);
                }
                None => whole = false,
            }
        }
        (tables, whole)
    }

    pub(super) fn tree(
        &mut self,
        root: Option<PageNumber>,
        widths: Widths,
        key: ReadKey<'_>,
    ) -> Tree {
        let mut tree = Tree::default();
        if let Some(root) = root {
            self.visit(root, Gap::default(), (widths, key), &mut tree, 0);
        }
        tree
    }

    fn visit(
        &mut self,
        page: PageNumber,
        around: Gap,
        form: (Widths, ReadKey<'_>),
        tree: &mut Tree,
        depth: usize,
    ) {
        let seen = self.enter(page, depth).then(|| self.image.page(self.geometry, page)).flatten();
        let read = match seen.as_deref().and_then(Page::of) {
            Some(Page::Leaf(bytes)) => read_leaf(bytes, form).map(|leaf| tree.pairs.extend(leaf)),
            Some(Page::Branch(bytes)) => read_branch(bytes, form, &around).map(|below| {
                for (child, gap) in below {
                    self.visit(child, gap, form, tree, depth + 1);
                }
            }),
            None => None,
        };
        if read.is_none() {
            tree.gaps.push(around);
        }
    }

    /// Notes a page; false if it cannot be one, or was met before.
    pub(super) fn enter(&mut self, page: PageNumber, depth: usize) -> bool {
        let places = self.geometry.places(page);
        let sound = depth < DEPTH && places.end - places.start <= 1 << MOST_ORDER;
        sound && places.into_iter().all(|place| self.reached.insert(place))
    }
}

/// The pairs of a leaf.
fn read_leaf(bytes: &[u8], (widths, key): (Widths, ReadKey<'_>)) -> Option<Vec<(Key, Vec<u8>)>> {
    let pairs = pairs(bytes, widths)?;
    pairs.into_iter().map(|(stored, value)| Some((key(stored)?, value.to_vec()))).collect()
}

/// The children of a branch, and the keys that each may have.
fn read_branch(
    bytes: &[u8],
    (widths, key): (Widths, ReadKey<'_>),
    around: &Gap,
) -> Option<Vec<(PageNumber, Gap)>> {
    let between = separators(bytes, widths.key)?;
    let between = between.into_iter().map(key).collect::<Option<Vec<Key>>>()?;
    let mut below = Vec::new();
    for (n, child) in children(bytes)?.into_iter().enumerate() {
        let after = n.checked_sub(1).map_or(around.after.clone(), |n| between.get(n).cloned());
        let to = between.get(n).cloned().or_else(|| around.to.clone());
        below.push((child, Gap { after, to }));
    }
    Some(below)
}
