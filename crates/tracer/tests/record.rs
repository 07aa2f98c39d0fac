//! The trace format: what is written is read again, and nothing else is taken for a trace.

use oblivio_tracer::caches::{Counts, Geometry, Kind};
use oblivio_tracer::record::{About, Error, Reader, Record, Totals, Writer};
use proptest::prelude::*;
use std::io::Cursor;

fn about() -> About {
    About {
        program: "bzip2".into(),
        package: "bzip2 1.0.8".into(),
        arguments: "-9 -c input".into(),
        geometry: Geometry::paper(64),
    }
}

fn totals(records: &[Record]) -> Totals {
    let evictions = records.iter().filter(|it| it.kind == Kind::Eviction).count() as u64;
    let l2_misses = records.len() as u64 - evictions;
    let counts = Counts { l1i_misses: 3, l1d_misses: 4, l2_misses, evictions };
    Totals { skipped: 1, instructions: 2, cycles: 5, counts }
}

fn written(records: &[Record]) -> Vec<u8> {
    let mut writer = Writer::new(Cursor::new(Vec::new()), about()).unwrap();
    for record in records {
        writer.record(*record).unwrap();
    }
    writer.finish(totals(records)).unwrap().into_inner()
}

fn read(bytes: &[u8]) -> Result<Vec<Record>, Error> {
    Reader::new(bytes)?.collect()
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    let kinds =
        prop_oneof![Just(Kind::Load), Just(Kind::Store), Just(Kind::Eviction), Just(Kind::Fetch)];
    let numbers = (0..64_u32, any::<u64>()).prop_map(|(shift, number)| number >> shift);
    let record = (numbers.clone(), kinds, numbers).prop_map(|(cycles, kind, line)| Record {
        cycles: cycles >> 2,
        kind,
        line,
    });
    prop::collection::vec(record, 0..60)
}

proptest! {
    #[test]
    fn what_is_written_is_read(records in records()) {
        let bytes = written(&records);
        let reader = Reader::new(&bytes[..]).unwrap();
        prop_assert_eq!(&reader.header().about, &about());
        prop_assert_eq!(reader.header().totals, totals(&records));
        prop_assert_eq!(read(&bytes).unwrap(), records);
    }

    #[test]
    fn a_torn_trace_is_an_error(records in records(), cut in any::<prop::sample::Index>()) {
        let bytes = written(&records);
        prop_assert!(read(&bytes[..cut.index(bytes.len())]).is_err());
    }

    #[test]
    fn a_changed_byte_is_an_error(
        records in records(), at in any::<prop::sample::Index>(), bits in 1_u8..=255,
    ) {
        let mut bytes = written(&records);
        let at = at.index(bytes.len());
        bytes[at] ^= bits;
        prop_assert!(read(&bytes).is_err());
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut bytes = bytes;
        prop_assert!(read(&bytes).is_err());
        let whole = written(&[]);
        bytes.splice(0..0, whole.iter().copied());
        prop_assert_eq!(read(&bytes).is_ok(), bytes.len() == whole.len());
    }
}

/// The bytes themselves: an older trace must be readable for ever.
#[test]
fn records_are_as_documented() {
    let record = |cycles, kind, line| Record { cycles, kind, line };
    let records = [
        record(5, Kind::Load, 100),
        record(0, Kind::Eviction, 3),
        record(40, Kind::Store, 99),
        record(1, Kind::Fetch, 99),
    ];
    let bytes = written(&records);
    let header = usize::from(u16::from_le_bytes([bytes[10], bytes[11]]));
    assert_eq!(&bytes[..8], b"OBLVMISS");
    assert_eq!(bytes[header..], [5 << 2, 0xc8, 1, 2, 6, 0xa1, 1, 1, 7, 0]);
    assert_eq!(header, 120 + 3 * 2 + "bzip2".len() + "bzip2 1.0.8".len() + "-9 -c input".len() + 8);
}

#[test]
fn another_version_is_refused_by_its_number() {
    let mut bytes = written(&[]);
    bytes[8] = 2;
    assert!(matches!(read(&bytes), Err(Error::Version(2))));
}

#[test]
fn a_trace_that_was_not_finished_is_none() {
    let mut file = Cursor::new(Vec::new());
    let mut writer = Writer::new(&mut file, about()).unwrap();
    writer.record(Record { cycles: 1, kind: Kind::Load, line: 1 }).unwrap();
    drop(writer);
    assert!(matches!(read(file.get_ref()), Err(Error::NoTrace)));
}

#[test]
fn a_long_text_is_refused() {
    let about = About { arguments: "x".repeat(5000), ..about() };
    assert!(matches!(Writer::new(Cursor::new(Vec::new()), about), Err(Error::LongText)));
}
