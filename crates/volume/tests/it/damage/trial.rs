//! The trial of every home: random flips, and each single object lost, cut or replaced. What no
//! damaged place carries comes back byte for byte, all else is named, and nothing is wrong.

use super::harmed::{DEEDS, Deed, Harm, Harmed, Place};
use super::homes::{BLOCK, Cost, Files, HOMES, Home, Rest, Short, Size, is_named};
use oblivio_store::record::{CallKind, StoreEvent};
use oblivio_store::{AnyStore, RecordStore};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{at_least, every, scaled, seed};
use oblivio_volume::fs::FileSystem;
use oblivio_volume::{Error, LostBytes, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// The seed of `cargo test`.
const USUAL: u64 = 4949;

/// Lost bytes of files, by their paths.
pub(super) type Lost = BTreeMap<String, Vec<Range<u64>>>;

/// What became of a damaged volume.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// What reading could not read.
    pub lost: Lost,
    /// Whether metadata is lost, and both copies of a block of it may be.
    pub metadata: bool,
    pair: bool,
    /// Why it does not open, if so.
    pub refused: Option<String>,
}

impl Found {
    pub(super) fn bytes(&self) -> u64 {
        self.lost.values().flatten().map(|range| range.end - range.start).sum()
    }
}

/// Opens a damaged volume, checks it and reads all of it, in this order or the other one.
pub(super) fn look(rest: &Rest, harmed: &Harmed, dice: &mut Dice) -> Found {
    let mut found = Found::default();
    match looked(rest, harmed, &mut found, dice) {
        Ok(()) => {}
        Err(Error::Lost(lost)) if lost.is_metadata() => found.metadata = true,
        Err(error) => {
            assert!(is_named(&error), "an error that names nothing: {error:?}");
            found.refused = Some(error.to_string());
        }
    }
    if found.metadata || found.refused.is_some() {
        let all = |(path, bytes): (&String, &Vec<u8>)| {
            (path.clone(), std::iter::once(0..bytes.len() as u64).collect())
        };
        found.lost = rest.files.iter().map(all).collect();
    }
    found
}

fn looked(rest: &Rest, harmed: &Harmed, found: &mut Found, dice: &mut Dice) -> Result<()> {
    let mut volume = rest.open(harmed.store()?)?;
    let mut places = 0;
    let inspected = volume.inspect(&mut |_, _| {}, &mut |_| places += 1)?;
    assert_eq!(inspected.damaged, places, "each damaged place is named");
    found.pair = inspected.lost.iter().any(|ids| ids.end - ids.start > 1);
    let fs = FileSystem::open(Box::new(volume))?;
    let check = |fs: &FileSystem| fs.check_with(true, &mut |_, _| {});
    let (report, lost) = match dice.below(2) {
        0 => (check(&fs)?, read(&fs, &rest.files)?),
        _ => {
            let lost = read(&fs, &rest.files)?;
            (check(&fs)?, lost)
        }
    };
    if report.lost.iter().any(|lost| lost.is_metadata()) {
        found.metadata = true;
        return Ok(());
    }
    assert_eq!(named(&report.lost), lost, "a check names what cannot be read");
    assert_eq!(report.problems, Vec::<String>::new());
    found.lost = lost;
    Ok(())
}

pub(super) fn named(lost: &[LostBytes]) -> Lost {
    lost.iter().map(|lost| (lost.what.clone(), lost.ranges.clone())).collect()
}

/// Reads all files. What is there is right.
pub(super) fn read(fs: &FileSystem, files: &Files) -> Result<Lost> {
    let mut lost = Lost::new();
    for (path, bytes) in files {
        let attr = fs.resolve(path)?;
        let handle = fs.open_file(attr.ino)?;
        let around = fs.read_around(handle, 0, bytes.len() + 1)?;
        fs.close(handle)?;
        assert_eq!(around.bytes.len(), bytes.len(), "{path} has another length");
        let mut right = bytes.clone();
        zero(&mut right, &around.lost);
        assert!(around.bytes == right, "{path} has wrong bytes");
        if !around.lost.is_empty() {
            lost.insert(path.clone(), around.lost);
        }
    }
    Ok(lost)
}

/// Zeros in place of what is lost.
pub(super) fn zero(bytes: &mut [u8], lost: &[Range<u64>]) {
    lost.iter().for_each(|it| bytes[it.start as usize..it.end as usize].fill(0));
}

/// What the reads of each file touch in the whole volume, once it is open.
fn touched(rest: &Rest) -> BTreeMap<String, Vec<Place>> {
    let mut by_file = BTreeMap::new();
    for (path, bytes) in &rest.files {
        let store = Arc::new(RecordStore::new(rest.objects.snapshot()));
        let opened: AnyStore = Arc::clone(&store).into();
        let fs = FileSystem::open(Box::new(rest.look(opened).expect("whole"))).expect("whole");
        store.take();
        let handle = fs.open_file(fs.resolve(path).expect("there").ino).expect("there");
        assert!(fs.read(handle, 0, bytes.len()).expect("whole") == *bytes);
        let reads = store.take().into_iter().filter(|event| event.op == CallKind::Read);
        let place = |event: StoreEvent| Place {
            object: event.object.to_string(),
            bytes: event.offset..event.offset + event.len,
        };
        by_file.insert(path.clone(), reads.map(place).collect());
    }
    by_file
}

/// What damage may cost in a home.
pub(super) struct Bound<'a> {
    rest: &'a Rest,
    touched: BTreeMap<String, Vec<Place>>,
}

impl<'a> Bound<'a> {
    pub(super) fn of(rest: &'a Rest) -> Self {
        let reads = rest.home.cost == Cost::WhatIsRead;
        let touched = if reads { touched(rest) } else { BTreeMap::new() };
        Self { rest, touched }
    }

    /// The most bytes of files that these places carry.
    fn carried(&self, places: &[Place]) -> u64 {
        match self.rest.home.cost {
            Cost::WhatIsRead => {
                let carried = self.rest.files.keys().filter(|path| self.carries(places, path));
                carried.map(|path| self.rest.files[path].len() as u64).sum()
            }
            Cost::Nothing => 0,
            Cost::Buckets => {
                let bucket = 4 * BLOCK as u64;
                let of = |place: &&Place| match place.bytes.end - place.bytes.start {
                    1 => bucket,
                    // What stands in it, and the buckets that it cuts.
                    bytes => bytes + 2 * bucket,
                };
                places
                    .iter()
                    .filter(|it| self.rest.home.has_blocks(&it.object))
                    .map(|it| of(&it))
                    .sum()
            }
        }
    }

    /// Whether reading a file touches one of these places.
    fn carries(&self, places: &[Place], path: &str) -> bool {
        self.touched[path].iter().any(|read| {
            places.iter().any(|place| {
                let (one, other) = (&place.bytes, &read.bytes);
                place.object == read.object && one.start < other.end && other.start < one.end
            })
        })
    }

    /// Why what was found is more than the damage may cost, if it is.
    pub(super) fn broken(&self, places: &[Place], found: &Found) -> Option<String> {
        if let Some(why) = &found.refused {
            return (!both_copies(self.rest.home, places)).then(|| format!("it is refused: {why}"));
        }
        if found.metadata {
            return (!found.pair).then(|| "metadata is lost, and no two blocks are".into());
        }
        if self.rest.home.cost == Cost::WhatIsRead {
            let needless = found.lost.keys().find(|path| !self.carries(places, path));
            return needless.map(|path| format!("{path} is lost, and nothing that it needs"));
        }
        let (lost, carried) = (found.bytes(), self.carried(places));
        let more = lost > carried;
        more.then(|| format!("{lost} bytes are lost, and {carried} were carried"))
    }
}

/// Whether two objects are damaged that stand for each other. There are two of what is small, and
/// of the memory of a tree in windows, one in eight may be lost.
fn both_copies(home: &Home, places: &[Place]) -> bool {
    let of = |name: &str| match &name[..2] {
        "lo" => "st".to_owned(),
        "r-" => "p-".to_owned(),
        kind => kind.to_owned(),
    };
    let names = places.iter().map(|place| &*place.object);
    let damaged: BTreeSet<&str> = names.filter(|name| !home.has_blocks(name)).collect();
    let kinds: BTreeSet<String> = damaged.iter().map(|name| of(name)).collect();
    kinds.len() < damaged.len()
}

/// The sums of one home and kind of harm.
#[derive(Debug, Default)]
struct Sum {
    tried: u64,
    /// Those that cost more than they should, which is known.
    short: u64,
    refused: u64,
    metadata: u64,
    /// Bytes that no damaged place carried, and those of them that came back, where the volume
    /// opened with its metadata.
    untouched: u64,
    back: u64,
    lost: u64,
}

fn kind_of(harm: &Harm) -> String {
    match harm {
        Harm::Flips(count) => format!("{count:3} flips"),
        Harm::FlipsOfBlocks(count) => format!("{count:3} flips of blocks"),
        Harm::Noise(places) => format!("noise in {} places", places.len()),
        Harm::To(_, deed) => word(*deed).to_owned(),
    }
}

fn word(deed: Deed) -> &'static str {
    match deed {
        Deed::Lost => "lost",
        Deed::Cut => "cut",
        Deed::Replaced => "replaced",
    }
}

/// The entries that say that this costs more than it should, by their numbers.
fn short(home: &Home, harm: &Harm, places: &[Place]) -> Vec<usize> {
    let harm = match harm {
        Harm::Flips(1) | Harm::FlipsOfBlocks(1) => "flip",
        Harm::Flips(_) | Harm::FlipsOfBlocks(_) | Harm::Noise(_) => "flips",
        Harm::To(_, deed) => word(*deed),
    };
    let of = |it: &Short| {
        let hit = places.iter().any(|place| place.object.starts_with(it.objects));
        it.harms.contains(&harm) && hit
    };
    (0..home.short.len()).filter(|&it| of(&home.short[it])).collect()
}

/// The harms that one home meets.
fn harms(rest: &Rest, home: usize) -> Vec<Harm> {
    let mut harms = Vec::new();
    for count in [1, 10, 100] {
        harms.extend((0..scaled(1)).map(|_| Harm::Flips(count)));
        harms.extend((0..scaled(1)).map(|_| Harm::FlipsOfBlocks(count)));
    }
    let objects = rest.names().into_iter().flat_map(|name| DEEDS.map(|deed| (name.clone(), deed)));
    let mut kinds = BTreeSet::new();
    for (at, (name, deed)) in objects.enumerate() {
        // Of objects in great numbers, some.
        let many = name.contains('-') && name.len() > 8;
        let is_first = kinds.insert((name[..2].to_owned(), deed)) && deed == Deed::Lost;
        if is_first || (at + home).is_multiple_of(every(if many { 25 } else { 5 })) {
            harms.push(Harm::To(name, deed));
        }
    }
    harms
}

fn trial(size: Size) -> BTreeMap<(usize, String), Sum> {
    let mut sums: BTreeMap<(usize, String), Sum> = BTreeMap::new();
    let (mut better, mut wrong) = (Vec::new(), Vec::new());
    for (number, home) in HOMES.iter().enumerate() {
        let rest = home.rest(size, seed(USUAL));
        let (bound, mut dice) = (Bound::of(&rest), Dice::new(seed(USUAL)));
        let total: u64 = rest.files.values().map(|bytes| bytes.len() as u64).sum();
        let mut fell_short = vec![(0, 0); home.short.len()];
        for harm in harms(&rest, number) {
            let Some(harmed) = rest.harmed(&harm, &mut dice) else { continue };
            let what = format!("{}, {harm:?}", home.name);
            let found = catch_unwind(AssertUnwindSafe(|| look(&rest, &harmed, &mut dice)));
            let found = found.unwrap_or_else(|panic| {
                println!("{what}, {:?}", harmed.places);
                resume_unwind(panic)
            });
            let broken = bound.broken(&harmed.places, &found);
            let entries = short(home, &harm, &harmed.places);
            let says = |it: &usize| {
                let said = |part: &&str| broken.as_ref().is_some_and(|why| why.contains(part));
                home.short[*it].says.iter().any(said)
            };
            let known = entries.iter().copied().find(says);
            entries.iter().for_each(|it| fell_short[*it].0 += 1);
            match (known, &broken) {
                (Some(it), _) => fell_short[it].1 += 1,
                (None, Some(why)) => wrong.push(format!("{what}: {why}")),
                (None, None) => {}
            }
            let sum = sums.entry((number, kind_of(&harm))).or_default();
            sum.tried += 1;
            sum.short += u64::from(known.is_some());
            sum.refused += u64::from(found.refused.is_some());
            sum.metadata += u64::from(found.metadata);
            if found.refused.is_none() && !found.metadata {
                let untouched = total.saturating_sub(bound.carried(&harmed.places));
                sum.untouched += untouched;
                sum.back += untouched.min(total - found.bytes());
                sum.lost += found.bytes();
            }
        }
        for (short, (tried, fell)) in home.short.iter().zip(fell_short) {
            if tried > 0 && fell == 0 {
                better.push(format!("{}: {short:?}", home.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(
        seed(USUAL) != USUAL || better.is_empty(),
        "these cost no more than they may: {better:#?}"
    );
    sums
}

fn print(sums: &BTreeMap<(usize, String), Sum>) {
    println!(
        "| home | harm | volumes | too much, as known | refused | metadata lost | bytes of files lost | of those that nothing carried, back |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|--:|");
    for ((home, harm), sum) in sums {
        let Sum { tried, short, refused, metadata, untouched, back, lost } = sum;
        let share = 100.0 * *back as f64 / (*untouched).max(1) as f64;
        let home = HOMES[*home].name;
        println!(
            "| {home} | {harm} | {tried} | {short} | {refused} | {metadata} | {lost} | {share:.2} % |"
        );
    }
}

#[test]
fn damage_costs_what_it_hit_in_every_home() {
    let small = Size { files: 18, longest: 30_000 };
    let large = Size { files: 120, longest: 200_000 };
    let sums = trial(if at_least(10.0) { large } else { small });
    print(&sums);
    let homes: BTreeSet<usize> = sums.keys().map(|(home, _)| *home).collect();
    assert_eq!(homes.len(), HOMES.len());
    for (number, home) in HOMES.iter().enumerate() {
        let of = sums.iter().filter(|((home, _), _)| *home == number).map(|(_, sum)| sum);
        let sum = |(back, all), it: &Sum| (back + it.back, all + it.untouched);
        let (back, all) = of.fold((0, 0), sum);
        assert!(back * 100 >= all * 99, "{}: {back} of {all}", home.name);
    }
    assert!(sums.values().any(|sum| sum.lost > 0), "damage costs something");
}
