//! Nearby ranges of a file are read in one call: reading the gap between them costs less than
//! another request to the system, and the disk.

use crate::ReadAt;
use crate::medium::read_scattered;
use std::cell::Cell;
use std::fs::File;
use std::io::IoSliceMut;

/// The largest gap that is read and discarded.
const GAP: u64 = 32 << 10;
/// The most ranges per call: each takes two of the system's 1,024 places.
const MOST: usize = 256;
/// The most buffer for discarded gaps that a thread keeps for reuse.
const KEPT: usize = 1 << 20;

/// The reads with these numbers in runs of nearby ones, each ascending and of one object.
pub(super) fn near(reads: &[ReadAt<'_>], left: &[usize]) -> Vec<Vec<usize>> {
    let mut runs: Vec<Vec<usize>> = Vec::new();
    for &index in left {
        let next = &reads[index];
        let follows = |run: &&mut Vec<usize>| {
            let Some(last) = run.last().map(|&last| &reads[last]) else { return false };
            let gap = next.offset.checked_sub(last.offset + last.buf.len() as u64);
            run.len() < MOST && last.object == next.object && gap.is_some_and(|gap| gap <= GAP)
        };
        match runs.last_mut().filter(follows) {
            Some(run) => run.push(index),
            None => runs.push(vec![index]),
        }
    }
    runs
}

/// Ranges (object, offset, length) as they would be read: nearby ones joined, each with its end.
pub(super) fn joined<'r>(ranges: &[(&'r str, u64, u64)]) -> Vec<(&'r str, u64, u64)> {
    let mut joined: Vec<(&str, u64, u64)> = Vec::new();
    for &(object, offset, len) in ranges {
        let end = offset.saturating_add(len);
        match joined.last_mut() {
            Some((same, begin, before))
                if *same == object && *begin <= offset && offset <= *before + GAP =>
            {
                *before = end.max(*before);
            }
            _ => joined.push((object, offset, end)),
        }
    }
    joined
}

/// The start and end of a run in its file.
pub(super) fn span(reads: &[ReadAt<'_>], run: &[usize]) -> (u64, u64) {
    let begin = run.first().map_or(0, |&first| reads[first].offset);
    let end = run.last().map_or(0, |&last| reads[last].offset + reads[last].buf.len() as u64);
    (begin, end)
}

thread_local! {
    /// A thread's buffer for discarded gaps.
    static BETWEEN: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Reads a run. With `wait` it waits for the disk; without, it reads only what the system has in
/// memory. False unless it read everything: reading the ranges one by one then reports any error.
pub(super) fn read_run(file: &File, reads: &mut [ReadAt<'_>], run: &[usize], wait: bool) -> bool {
    let (begin, end) = span(reads, run);
    let wanted: usize = run.iter().map(|&index| reads[index].buf.len()).sum();
    let mut between = BETWEEN.take();
    let gaps = (end - begin) as usize - wanted;
    if between.len() < gaps {
        between.resize(gaps, 0);
    }
    let read = read_around(file, reads, run, &mut between, wait);
    if between.len() <= KEPT {
        BETWEEN.set(between);
    }
    read
}

/// The same, with a buffer for the gaps.
fn read_around(
    file: &File,
    reads: &mut [ReadAt<'_>],
    run: &[usize],
    between: &mut [u8],
    wait: bool,
) -> bool {
    let (begin, end) = span(reads, run);
    let (mut rest, mut at) = (between, begin);
    let mut slices = Vec::with_capacity(2 * run.len());
    let (Some(&first), Some(&last)) = (run.first(), run.last()) else { return true };
    let mut run = run.iter().map(|&index| index - first).peekable();
    for (index, read) in reads[first..=last].iter_mut().enumerate() {
        if run.next_if_eq(&index).is_none() {
            continue;
        }
        let (gap, later) = std::mem::take(&mut rest).split_at_mut((read.offset - at) as usize);
        (rest, at) = (later, read.offset + read.buf.len() as u64);
        if !gap.is_empty() {
            slices.push(IoSliceMut::new(gap));
        }
        slices.push(IoSliceMut::new(read.buf));
    }
    read_scattered(file, &mut slices, begin, wait) == Some((end - begin) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn near_ranges_of_one_object_are_a_run() {
        let mut bufs = [[0; 100]; 7];
        let far = 1 << 20;
        let places = [
            ("a", 0),
            ("a", 100),
            ("a", 200 + GAP),
            ("a", 900),
            ("a", far),
            ("b", far),
            ("b", far),
        ];
        let mut reads = Vec::new();
        for ((object, offset), buf) in places.into_iter().zip(&mut bufs) {
            reads.push(ReadAt { object, offset, buf });
        }
        let all: Vec<usize> = (0..reads.len()).collect();
        assert_eq!(near(&reads, &all), [vec![0, 1, 2], vec![3], vec![4], vec![5], vec![6]]);
        assert_eq!(near(&reads, &[0, 2, 5]), [vec![0], vec![2], vec![5]]);
        assert_eq!(span(&reads, &[0, 1]), (0, 200));
    }

    #[test]
    fn a_run_is_read_around_what_nobody_wants() {
        let file = tempfile::tempfile().expect("a file");
        let content: Vec<u8> = (0..10_000u32).map(|at| (at / 3) as u8).collect();
        file.write_all_at(&content, 0).expect("room");
        let mut bufs = [vec![0; 10], vec![0; 500], vec![0xaa; 300], vec![0; 2000]];
        let offsets = [5, 15, 600, 7000];
        let read = |(buf, offset): (_, u64)| ReadAt { object: "a", offset, buf };
        let mut reads: Vec<_> =
            bufs.iter_mut().map(Vec::as_mut_slice).zip(offsets).map(read).collect();
        assert!(read_run(&file, &mut reads, &[0, 1, 3], true));
        for at in [0, 1, 3] {
            let (offset, buf) = (reads[at].offset as usize, &*reads[at].buf);
            assert_eq!(buf, &content[offset..offset + buf.len()]);
        }
        assert!(reads[2].buf.iter().all(|byte| *byte == 0xaa), "it was not to be read");
        reads[3].offset = 9000;
        assert!(!read_run(&file, &mut reads, &[1, 3], true), "beyond the end");
    }
}
