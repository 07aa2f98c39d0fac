//! Parameters of any size: if they pass validation, their places can be computed.

use crate::cases;
use oblivio_engine::sequential::{Flush, Layout, MOST_BYTES, NodeAt, SequentialConfig};
use proptest::prelude::*;

/// Any number of up to `most` bits; small ones are as likely as large ones.
fn bits(most: u32) -> impl Strategy<Value = u64> {
    (0..=most, any::<u64>()).prop_map(|(bits, any)| match bits {
        0 => 0,
        bits => any >> (64 - bits) | 1 << (bits - 1),
    })
}

/// Also beyond every limit.
fn any_config() -> impl Strategy<Value = SequentialConfig> {
    let sizes = (bits(28), bits(50), bits(22), bits(26));
    (sizes, bits(11), bits(15), bits(22), bits(22)).prop_map(
        |((block_bytes, blocks, bucket_blocks, queue_buckets), fan_out, ratio, pages, sector)| {
            SequentialConfig {
                block_bytes: block_bytes as usize,
                blocks,
                bucket_blocks,
                queue_buckets,
                fan_out,
                last_ratio: ratio,
                time_pages: pages,
                sector_bytes: sector as usize,
                cached_nodes: 0,
                cached_leaves: 0,
            }
        },
    )
}

/// Everything is within the disk's bytes, and nothing overflows (test builds check that).
fn expect_sound(layout: &Layout) {
    assert!(layout.bytes() <= MOST_BYTES);
    let schedule = layout.schedule();
    let levels = schedule.levels().map(|level| layout.level_bytes(level));
    assert_eq!(levels.map(u128::from).sum::<u128>(), u128::from(layout.bytes()));
    let cost = layout.cost();
    assert!(cost.written.is_finite() && cost.stored > 1.0, "{cost:?}");
    assert!(schedule.access_time_bytes() > 0);
    // The first flushes, and some after many sweeps of the disk.
    for flush in [0, 1, 1 << 20, 1 << 56].map(Flush) {
        for bucket in schedule.buckets(flush) {
            let shape = layout.shape(bucket.generation.level);
            let root = layout.node(bucket.generation, shape.root());
            let leaf = NodeAt { height: 0, index: shape.leaves() - 1 };
            let leaf = layout.node(bucket.generation, leaf);
            for extent in [layout.bucket(bucket), root, leaf] {
                assert!(extent.bytes > 0 && extent.end() <= layout.bytes(), "{extent:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(50_000))]
    #[test]
    fn parameters_are_refused_or_have_a_disk(config in any_config()) {
        match Layout::new(&config) {
            Ok(layout) => expect_sound(&layout),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

/// Parameters that each pass their check, but together need more bytes than can be counted.
#[test]
fn a_disk_that_no_offset_reaches_is_refused() {
    let most = SequentialConfig {
        bucket_blocks: 1 << 20,
        queue_buckets: 1 << 24,
        ..SequentialConfig::new(1 << 26, 1 << 48)
    };
    most.check().expect("each of them is within its bounds");
    assert!(Layout::new(&most).is_err_and(|error| error.to_string().contains("2^62")));
    // Petabytes are no problem.
    let large = SequentialConfig::new(4096, (4 << 50) / 4096);
    expect_sound(&Layout::new(&large).expect("sound parameters"));
}
