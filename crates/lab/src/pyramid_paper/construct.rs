//! The construction of a level as a state machine that yields metered requests (§5.3, §5.4).
//!
//! A scan of the sources, an oblivious sort of the slots by their new names, and the filter by
//! segment sort. Number, kind and size of all requests depend on the target alone. Names are
//! functions of key and level, so a client that takes the lease of a dead one begins anew and makes
//! the same level.

use super::bloom_filter::{SEGMENT_BYTES, Segment};
use super::config::PaperConfig;
use super::error::{PaperError, Result};
use super::ids::{ITEM_ID_BYTES, LevelId, Term};
use super::member::{At, Member};
use super::merge_sort::{Element, MergeSort, SortShape, SortStep};
use super::messages::{ListId, NamedSlot, Reply, Request, Sealed, Span};
use super::meter::Meter;
use super::scan::{self, Scan, Stop, key_name};
use super::segment_sort::{self, Gather, POSITION_BYTES};
use super::slot::{SLOT_HEADER, Slot};
use oblivio_crypto::SEAL_OVERHEAD;
use std::collections::{BTreeMap, VecDeque};

const KEY_BYTES: usize = 16;
const _: () = assert!(KEY_BYTES + POSITION_BYTES == ITEM_ID_BYTES);

/// Where a construction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Claim,
    Scan,
    Sort { positions: bool },
    Over,
}

/// What is to be written.
#[derive(Debug)]
enum Output {
    List(ListId, Vec<Element>),
    Slots(Vec<Element>),
    Filter(Vec<Segment>),
}

impl Output {
    fn list(list: ListId, part: &[Element]) -> Self {
        Self::List(list, part.to_vec())
    }
}

/// The reply that is due.
#[derive(Debug)]
enum Due {
    Nothing,
    Claimed,
    Written,
    Slots(LevelId, Span),
    Elements(ListId, [Span; 2]),
}

/// A construction.
#[derive(Debug)]
pub struct Construct {
    target: LevelId,
    term: Term,
    stage: Stage,
    due: Due,
    scan: Scan,
    slots: MergeSort,
    positions: MergeSort,
    gather: Gather,
    output: VecDeque<Output>,
    /// Elements of each list, and segments, so far: the next one's place.
    lengths: BTreeMap<ListId, u64>,
    segments: u64,
    meter: Meter,
}

/// The sorts of a target: of its slots and of its filter's list.
fn shapes(config: &PaperConfig, target: LevelId) -> [SortShape; 2] {
    let room = config.schedule.items(target.height);
    let list = segment_sort::list_len(config.filter_of(target), room);
    [config.schedule.entries(target), list].map(|total| SortShape {
        total,
        run: config.sorting.run as u64,
        chunk: config.sorting.chunk as u64,
        lambda_squared: config.sorting.lambda_squared,
    })
}

/// Bytes of a sealed slot of a level.
pub fn slot_bytes(config: &PaperConfig) -> u64 {
    (SLOT_HEADER + config.block_bytes + SEAL_OVERHEAD) as u64
}

const POSITION_ELEMENT: u64 = (KEY_BYTES + POSITION_BYTES + SEAL_OVERHEAD) as u64;
const SEALED_SEGMENT: u64 = (SEGMENT_BYTES + SEAL_OVERHEAD) as u64;

/// Bytes that a construction moves, names included.
pub fn weight(config: &PaperConfig, target: LevelId) -> u64 {
    let [slots, positions] = shapes(config, target);
    let named = slot_bytes(config) + KEY_BYTES as u64;
    scan::input(&config.schedule, target) * named
        + 2 * slots.moved() * named
        + slots.total * named
        + 2 * positions.moved() * POSITION_ELEMENT
        + config.filter_of(target).segments * SEALED_SEGMENT
}

impl Construct {
    /// The construction of a level that is made of others.
    ///
    /// # Errors
    /// If it is the top, which is made of the logs.
    pub fn new(config: &PaperConfig, target: LevelId) -> Result<Self> {
        if config.schedule.sources(target).is_empty() {
            return Err(PaperError::Invalid("the top is made of the logs"));
        }
        let [slots, positions] = shapes(config, target).map(MergeSort::new);
        let room = config.schedule.items(target.height);
        let filter = config.filter_of(target);
        Ok(Self {
            target,
            term: Term(0),
            stage: Stage::Claim,
            due: Due::Nothing,
            scan: Scan::new(config, target),
            slots,
            positions,
            gather: Gather::new(filter, room, config.sorting.lambda_squared),
            output: VecDeque::new(),
            lengths: BTreeMap::new(),
            segments: 0,
            meter: Meter::new(weight(config, target)),
        })
    }

    /// The level that it makes.
    pub fn target(&self) -> LevelId {
        self.target
    }

    /// Its progress.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Whether the level is complete.
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over && self.output.is_empty() && matches!(self.due, Due::Nothing)
    }

    /// The next request; none when the level is complete.
    ///
    /// # Errors
    /// If a buffer does not suffice, or the last reply is missing.
    pub fn request(&mut self, member: &mut Member) -> Result<Option<Request>> {
        if !matches!(self.due, Due::Nothing) {
            return Err(PaperError::Turn("the last reply is missing"));
        }
        loop {
            if let Some(output) = self.output.pop_front() {
                self.due = Due::Written;
                return self.write(member, output).map(Some);
            }
            let request = match self.stage {
                Stage::Claim => {
                    self.due = Due::Claimed;
                    Some(Request::Claim(self.target))
                }
                Stage::Scan => self.scan_on(),
                Stage::Sort { positions } => self.sort_on(member, positions)?,
                Stage::Over => return Ok(None),
            };
            if request.is_some() {
                return Ok(request);
            }
        }
    }

    fn scan_on(&mut self) -> Option<Request> {
        let Some((level, span)) = self.scan.next_read() else {
            self.stage = Stage::Sort { positions: false };
            return None;
        };
        self.due = Due::Slots(level, span);
        Some(Request::ReadLevel(level, span))
    }

    fn sort_on(&mut self, member: &Member, positions: bool) -> Result<Option<Request>> {
        let dry = PaperError::Buffer(self.target, "of a sort ran dry");
        let sort = if positions { &mut self.positions } else { &mut self.slots };
        match sort.step().map_err(|_| dry)? {
            SortStep::Read(pass, spans) => {
                let list = ListId { target: self.target, positions, pass };
                self.due = Due::Elements(list, spans);
                return Ok(Some(Request::ReadList(list, spans.to_vec())));
            }
            SortStep::Write(pass, elements) => {
                let list = ListId { target: self.target, positions, pass };
                self.output.push_back(Output::List(list, elements));
            }
            SortStep::Emit(elements) if positions => self.gather_on(member, &elements)?,
            SortStep::Emit(elements) => self.output.push_back(Output::Slots(elements)),
            SortStep::Done if positions => self.stage = Stage::Over,
            SortStep::Done => self.stage = Stage::Sort { positions: true },
        }
        Ok(None)
    }

    fn gather_on(&mut self, member: &Member, elements: &[Element]) -> Result<()> {
        let mut segments = Vec::new();
        for element in elements {
            let none = PaperError::Buffer(self.target, "of segments ran dry");
            segments.extend(self.gather.take(element).map_err(|_| none)?);
        }
        let chunk = member.config().sorting.chunk;
        let parts = segments.chunks(chunk).map(|part| Output::Filter(part.to_vec()));
        self.output.extend(parts);
        Ok(())
    }

    /// Takes the reply to the last request.
    ///
    /// # Errors
    /// If it does not fit or does not open, or the scan must stop.
    pub fn reply(&mut self, member: &mut Member, reply: Reply) -> Result<()> {
        match (std::mem::replace(&mut self.due, Due::Nothing), reply) {
            (Due::Claimed, Reply::Claimed(term)) => {
                (self.term, self.stage) = (term, Stage::Scan);
                Ok(())
            }
            (Due::Written, Reply::Done) => Ok(()),
            (Due::Slots(level, span), Reply::Slots(slots)) if slots.len() as u64 == span.count => {
                self.take_slots(member, level, slots)
            }
            (Due::Elements(list, spans), Reply::Elements(elements)) => {
                self.take_elements(member, list, spans, elements)
            }
            (_, Reply::Refused(why)) => Err(PaperError::Reply(why)),
            _ => Err(PaperError::Reply("to another request")),
        }
    }

    fn take_slots(
        &mut self,
        member: &mut Member,
        level: LevelId,
        slots: Vec<NamedSlot>,
    ) -> Result<()> {
        for (name, sealed) in slots {
            self.meter.add(KEY_BYTES as u64 + sealed.len() as u64);
            let slot = Slot::decode(&member.open_at(At::Slot(level, name), &sealed)?)?;
            let made = self.scan.take(member.prf(), slot).map_err(|stop| match stop {
                Stop::Full => PaperError::Full(self.target),
                Stop::Uneven => PaperError::Buffer(self.target, "of the scan ran over"),
            })?;
            let chunk = member.config().sorting.chunk;
            for (positions, elements) in [(false, made.slots), (true, made.positions)] {
                let list = ListId { target: self.target, positions, pass: 0 };
                let sort = if positions { &mut self.positions } else { &mut self.slots };
                for run in elements.into_iter().filter_map(|element| sort.feed(element)) {
                    self.output.extend(run.chunks(chunk).map(|part| Output::list(list, part)));
                }
            }
            self.feed_numbers(member);
        }
        Ok(())
    }

    /// After the last position, the list takes the numbers of the segments.
    fn feed_numbers(&mut self, member: &Member) {
        if !self.scan.is_over() {
            return;
        }
        let list = ListId { target: self.target, positions: true, pass: 0 };
        let chunk = member.config().sorting.chunk;
        let segments = member.config().filter_of(self.target).segments;
        for number in segment_sort::spread(segments).map(segment_sort::number) {
            if let Some(run) = self.positions.feed(number) {
                self.output.extend(run.chunks(chunk).map(|part| Output::list(list, part)));
            }
        }
    }

    fn take_elements(
        &mut self,
        member: &mut Member,
        list: ListId,
        spans: [Span; 2],
        elements: Vec<Vec<Sealed>>,
    ) -> Result<()> {
        let counts = elements.iter().map(|part| part.len() as u64);
        if !counts.eq(spans.iter().map(|span| span.count)) {
            return Err(PaperError::Reply("another number of elements"));
        }
        let mut opened = [Vec::new(), Vec::new()];
        for ((span, sealed), opened) in spans.into_iter().zip(elements).zip(&mut opened) {
            for (position, sealed) in (span.from..).zip(sealed) {
                self.meter.add(sealed.len() as u64);
                let bytes = member.open_at(At::Element(list, position), &sealed)?;
                let (key, payload) = bytes
                    .split_first_chunk()
                    .ok_or(PaperError::Reply("an element of another length"))?;
                let (key, payload) = (u128::from_le_bytes(*key), payload.to_vec());
                opened.push(Element { key, payload });
            }
        }
        let sort = if list.positions { &mut self.positions } else { &mut self.slots };
        sort.supply(opened);
        Ok(())
    }

    fn write(&mut self, member: &mut Member, output: Output) -> Result<Request> {
        let request = match output {
            Output::List(list, elements) => {
                let next = self.lengths.entry(list).or_default();
                let mut sealed = Vec::with_capacity(elements.len());
                for element in elements {
                    let bytes = [&element.key.to_le_bytes()[..], &element.payload].concat();
                    sealed.push(member.seal_at(At::Element(list, *next), &bytes)?);
                    *next += 1;
                }
                Request::WriteList(list, self.term, sealed)
            }
            Output::Slots(elements) => {
                let slots = seal_slots(member, self.target, elements)?;
                Request::WriteSlots(self.target, self.term, slots)
            }
            Output::Filter(segments) => {
                let sealed = seal_segments(member, self.target, self.segments, &segments)?;
                self.segments += sealed.len() as u64;
                Request::WriteFilter(self.target, self.term, sealed)
            }
        };
        self.meter.add(request.bytes() as u64);
        Ok(request)
    }
}

/// Seals slots of a level, each under its name.
pub(super) fn seal_slots(
    member: &mut Member,
    level: LevelId,
    elements: Vec<Element>,
) -> Result<Vec<NamedSlot>> {
    let seal = |element: Element| {
        let name = key_name(element.key);
        Ok((name, member.seal_at(At::Slot(level, name), &element.payload)?))
    };
    elements.into_iter().map(seal).collect()
}

/// Seals segments of a level's filter from number `first` on.
pub(super) fn seal_segments(
    member: &mut Member,
    level: LevelId,
    first: u64,
    segments: &[Segment],
) -> Result<Vec<Sealed>> {
    let numbered = (first..).zip(segments);
    numbered.map(|(at, it)| member.seal_at(At::Segment(level, at), &it.0)).collect()
}
