//! Parameters of any size: those that pass validation have objects with computable lengths.

use oblivio_engine::sequential::SequentialConfig;
use oblivio_testkit::campaign::scaled;
use oblivio_volume::Error;
use oblivio_volume::LaneParameters;
use oblivio_volume::sequential::SequentialOptions;
use proptest::prelude::*;

/// A power of two of up to `most` bits, and a bit less or more.
fn about(most: u32) -> impl Strategy<Value = u64> {
    (0..=most, 0..3u64).prop_map(|(bits, more)| (1u64 << bits) + more - 1)
}

fn any_options() -> impl Strategy<Value = SequentialOptions> {
    let sizes = (about(27), about(49), about(21), about(25), about(11));
    let lanes = proptest::option::of((0..4u8, 0..70u8, 0..70u8));
    (sizes, about(14), 0..20u64, 9..15u32, about(13), about(33), lanes).prop_map(
        |(sizes, ratio, pages, sector, writes, quanta, lanes)| {
            let (block_bytes, blocks, bucket, queue, fan_out) = sizes;
            let engine = SequentialConfig {
                bucket_blocks: bucket,
                queue_buckets: queue,
                fan_out,
                last_ratio: ratio,
                time_pages: pages.saturating_sub(10),
                sector_bytes: 1 << sector,
                ..SequentialConfig::new(block_bytes as usize, blocks)
            };
            SequentialOptions {
                engine,
                quantum_writes: writes,
                log_quanta: quanta,
                fill: false,
                lanes: lanes.map(|(count, share, grace)| LaneParameters {
                    count,
                    share,
                    grace,
                    guess: 3,
                }),
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(scaled(20_000) as u32))]
    #[test]
    fn parameters_are_refused_or_have_objects(options in any_options()) {
        match options.objects() {
            Ok(objects) => {
                let bytes = objects.iter().map(|(_, bytes)| u128::from(*bytes)).sum::<u128>();
                prop_assert_eq!(u128::from(options.stored_bytes().expect("the same")), bytes);
                prop_assert!(options.written_per_byte().expect("the same").is_finite());
            }
            Err(error) => prop_assert!(matches!(error, Error::Invalid(_)), "{}", error),
        }
    }
}

/// The log has limits of its own.
#[test]
fn a_log_that_no_offset_reaches_is_refused() {
    let engine = SequentialConfig {
        bucket_blocks: 1,
        queue_buckets: 1,
        fan_out: 16,
        ..SequentialConfig::new(1 << 26, 100)
    };
    let options = SequentialOptions { log_quanta: 1 << 20, ..SequentialOptions::of(engine) };
    let options = SequentialOptions { quantum_writes: 4096, ..options };
    options.objects().expect("an exabyte is no reason");
    let options = SequentialOptions { log_quanta: 1 << 32, ..options };
    let error = options.objects().expect_err("2^70 bytes");
    assert!(error.to_string().contains("the log has at most 2^62 bytes"), "{error}");
}
