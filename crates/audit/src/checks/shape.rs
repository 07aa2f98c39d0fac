//! The cost of a request must follow from its leaves alone.

use std::collections::{BTreeSet, HashMap};

use crate::report::{AuditOptions, Finding};
use crate::trace::{MAX_DEPTH, RequestKind, Trace, TraceRequest, TraceRule};

const NAME: &str = "request shape";

/// Buckets in the union of the paths to these leaves, the root included: the cost of a request
/// without a cache.
pub fn union_of_paths(leaves: &[u64], depth: u32) -> u32 {
    profile(leaves, depth).iter().sum()
}

/// Buckets that the paths pass on each level.
fn profile(leaves: &[u64], depth: u32) -> Vec<u32> {
    let depth = depth.min(MAX_DEPTH);
    let sorted: BTreeSet<u64> = leaves.iter().copied().collect();
    let sorted: Vec<u64> = sorted.into_iter().collect();
    // Neighbours in sorted order part at one level and share nothing below it.
    let mut counts = vec![u32::from(!sorted.is_empty()); depth as usize + 1];
    for pair in sorted.windows(2) {
        let shared = depth.saturating_sub(64 - (pair[0] ^ pair[1]).leading_zeros());
        for count in &mut counts[shared as usize + 1..] {
            *count += 1;
        }
    }
    counts
}

/// Deviations so far, and a description of the first.
struct Shapes<'a> {
    options: &'a AuditOptions,
    /// Requests whose paths overlap in the same way, and the cost of the first of them.
    costs: HashMap<(u32, Vec<u32>), [u64; 4]>,
    /// Bytes of a number of buckets, read or written, on a tree of that depth.
    bytes: HashMap<(u32, bool, u32), u64>,
    deviations: usize,
    first: Option<String>,
}

impl<'a> Shapes<'a> {
    fn new(options: &'a AuditOptions) -> Self {
        let (costs, bytes) = (HashMap::new(), HashMap::new());
        Shapes { options, costs, bytes, deviations: 0, first: None }
    }

    fn see(&mut self, place: &str, request: &TraceRequest) {
        if let Some(deviation) = self.deviation(request) {
            self.deviations += 1;
            self.first.get_or_insert_with(|| format!("{place}: {deviation}"));
        }
    }

    fn deviation(&mut self, r: &TraceRequest) -> Option<String> {
        if let Some(leaf) = r.leaves.iter().find(|&&leaf| !r.has_leaf(leaf)) {
            return Some(format!("leaf {leaf} is outside a tree of depth {}", r.depth));
        }
        let Some(expected) = &self.options.expected else { return self.unlike_before(r) };
        let (reads, writes) = expected(&r.leaves, r.depth);
        if (r.reads, r.writes) != (reads, writes) {
            return Some(format!(
                "{} buckets read and {} written, but its leaves ask for {reads} and {writes}",
                r.reads, r.writes
            ));
        }
        self.unlike_bytes(r)
    }

    /// Without knowledge of the cache: the same overlap must cost the same.
    fn unlike_before(&mut self, r: &TraceRequest) -> Option<String> {
        let cost = [r.reads.into(), r.writes.into(), r.bytes_read, r.bytes_written];
        let key = (r.depth, profile(&r.leaves, r.depth));
        let before = *self.costs.entry(key).or_insert(cost);
        (before != cost).then(|| {
            let [reads, writes, bytes_read, bytes_written] = before;
            format!(
                "{} buckets ({} bytes) read and {} ({}) written, where an earlier request of \
                 equal leaves had {reads} ({bytes_read}) and {writes} ({bytes_written})",
                r.reads, r.bytes_read, r.writes, r.bytes_written
            )
        })
    }

    /// The same number of buckets must have the same number of bytes.
    fn unlike_bytes(&mut self, r: &TraceRequest) -> Option<String> {
        let both = [(false, r.reads, r.bytes_read), (true, r.writes, r.bytes_written)];
        both.into_iter().find_map(|(written, buckets, bytes)| {
            let before = *self.bytes.entry((r.depth, written, buckets)).or_insert(bytes);
            (before != bytes)
                .then(|| format!("{buckets} buckets of {bytes} bytes, where others had {before}"))
        })
    }

    fn finding(self, name: &str, otherwise: String) -> Finding {
        let explanation = match self.first {
            Some(first) => format!("{} deviate, the first: {first}", self.deviations),
            None => otherwise,
        };
        Finding::exact(name, self.deviations, explanation)
    }
}

/// Judges the requests of one trace.
pub(super) fn single(trace: &Trace, options: &AuditOptions) -> Finding {
    let mut shapes = Shapes::new(options);
    let usual = usual_count(trace);
    for (t, request) in trace.requests.iter().enumerate() {
        let place = format!("request {t}");
        shapes.see(&place, request);
        if options.expected.is_none() && request.leaves.len() != usual {
            let found = request.leaves.len();
            shapes.deviations += 1;
            shapes.first.get_or_insert_with(|| format!("{place}: {found} leaves, not {usual}"));
        }
    }
    let otherwise = match options.expected {
        Some(_) => "every request costs what its leaves ask for".into(),
        None => format!("every request has {usual} leaves, and equal ones cost the same"),
    };
    shapes.finding(NAME, otherwise)
}

/// The most frequent number of leaves of a request.
fn usual_count(trace: &Trace) -> usize {
    let mut counts: HashMap<usize, usize> = HashMap::new();
    for request in &trace.requests {
        *counts.entry(request.leaves.len()).or_default() += 1;
    }
    counts.into_iter().max_by_key(|&(leaves, times)| (times, leaves)).map_or(0, |(l, _)| l)
}

/// The part of a request that no workload may change. A batch or a commit moves buckets that follow
/// from drawn leaves; a record of written bytes has a size class.
fn outline(r: &TraceRequest) -> (RequestKind, usize, usize, u32, u64, Option<TraceRule>) {
    let bytes = if r.kind == RequestKind::Sync { r.bytes_written } else { 0 };
    // The places of buckets, and which are stored, follow from leaves too.
    let public = |rule: &TraceRule| TraceRule {
        stored: None,
        lacking: Vec::new(),
        places: Vec::new(),
        ..rule.clone()
    };
    (r.kind, r.leaves.len(), r.scheduled, r.depth, bytes, r.rule.as_ref().map(public))
}

fn in_words(r: &TraceRequest) -> String {
    match r.kind {
        RequestKind::Sync => format!("a record of {} bytes", r.bytes_written),
        RequestKind::Flush => "a part of a commit".into(),
        RequestKind::Commit => "a commit".into(),
        RequestKind::Rule => format!("{:?} at depth {}", r.rule, r.depth),
        RequestKind::Maintenance => {
            format!("a sweep of {} paths at depth {}", r.scheduled, r.depth)
        }
        RequestKind::Repair => format!("a repair of {} paths", r.scheduled),
        RequestKind::Map => format!("{} leaves of the map at depth {}", r.leaves.len(), r.depth),
        RequestKind::Batch => format!("{} leaves at depth {}", r.leaves.len(), r.depth),
    }
}

/// Judges whether two traces have the same shape, request by request.
pub(super) fn pair(name: &str, a: &Trace, b: &Trace, options: &AuditOptions) -> Finding {
    let mut shapes = Shapes::new(options);
    for (which, trace) in [("first", a), ("second", b)] {
        let batches =
            trace.requests.iter().enumerate().filter(|(_, r)| r.kind == RequestKind::Batch);
        for (t, request) in batches {
            shapes.see(&format!("request {t} of the {which} trace"), request);
        }
    }
    for (t, (x, y)) in a.requests.iter().zip(&b.requests).enumerate() {
        if outline(x) != outline(y) {
            shapes.deviations += 1;
            shapes.first.get_or_insert_with(|| {
                format!("request {t}: {} in one, {} in the other", in_words(x), in_words(y))
            });
        }
    }
    shapes.finding(name, "the same leaves per request, depth and cost in both".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(leaves: &[u64]) -> TraceRequest {
        let buckets = union_of_paths(leaves, 3);
        let bytes = u64::from(buckets) * 100;
        TraceRequest {
            leaves: leaves.to_vec(),
            depth: 3,
            reads: buckets,
            writes: buckets,
            bytes_read: bytes,
            bytes_written: bytes,
            ..TraceRequest::default()
        }
    }

    fn deviations(requests: Vec<TraceRequest>, options: &AuditOptions) -> f64 {
        single(&Trace { depth: 3, requests }, options).statistic
    }

    #[test]
    fn unions() {
        assert_eq!(union_of_paths(&[], 3), 0);
        assert_eq!(union_of_paths(&[5], 3), 4);
        assert_eq!(union_of_paths(&[5, 5], 3), 4);
        assert_eq!(union_of_paths(&[4, 5], 3), 5);
        assert_eq!(union_of_paths(&[0, 7], 3), 7);
        assert_eq!(union_of_paths(&[0, 2, 7], 3), 9);
        assert_eq!(union_of_paths(&[0], 0), 1);
    }

    #[test]
    fn overlap_is_no_deviation_but_a_missing_write_is() {
        let plain = AuditOptions::default();
        let told = AuditOptions::default().expecting(|leaves, depth| {
            let buckets = union_of_paths(leaves, depth);
            (buckets, buckets)
        });
        let good = vec![request(&[0, 7]), request(&[0, 1]), request(&[6, 7])];
        let mut bad = good.clone();
        bad[2].writes = 0;
        let mut heavy = good.clone();
        heavy[2].bytes_read += 1;
        for options in [plain, told] {
            assert_eq!(deviations(good.clone(), &options), 0.0);
            assert_eq!(deviations(bad.clone(), &options), 1.0);
            assert_eq!(deviations(heavy.clone(), &options), 1.0);
            assert_eq!(deviations(vec![request(&[0, 9])], &options), 1.0);
        }
    }

    #[test]
    fn without_a_rule_the_number_of_leaves_is_constant() {
        let mixed = vec![request(&[1]), request(&[2]), request(&[0, 7])];
        assert_eq!(deviations(mixed, &AuditOptions::default()), 1.0);
    }
}
