//! A classifier that learns from thousands of pairs which bytes of lanes are of one that is used:
//! boosted stumps over features of what is written, and of how it differs from what stood there.

use super::acts::Inspector;
use super::leaks::Leak;
use super::watch::{Part, Seen, What};
use super::world::World;
use super::{Dice, digest, with_lane};
use oblivio_testkit::campaign::{scaled, seed};
use std::collections::BTreeMap;

/// Acts of a game to learn from.
const ACTS: u64 = 24;
const OBJECTS: [&str; 4] = ["lane-1", "lane-1-log", "lane-1-state", "lane-1-times"];
/// Features of an object: how often each half of a byte comes, low and high and in the differences;
/// how often a byte is the one that many before it, and bits that are set.
const OF_OBJECT: usize = 3 * 16 + 4;
const FEATURES: usize = OBJECTS.len() * OF_OBJECT;
const LAGS: [usize; 3] = [1, 8, 16];
const ROUNDS: usize = 60;
/// Places at which a feature is cut in two.
const CUTS: usize = 7;

/// What is counted of one object.
#[derive(Clone)]
struct Counted {
    of: [f64; OF_OBJECT],
    bytes: f64,
    compared: f64,
}

/// Features of one world, from all that was written to its lanes.
struct Features {
    counted: Vec<Counted>,
    stood: BTreeMap<(usize, u64), Vec<u8>>,
}

impl Features {
    fn new() -> Self {
        let none = Counted { of: [0.0; OF_OBJECT], bytes: 0.0, compared: 0.0 };
        Self { counted: vec![none; OBJECTS.len()], stood: BTreeMap::new() }
    }

    fn see(&mut self, seen: &[Seen]) {
        for seen in seen {
            if let What::Call(_, parts) = &seen.what {
                parts.iter().for_each(|part| self.see_part(part));
            }
        }
    }

    fn see_part(&mut self, part: &Part) {
        let Some(object) = OBJECTS.iter().position(|it| *it == part.object) else { return };
        let counted = &mut self.counted[object];
        let data = &part.data;
        for byte in data {
            counted.of[usize::from(byte & 15)] += 1.0;
            counted.of[16 + usize::from(byte >> 4)] += 1.0;
            counted.of[51] += f64::from(byte.count_ones());
        }
        for (at, lag) in LAGS.into_iter().enumerate() {
            let same = data.iter().zip(data.iter().skip(lag)).filter(|(one, two)| one == two);
            counted.of[48 + at] += same.count() as f64;
        }
        counted.bytes += data.len() as f64;
        let before = self.stood.insert((object, part.offset), data.clone());
        for (one, two) in data.iter().zip(before.iter().flatten()) {
            counted.of[32 + usize::from((one ^ two) & 15)] += 1.0;
            counted.compared += 1.0;
        }
    }

    /// Each as deviations from what is random.
    fn all(&self) -> Vec<f64> {
        let deviations = |counted: &Counted| {
            let Counted { of, bytes, compared } = counted.clone();
            (0..OF_OBJECT).map(move |at| {
                let (of_all, part) = match at {
                    0..32 => (bytes, 1.0 / 16.0),
                    32..48 => (compared, 1.0 / 16.0),
                    48..51 => (bytes, 1.0 / 256.0),
                    _ => (8.0 * bytes, 0.5),
                };
                (of[at] - of_all * part) / (1.0 + of_all * part * (1.0 - part)).sqrt()
            })
        };
        self.counted.iter().flat_map(deviations).collect()
    }
}

/// A pair: the features of one world less those of the other, in random order, and whether the
/// first is the one whose lane is used.
struct Pair {
    features: Vec<f64>,
    first_is_used: bool,
}

fn pair(seed: u64, leak: Leak) -> Pair {
    let mut dice = Dice::new(seed);
    let options = with_lane(&mut dice);
    let (hides, own) = (Dice::new(dice.next_u64()), dice.next_u64());
    let mut worlds = [None, Some(hides)].map(|hides| World::new(options, own, hides, leak));
    let mut inspector = Inspector::new(Dice::new(dice.next_u64()), options.engine.blocks);
    let mut features = [Features::new(), Features::new()];
    worlds.iter().for_each(|world| drop(world.take_seen()));
    let (mut seen, mut works) = (0, true);
    for _ in 0..ACTS {
        let act = inspector.next(seen, works);
        let said = worlds.each_mut().map(|world| world.play(&act));
        let all = worlds.each_ref().map(World::take_seen);
        features.iter_mut().zip(&all).for_each(|(features, seen)| features.see(seen));
        (seen, works) = (digest(&all[0]), said[0].works);
    }
    let first_is_used = dice.below(2) == 0;
    let [unused, used] = features.map(|features| features.all());
    let sign = if first_is_used { 1.0 } else { -1.0 };
    let features = used.iter().zip(&unused).map(|(one, two)| sign * (one - two)).collect();
    Pair { features, first_is_used }
}

/// A feature, where it is cut, and how much it says if it is beyond.
struct Stump {
    feature: usize,
    cut: f64,
    weight: f64,
}

impl Stump {
    fn vote(&self, pair: &Pair) -> f64 {
        if pair.features[self.feature] > self.cut { self.weight } else { -self.weight }
    }
}

/// Boosts stumps (AdaBoost).
fn learn(pairs: &[&Pair]) -> Vec<Stump> {
    let mut weights = vec![1.0 / pairs.len() as f64; pairs.len()];
    let mut stumps = Vec::new();
    let cuts: Vec<(usize, f64)> = (0..FEATURES)
        .flat_map(|feature| {
            let mut values: Vec<f64> = pairs.iter().map(|pair| pair.features[feature]).collect();
            values.sort_by(f64::total_cmp);
            (1..=CUTS).map(move |at| (feature, values[at * (values.len() - 1) / (CUTS + 1)]))
        })
        .collect();
    for _ in 0..ROUNDS {
        let error_of = |&(feature, cut): &(usize, f64)| {
            let wrong = pairs
                .iter()
                .zip(&weights)
                .filter(|(pair, _)| (pair.features[feature] > cut) != pair.first_is_used);
            wrong.map(|it| *it.1).sum::<f64>()
        };
        let errors = cuts.iter().map(|it| (*it, error_of(it)));
        let best = errors.max_by(|one, two| (one.1 - 0.5).abs().total_cmp(&(two.1 - 0.5).abs()));
        let Some(((feature, cut), error)) = best else { break };
        let error = error.clamp(1e-6, 1.0 - 1e-6);
        let stump = Stump { feature, cut, weight: 0.5 * ((1.0 - error) / error).ln() };
        for (weight, pair) in weights.iter_mut().zip(pairs) {
            let right = if pair.first_is_used { 1.0 } else { -1.0 };
            *weight *= (-right * stump.vote(pair)).exp();
        }
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= sum);
        stumps.push(stump);
    }
    stumps
}

/// The part of pairs that is judged right: each half by what was learnt of the other.
fn judged_right(pairs: &[Pair]) -> f64 {
    let (one, two): (Vec<_>, Vec<_>) = pairs.iter().enumerate().partition(|it| it.0 % 2 == 0);
    let [one, two] = [one, two].map(|half| half.into_iter().map(|it| it.1).collect::<Vec<_>>());
    let right = |learnt: &[&Pair], judged: &[&Pair]| {
        let stumps = learn(learnt);
        let says = |pair: &Pair| stumps.iter().map(|stump| stump.vote(pair)).sum::<f64>() > 0.0;
        judged.iter().filter(|pair| says(pair) == pair.first_is_used).count()
    };
    (right(&one, &two) + right(&two, &one)) as f64 / pairs.len() as f64
}

#[test]
#[ignore = "long: there is nothing to learn from a few pairs"]
fn long_a_classifier_learns_nothing_of_lanes() {
    let pairs = |leak, first: u64, count: u64| -> Vec<Pair> {
        (first..first + count).map(|seed| pair(seed, leak)).collect()
    };
    let found = judged_right(&pairs(Leak::FewerOnes, seed(1), 100));
    let count = scaled(200);
    let right = judged_right(&pairs(Leak::Honest, seed(1), count));
    println!(
        "of {count} pairs {:.2} % are judged right; with a leak {:.0} %",
        100.0 * right,
        100.0 * found
    );
    assert!(found > 0.8, "{found}");
    // Four deviations of a fair coin.
    assert!((right - 0.5).abs() < 4.0 * 0.5 / (count as f64).sqrt(), "{right}");
}
