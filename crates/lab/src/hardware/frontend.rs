//! The front end of the model: the walk of the position map, PLB, counters and MACs (Freecursive
//! section 4.2.4), in the order of the hardware.

use super::backend::{Backend, Fault, Held};
use super::backlog::{Backlog, Move};
use super::secrets::{Keys, Labels, Pads, mac};
use super::shape::{Block, EMPTY, LINE, Shape, Tag, short};
use oblivio_engine::Address;
use oblivio_engine::tree::MapFormat;
use std::ops::RangeInclusive;

/// A request of the cache.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// A data block.
    pub block: u64,
    /// What to write; a read without.
    pub write: Option<Block>,
}

/// A block of the PLB.
#[derive(Clone, Copy)]
struct Row {
    id: Address,
    /// At which it will be appended.
    count: u64,
    content: Block,
}

/// Where the entry of a block is.
#[derive(Clone, Copy, PartialEq)]
enum Source {
    OnChip(usize),
    Plb(usize),
    /// The block that was just fetched, and that found no row of the PLB.
    Fetched,
}

/// What happened, for tests and tables.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Look-ups in the PLB that found their block.
    pub hits: u64,
    /// Those that did not.
    pub misses: u64,
    /// Paths for map blocks.
    pub map_paths: u64,
    /// Groups that rolled over.
    pub roll_overs: u64,
    /// Moves that did not wait for their turn.
    pub forced: u64,
}

/// A controller.
pub struct Controller<L> {
    shape: Shape,
    labels: L,
    mac_key: [u8; 16],
    /// Paths, and the memory.
    pub backend: Backend,
    on_chip: Vec<Block>,
    plb: Vec<Option<Row>>,
    backlog: Backlog,
    /// A map block without a row, and its count.
    fetched: Option<Row>,
    /// Moves that are due, in parts of 2^-individual bits.
    due: u64,
    /// The leaves of all paths, if they are kept.
    pub leaves: Option<Vec<u32>>,
    /// What happened.
    pub counts: Counts,
    dead: Option<Fault>,
}

impl<L: Labels> Controller<L> {
    /// With an empty memory.
    pub fn new(shape: Shape, keys: &Keys, labels: L) -> Self {
        let mut controller = Self {
            shape,
            labels,
            mac_key: keys.mac,
            backend: Backend::new(shape, Pads::new(&keys.pad)),
            on_chip: Vec::new(),
            plb: vec![None; shape.plb_rows],
            backlog: Backlog::new(&shape),
            fetched: None,
            due: 0,
            leaves: None,
            counts: Counts::default(),
            dead: None,
        };
        let root = |row| Address::new(shape.recursion, row as u64);
        controller.on_chip = (0..shape.map_rows).map(|row| controller.fresh(root(row))).collect();
        controller
    }

    /// Serves a request: the block as it was.
    ///
    /// # Errors
    /// Why the port ended. It stays so.
    pub fn serve(&mut self, request: Request) -> Result<Block, Fault> {
        if let Some(fault) = self.dead {
            return Err(fault);
        }
        self.walk(request).inspect_err(|&fault| self.dead = Some(fault))
    }

    /// Whether the port ended.
    pub fn is_dead(&self) -> bool {
        self.dead.is_some()
    }

    fn walk(&mut self, request: Request) -> Result<Block, Fault> {
        self.labels.begin();
        let top = self.shape.recursion;
        let held = |level: &usize| self.in_plb(self.shape.at_level(request.block, *level));
        let found = (1..top).find(held);
        self.counts.hits += u64::from(found.is_some());
        let first = found.unwrap_or(top);
        self.counts.misses += first as u64 - 1;
        for level in (1..first).rev() {
            self.fetch(request.block, level, first)?;
        }
        self.data(request)
    }

    fn in_plb(&self, id: Address) -> bool {
        self.plb[self.shape.plb_row(id)].is_some_and(|row| row.id == id)
    }

    /// Fetches a map block into the PLB, on a walk that begins with the one at level `first`.
    fn fetch(&mut self, data: u64, level: usize, first: usize) -> Result<(), Fault> {
        let id = self.shape.at_level(data, level);
        let counts = self.advance(data, level)?;
        let block = self.read(id, counts.old)?;
        self.backend.remove();
        self.backend.write_path();
        self.counts.map_paths += 1;
        let new = Row { id, count: counts.new, content: block };
        let row = self.shape.plb_row(id);
        match self.plb[row] {
            // A block that this walk uses stays.
            Some(old) if self.is_used(old.id, data, level + 1..=first) => self.fetched = Some(new),
            old => {
                self.plb[row] = Some(new);
                old.map_or(Ok(()), |old| self.append(old))?;
            }
        }
        Ok(())
    }

    /// Whether a map block is one of these levels on the walk to a data block.
    fn is_used(&self, id: Address, data: u64, levels: RangeInclusive<usize>) -> bool {
        levels.contains(&id.level()) && id == self.shape.at_level(data, id.level())
    }

    fn append(&mut self, row: Row) -> Result<(), Fault> {
        let leaf = self.shape.leaf(self.labels.label(row.id, row.count));
        let tag = self.tag(row.id, row.count, &row.content);
        self.backend.append(Held { address: short(row.id), leaf, tag, content: row.content })
    }

    /// Gives the block at `level` its next count.
    fn advance(&mut self, data: u64, level: usize) -> Result<Move, Fault> {
        let id = self.shape.at_level(data, level);
        let counts = match self.backlog.take(id) {
            Some(counts) => counts,
            None => self.count_up(data, id)?,
        };
        // The map block was needed for this.
        if let Some(row) = self.fetched.take() {
            self.append(row)?;
        }
        Ok(counts)
    }

    fn count_up(&mut self, data: u64, id: Address) -> Result<Move, Fault> {
        let index = (id.index() & ((1 << self.shape.entry_bits()) - 1)) as usize;
        let source = self.source(data, id.level());
        let old = *self.row(source);
        let map = self.shape.map;
        let advance = map.advance(self.row(source), index);
        if !advance.siblings.is_empty() {
            self.roll_over(id.minus(index), index, old);
        }
        Ok(Move { old: advance.counts.old, new: advance.counts.new })
    }

    fn source(&self, data: u64, level: usize) -> Source {
        let above = self.shape.at_level(data, level + 1);
        if level + 1 == self.shape.recursion {
            Source::OnChip(above.index() as usize)
        } else if self.fetched.is_some() {
            Source::Fetched
        } else {
            Source::Plb(self.shape.plb_row(above))
        }
    }

    fn row(&mut self, source: Source) -> &mut Block {
        let held = match source {
            Source::OnChip(row) => return &mut self.on_chip[row],
            Source::Plb(row) => self.plb[row].as_mut(),
            Source::Fetched => self.fetched.as_mut(),
        };
        &mut held.expect("the walk brought it").content
    }

    /// The other blocks of a group wait, but for those in the PLB, which are in no bucket.
    fn roll_over(&mut self, group: Address, index: usize, old: Block) {
        self.counts.roll_overs += 1;
        let mut elsewhere = 1u32 << index;
        let counter = u64::from_le_bytes(old[..8].try_into().expect("8 bytes"));
        let count = (counter + 1) << self.shape.individual_bits();
        for place in (0..32).filter(|&place| place != index) {
            let id = group.plus(place);
            let row = self.shape.plb_row(id);
            if let Some(held) = self.plb[row].as_mut().filter(|held| held.id == id) {
                held.count = count;
                elsewhere |= 1 << place;
            }
        }
        let fits = self.backlog.rolled_over(group, old, elsewhere);
        debug_assert!(fits, "`maintain` leaves room for a walk");
    }

    /// Reads the path of a block and checks it (section 6.2.1). A block that was never accessed is
    /// not there.
    fn read(&mut self, id: Address, count: u64) -> Result<Block, Fault> {
        let leaf = self.shape.leaf(self.labels.label(id, count));
        self.note(leaf);
        match self.backend.read_path(leaf, short(id))? {
            Some(held) if self.tag(id, count, &held.content) == held.tag => Ok(held.content),
            None if !self.shape.macs || count == self.first_count(id) => Ok(self.fresh(id)),
            _ => Err(Fault::Tampered),
        }
    }

    /// Puts the wanted block back at its new count and writes the path.
    fn write(&mut self, id: Address, count: u64, content: Block) -> Result<(), Fault> {
        let leaf = self.shape.leaf(self.labels.label(id, count));
        let tag = self.tag(id, count, &content);
        self.backend.put_back(Held { address: short(id), leaf, tag, content })?;
        self.backend.write_path();
        Ok(())
    }

    /// The answer comes before the path is written, and is right, whatever happens then.
    fn data(&mut self, request: Request) -> Result<Block, Fault> {
        let id = self.shape.at_level(request.block, 0);
        let counts = self.advance(request.block, 0)?;
        let before = self.read(id, counts.old)?;
        let written = self.write(id, counts.new, request.write.unwrap_or(before));
        self.dead = written.and_then(|()| self.maintain()).err();
        Ok(before)
    }

    /// Moves that are due, whether or not a block waits: twice the need of a roll-over after every
    /// 2^β requests. Then as many as it takes for the next walk to find room.
    fn maintain(&mut self) -> Result<(), Fault> {
        let bits = self.shape.individual_bits();
        if bits == 0 {
            return Ok(());
        }
        self.due += 64;
        while self.due >> bits > 0 {
            self.due -= 1 << bits;
            self.move_first()?;
        }
        while self.backlog.free() < self.shape.recursion {
            self.counts.forced += 1;
            self.move_first()?;
        }
        Ok(())
    }

    fn move_first(&mut self) -> Result<(), Fault> {
        let Some((id, counts)) = self.backlog.take_first() else {
            let leaf = self.shape.leaf(self.labels.idle());
            self.note(leaf);
            self.backend.read_path(leaf, EMPTY)?;
            self.backend.write_path();
            return Ok(());
        };
        let content = self.read(id, counts.old)?;
        self.write(id, counts.new, content)
    }

    fn note(&mut self, leaf: u32) {
        if let Some(leaves) = &mut self.leaves {
            leaves.push(leaf);
        }
    }

    fn tag(&self, id: Address, count: u64, content: &Block) -> Tag {
        if self.shape.macs { mac(&self.mac_key, count, id, content) } else { Tag::default() }
    }

    /// The first count of a block.
    fn first_count(&self, id: Address) -> u64 {
        let bits = self.shape.individual_bits();
        let group = id.minus(id.index() as usize % 32);
        if bits == 0 { 0 } else { self.labels.first_count(group) & ((1 << bits) - 1) }
    }

    /// A block that was never written: zeros, and in a map block its entries' first counts.
    fn fresh(&self, id: Address) -> Block {
        let mut content = [0; LINE];
        if let (MapFormat::Compressed { .. }, 1..) = (self.shape.map, id.level()) {
            let count = self.first_count(id.first_entry(1 << self.shape.entry_bits()));
            for entry in 0..32 {
                self.shape.map.set(&mut content, entry, count);
            }
        }
        content
    }
}
