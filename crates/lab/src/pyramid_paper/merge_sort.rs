//! Oblivious merge sort (the paper's reference 20): pairs of runs are read at an even pace, and one
//! element is written for each that was read.
//!
//! If each run is a random sample of both, the runs are used up evenly. How many of the smallest
//! elements come from a run of `a` of `a + b` deviates from its share by more than
//! lambda * sqrt(a * b / (a + b)) with probability 2 * exp(-2 * lambda^2): the two-sample bound of
//! Kolmogorov and Smirnov. So each run is read ahead of its share by that number. For equal runs of
//! m in both, the buffer holds the paper's lambda * sqrt(m). When a run has nothing read ahead
//! although it has more to come, the smallest element is unknown: the sort stops. Reading on would
//! show it.
//!
//! So the input must be in random order with respect to its keys. Slots are: their keys are names
//! that a PRF just drew. The second sort of §5.4 is not: its input is the output of the first, one
//! run has only small keys, and its buffer would have to hold half of the list. See
//! [`super::segment_sort`].

use super::messages::Span;
use super::pace::deviation;
use std::collections::VecDeque;

/// An element of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// What the list is sorted by.
    pub key: u128,
    /// The rest.
    pub payload: Vec<u8>,
}

/// The public numbers of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortShape {
    /// Elements.
    pub total: u64,
    /// Elements of a run that is sorted in memory.
    pub run: u64,
    /// Elements of a request.
    pub chunk: u64,
    /// How surely the buffer suffices.
    pub lambda_squared: u64,
}

impl SortShape {
    /// Passes over stored lists, after the runs.
    pub fn passes(&self) -> u32 {
        let runs = self.total.div_ceil(self.run).max(1);
        runs.next_power_of_two().trailing_zeros()
    }

    /// Elements that are written to lists, and as many that are read from them.
    pub fn moved(&self) -> u64 {
        self.total * u64::from(self.passes())
    }
}

/// What a sort wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SortStep {
    /// Read these spans of the list that a pass wrote.
    Read(u32, [Span; 2]),
    /// Write these elements to the list of a pass.
    Write(u32, Vec<Element>),
    /// These elements come next in the sorted order.
    Emit(Vec<Element>),
    /// All came.
    Done,
}

/// A run that is being read.
#[derive(Debug)]
struct Run {
    begin: u64,
    len: u64,
    read: u64,
    ahead: VecDeque<Element>,
}

impl Run {
    fn new(begin: u64, len: u64) -> Self {
        Self { begin, len, read: 0, ahead: VecDeque::new() }
    }

    /// The next elements, up to `until` of the run.
    fn span(&mut self, until: u64) -> Span {
        let span = Span { from: self.begin + self.read, count: until - self.read };
        self.read = until;
        span
    }

    /// Whether more may come before what is read ahead is known to be the smallest.
    fn is_dry(&self) -> bool {
        self.ahead.is_empty() && self.read < self.len
    }
}

/// Two runs that become one.
#[derive(Debug)]
struct Merge {
    runs: [Run; 2],
    /// What each run is read ahead of its share.
    ahead: u64,
    written: u64,
}

/// The buffer of a sort ran dry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RanDry;

impl Merge {
    fn new(begin: u64, [left, right]: [u64; 2], shape: &SortShape) -> Self {
        let product = u128::from(left) * u128::from(right);
        let spread = product.div_ceil(u128::from(left + right)) as u64;
        let runs = [Run::new(begin, left), Run::new(begin + left, right)];
        Self { runs, ahead: deviation(shape.lambda_squared, spread), written: 0 }
    }

    fn total(&self) -> u64 {
        self.runs.iter().map(|run| run.len).sum()
    }

    /// What to read before `written` elements are written, at most half a chunk of each run; none
    /// if it was read.
    fn read_on(&mut self, written: u64, chunk: u64) -> Option<[Span; 2]> {
        let (total, ahead) = (u128::from(self.total()), self.ahead);
        let needed = |run: &Run| {
            let share = (u128::from(written) * u128::from(run.len)).div_ceil(total) as u64;
            (share + ahead).min(run.len)
        };
        if self.runs.iter().all(|run| run.read >= needed(run)) {
            return None;
        }
        Some(self.runs.each_mut().map(|run| {
            let until = needed(run).min(run.read + chunk / 2).max(run.read);
            run.span(until)
        }))
    }

    /// The elements up to this number.
    fn write_on(&mut self, written: u64) -> Result<Vec<Element>, RanDry> {
        let due = written - self.written;
        self.written = written;
        (0..due).map(|_| self.smallest()).collect()
    }

    fn smallest(&mut self) -> Result<Element, RanDry> {
        if self.runs.iter().any(Run::is_dry) {
            return Err(RanDry);
        }
        let [one, other] = &mut self.runs;
        let from = match (one.ahead.front(), other.ahead.front()) {
            (Some(left), Some(right)) if right.key < left.key => other,
            (Some(_), _) => one,
            (None, _) => other,
        };
        from.ahead.pop_front().ok_or(RanDry)
    }
}

/// A sort. First it takes all elements, then it goes over stored lists.
#[derive(Debug)]
pub struct MergeSort {
    shape: SortShape,
    forming: Vec<Element>,
    fed: u64,
    /// The pass whose list is read.
    pass: u32,
    /// Elements of that list before the current pair of runs.
    begin: u64,
    merge: Option<Merge>,
}

impl MergeSort {
    /// A sort of these numbers.
    pub fn new(shape: SortShape) -> Self {
        Self { shape, forming: Vec::new(), fed: 0, pass: 0, begin: 0, merge: None }
    }

    /// Takes an element; a run that is complete, to be written to the list of pass 0. A list of one
    /// run stays in memory: its length is public.
    pub fn feed(&mut self, element: Element) -> Option<Vec<Element>> {
        self.forming.push(element);
        self.fed += 1;
        let full = self.forming.len() as u64 == self.shape.run || self.fed == self.shape.total;
        if !full {
            return None;
        }
        self.forming.sort_by_key(|element| element.key);
        (self.shape.passes() > 0).then(|| std::mem::take(&mut self.forming))
    }

    /// What to do next, once all elements were taken.
    ///
    /// # Errors
    /// If the buffer runs dry.
    pub fn step(&mut self) -> Result<SortStep, RanDry> {
        let SortShape { total, chunk, .. } = self.shape;
        if self.shape.passes() == 0 {
            let count = self.forming.len().min(chunk as usize);
            let next: Vec<Element> = self.forming.drain(..count).collect();
            return Ok(if next.is_empty() { SortStep::Done } else { SortStep::Emit(next) });
        }
        let last = self.pass + 1 == self.shape.passes();
        loop {
            if self.begin == total {
                if last {
                    return Ok(SortStep::Done);
                }
                (self.pass, self.begin) = (self.pass + 1, 0);
                return self.step();
            }
            let pair = self.pair();
            let merge = self.merge.get_or_insert_with(|| Merge::new(self.begin, pair, &self.shape));
            let until = (merge.written + chunk).min(merge.total());
            if let Some(spans) = merge.read_on(until, chunk) {
                return Ok(SortStep::Read(self.pass, spans));
            }
            let written = merge.write_on(until)?;
            if !written.is_empty() {
                return Ok(if last {
                    SortStep::Emit(written)
                } else {
                    SortStep::Write(self.pass + 1, written)
                });
            }
            self.begin += merge.total();
            self.merge = None;
        }
    }

    /// The lengths of the runs from `begin` on.
    fn pair(&self) -> [u64; 2] {
        let run = self.shape.run << self.pass;
        let left = (self.shape.total - self.begin).min(run);
        [left, (self.shape.total - self.begin - left).min(run)]
    }

    /// Takes the elements of a read.
    pub fn supply(&mut self, [left, right]: [Vec<Element>; 2]) {
        if let Some(merge) = &mut self.merge {
            merge.runs[0].ahead.extend(left);
            merge.runs[1].ahead.extend(right);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_crypto::Prf;

    /// Sorts in memory; the steps without their elements, and the keys as they come out.
    fn run(keys: &[u128], shape: SortShape) -> Result<(Vec<String>, Vec<u128>), RanDry> {
        let mut sort = MergeSort::new(shape);
        let mut lists: Vec<Vec<Element>> = vec![Vec::new(); shape.passes() as usize + 1];
        for &key in keys {
            let element = Element { key, payload: Vec::new() };
            lists[0].extend(sort.feed(element).unwrap_or_default());
        }
        let (mut steps, mut out) = (Vec::new(), Vec::new());
        loop {
            match sort.step()? {
                SortStep::Read(pass, spans) => {
                    steps.push(format!("read {pass} {spans:?}"));
                    let list = &lists[pass as usize];
                    sort.supply(spans.map(|span| {
                        list[span.from as usize..(span.from + span.count) as usize].to_vec()
                    }));
                }
                SortStep::Write(pass, elements) => {
                    steps.push(format!("write {pass} {}", elements.len()));
                    lists[pass as usize].extend(elements);
                }
                SortStep::Emit(elements) => {
                    steps.push(format!("emit {}", elements.len()));
                    out.extend(elements.iter().map(|element| element.key));
                }
                SortStep::Done => return Ok((steps, out)),
            }
        }
    }

    fn random(count: u64, seed: u64) -> Vec<u128> {
        let prf = Prf::from_seed(seed);
        (0..count).map(|n| u128::from(prf.draw(1, n))).collect()
    }

    #[test]
    fn it_sorts_and_the_steps_do_not_depend_on_the_keys() {
        for (total, run_len, chunk) in [(1, 4, 2), (4, 4, 2), (5, 4, 3), (100, 8, 4), (1000, 16, 7)]
        {
            let shape = SortShape { total, run: run_len, chunk, lambda_squared: 23 };
            let mut seen = None;
            for seed in 0..20 {
                let mut keys = random(total, seed);
                let (steps, out) = run(&keys, shape).expect("the buffer suffices");
                keys.sort_unstable();
                assert_eq!(out, keys);
                assert_eq!(*seen.get_or_insert_with(|| steps.clone()), steps);
            }
        }
    }

    /// The figures that a construction's weights rest on.
    #[test]
    fn passes_and_moves_are_those_of_the_shape() {
        let shape = SortShape { total: 1000, run: 16, chunk: 7, lambda_squared: 23 };
        assert_eq!((shape.passes(), shape.moved()), (6, 6000));
        let (steps, _) = run(&random(1000, 1), shape).expect("the buffer suffices");
        let count = |what: &str| steps.iter().filter(|step| step.starts_with(what)).count() as u64;
        assert!(count("read") >= 6 * 1000 / 7 && count("emit") >= 1000 / 7);
        assert_eq!(SortShape { total: 16, ..shape }.passes(), 0);
    }

    /// A sort of two runs at lambda = 1 fails with probability at most 2 * exp(-2) = 0.27; of
    /// 1,000, 271 are expected at most, and six standard deviations are 84.
    #[test]
    fn the_buffer_fails_as_seldom_as_its_bound_says() {
        let shape = SortShape { total: 1024, run: 512, chunk: 4, lambda_squared: 1 };
        let failed = (0..1000).filter(|&seed| run(&random(1024, seed), shape).is_err()).count();
        assert!((100..=271 + 84).contains(&failed), "{failed}");
        let wide = SortShape { lambda_squared: 4, ..shape };
        // 2 * exp(-8) = 0.00067: 0.7 expected.
        let failed = (0..1000).filter(|&seed| run(&random(1024, seed), wide).is_err()).count();
        assert!(failed <= 8, "{failed}");
    }

    /// The last run of a list is shorter than its partner. With shares in proportion, its elements
    /// deviate by more than their share of the buffer, and half of these sorts ran dry.
    #[test]
    fn a_short_run_fails_no_more_often() {
        let shape = SortShape { total: 1088, run: 1024, chunk: 4, lambda_squared: 4 };
        // 2 * exp(-8) = 0.00067: 0.7 expected.
        let failed = (0..1000).filter(|&seed| run(&random(1088, seed), shape).is_err()).count();
        assert!(failed <= 8, "{failed}");
    }

    /// Why the second sort of §5.4 cannot be this one.
    #[test]
    fn a_sorted_input_runs_dry() {
        let shape = SortShape { total: 2048, run: 1024, chunk: 16, lambda_squared: 23 };
        let keys: Vec<u128> = (0..2048).collect();
        assert_eq!(run(&keys, shape), Err(RanDry));
    }
}
