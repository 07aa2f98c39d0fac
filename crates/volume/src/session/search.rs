//! The largest number of which there is an object. All smaller ones should be there too; if one is
//! lost, its name is not taken for a new one.

use crate::Result;

/// How many are asked for side by side.
pub const SIDE: u64 = 8;
/// At least this many numbers in a row behind the largest one are missing.
pub const GONE: u64 = 4;

/// Finds the largest number up to `most` that is there; 0 if none is. `hint` may be it: then only
/// that one and the next four are asked for. Numbers that are added meanwhile may count or not: the
/// answer is at least what it was at the beginning. Smaller ones may be missing, fewer than four in
/// a row.
///
/// # Errors
/// Those of `ask`, which says of each number whether it is there.
pub fn largest(
    hint: u64,
    most: u64,
    mut ask: impl FnMut(&[u64]) -> Result<Vec<bool>>,
) -> Result<u64> {
    let hint = hint.min(most);
    // `there` is, and `gone` is not. Whatever is between them is not known.
    let (mut there, mut gone) = (0, most + 1);
    let mut narrow = |there: &mut u64, gone: &mut u64, points: &[u64]| -> Result<()> {
        let (low, high) = (*there, *gone);
        let points: Vec<u64> = points.iter().copied().filter(|&at| low < at && at < high).collect();
        let found = ask(&points)?;
        let last = found.iter().rposition(|&found| found);
        *there = last.map_or(low, |last| points[last]);
        *gone = points.get(last.map_or(0, |last| last + 1)).copied().unwrap_or(high);
        Ok(())
    };
    if hint > 0 {
        let few: Vec<u64> = (hint..=hint.saturating_add(GONE)).collect();
        narrow(&mut there, &mut gone, &few)?;
        if there == hint {
            return Ok(hint);
        }
    }
    // A hint that is too high says that there is less, or that it is the one that is lost.
    let too_high = there < hint;
    if !too_high {
        gone = most + 1;
    }
    let near: Vec<u64> = (there + 1..=there.saturating_add(SIDE)).collect();
    let from = there;
    narrow(&mut there, &mut gone, &near)?;
    let mut known_gone = if too_high || gone > most { 0 } else { from.saturating_add(SIDE) };
    // Doubling, several steps at a time.
    let mut step = SIDE;
    while gone > most && there.saturating_add(step) < gone {
        let far = |power| there.saturating_add(step.saturating_mul(1u64 << power));
        let points: Vec<u64> = (0..SIDE).map(far).collect();
        narrow(&mut there, &mut gone, &points)?;
        step = step.saturating_mul(1 << SIDE);
    }
    loop {
        while gone - there > 1 {
            let part = ((gone - there) / (SIDE + 1)).max(1);
            let points: Vec<u64> = (1..=SIDE).map(|nth| there + nth * part).collect();
            narrow(&mut there, &mut gone, &points)?;
        }
        // What was asked for may have been the one that is lost.
        if there + GONE <= known_gone || there == most {
            return Ok(there);
        }
        (gone, known_gone) = ((there + SIDE).min(most) + 1, there + SIDE);
        let points: Vec<u64> = (there + 1..gone).collect();
        narrow(&mut there, &mut gone, &points)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_largest_is_found_from_every_hint() {
        for most in [20, 1000, (1 << 48) - 1] {
            for truth in (0..40).chain([999, 1000, 4097, 70_000, 1 << 40]) {
                for hint in (0..50).chain([1000, 65_000, 1 << 39, u64::MAX]) {
                    let (truth, mut rounds, mut asked) = (truth.min(most), 0, 0);
                    let found = largest(hint, most, |points| {
                        (rounds, asked) = (rounds + 1, asked + points.len());
                        assert!(points.len() <= 9 && points.is_sorted());
                        Ok(points.iter().map(|&at| at <= truth).collect())
                    });
                    assert_eq!(found.unwrap(), truth, "from {hint}");
                    assert!(rounds <= 25, "{rounds} rounds to {truth} from {hint}");
                    if hint == truth && hint > 0 {
                        assert!((rounds, asked) <= (1, 5), "{asked} for {truth}");
                    } else if (hint..hint.saturating_add(8)).contains(&truth) && truth < most {
                        assert!(rounds <= 3, "{rounds} rounds to {truth} from {hint}");
                    }
                }
            }
        }
    }

    #[test]
    fn lost_ones_hide_nothing() {
        for truth in (1..60).chain([1000, 4097, 70_000]) {
            for lost in (1..truth).rev().take(70).chain([truth / 2 + 1, truth / 3 + 1]) {
                for (hint, run) in [(0, 1), (0, 3), (lost, 2), (truth / 2, 3), (lost - 1, 3)] {
                    let is_there = |at: u64| at <= truth && !(lost..lost + run).contains(&at);
                    let truth = (0..=truth).rev().find(|&at| is_there(at)).unwrap();
                    let found = largest(hint, 1 << 40, |points| {
                        Ok(points.iter().map(|&at| is_there(at)).collect())
                    });
                    assert_eq!(found.unwrap(), truth, "{lost} and {run} are lost, from {hint}");
                }
            }
        }
    }

    #[test]
    fn nonsense_ends_too() {
        let mut turn = 0u64;
        let found = largest(5, (1 << 48) - 1, |points| {
            Ok(points
                .iter()
                .map(|_| {
                    turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    turn >> 62 != 0
                })
                .collect())
        });
        assert!(found.is_ok());
    }
}
