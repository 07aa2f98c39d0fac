//! The shortest way through a maze of hills, again and again: the program `astar` of the traces.
//!
//! `astar SIDE WAYS`. One thread, no input, the same work every time.

use std::collections::BinaryHeap;

/// Steps of SplitMix64, for heights and ends of ways.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % limit
    }
}

/// A field of the grid, as the search sees it.
#[derive(Clone, Copy)]
struct Field {
    /// What it costs to enter it; 0 is a wall.
    cost: u32,
    /// The search that `so_far` is of.
    search: u32,
    so_far: u32,
    before: u32,
}

struct Grid {
    side: usize,
    fields: Vec<Field>,
}

impl Grid {
    fn new(side: usize, dice: &mut Dice) -> Self {
        let field = |cost| Field { cost, search: 0, so_far: 0, before: 0 };
        let fields = (0..side * side).map(|_| match dice.below(10) {
            0..3 => field(0),
            _ => field(1 + dice.below(8) as u32),
        });
        Self { side, fields: fields.collect() }
    }

    /// The cost and the steps of the best way, if there is one.
    fn way(&mut self, from: usize, to: usize, search: u32) -> Option<(u32, u64)> {
        let side = self.side;
        let guess =
            |at: usize| ((at % side).abs_diff(to % side) + (at / side).abs_diff(to / side)) as u32;
        let mut open = BinaryHeap::new();
        self.fields[from] = Field { search, so_far: 0, ..self.fields[from] };
        open.push((u32::MAX - guess(from), from));
        while let Some((key, at)) = open.pop() {
            let so_far = self.fields[at].so_far;
            if at == to {
                return Some((so_far, self.steps(from, to)));
            }
            if u32::MAX - key > so_far + guess(at) {
                continue; // A better way here was found since.
            }
            let (column, row) = (at % side, at / side);
            let near = [
                (column > 0).then(|| at - 1),
                (column + 1 < side).then(|| at + 1),
                (row > 0).then(|| at - side),
                (row + 1 < side).then(|| at + side),
            ];
            for next in near.into_iter().flatten() {
                let field = &mut self.fields[next];
                let cost = so_far + field.cost;
                if field.cost > 0 && (field.search != search || cost < field.so_far) {
                    *field = Field { search, so_far: cost, before: at as u32, ..*field };
                    open.push((u32::MAX - cost - guess(next), next));
                }
            }
        }
        None
    }

    fn steps(&self, from: usize, to: usize) -> u64 {
        let (mut at, mut steps) = (to, 0);
        while at != from {
            at = self.fields[at].before as usize;
            steps += 1;
        }
        steps
    }
}

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u32>());
    let (Some(Ok(side)), Some(Ok(ways))) = (numbers.next(), numbers.next()) else {
        eprintln!("astar SIDE WAYS");
        std::process::exit(2);
    };
    let mut dice = Dice(1);
    let mut grid = Grid::new(side as usize, &mut dice);
    let (mut costs, mut steps) = (0, 0);
    for search in 1..=ways {
        let mut end = || dice.below(u64::from(side) * u64::from(side)) as usize;
        let (from, to) = (end(), end());
        let (cost, long) = grid.way(from, to, search).unwrap_or_default();
        (costs, steps) = (costs + u64::from(cost), steps + long);
    }
    eprintln!("{costs} in {steps} steps");
}
