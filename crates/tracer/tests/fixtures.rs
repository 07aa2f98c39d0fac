//! The three traces of the repository: readable in every later version, to the last byte.

use oblivio_tracer::caches::{Geometry, Kind};
use oblivio_tracer::record::{Reader, Record, Writer};
use std::io::Cursor;
use std::path::Path;

/// Each program with the sum of all lines in its trace, which another program has added up.
const FIXTURES: [(&str, u64); 3] = [
    ("bzip2", 87_700_113_639_806),
    ("perltidy", 126_970_209_530_145),
    ("quantum", 171_850_415_860_000),
];

#[test]
fn fixtures_are_read_and_written_again() {
    for (program, sum) in FIXTURES {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/misses");
        let bytes = std::fs::read(folder.join(format!("{program}.trace"))).unwrap();
        assert!(bytes.len() < 150_000, "{program} is small enough for a repository");
        let reader = Reader::new(&bytes[..]).unwrap();
        let header = reader.header().clone();
        assert_eq!(header.about.program, program);
        assert_eq!(header.about.geometry, Geometry::paper(64));
        let records: Vec<Record> = reader.map(Result::unwrap).collect();
        let misses = records.iter().filter(|it| it.kind != Kind::Eviction).count() as u64;
        assert_eq!(misses, header.totals.counts.l2_misses);
        assert!((20_000..20_200).contains(&misses), "{program}: {misses}");
        assert_eq!(records.iter().fold(0, |sum: u64, it| sum.wrapping_add(it.line)), sum);
        assert!(records.iter().map(|it| it.cycles).sum::<u64>() <= header.totals.cycles);
        let mut writer = Writer::new(Cursor::new(Vec::new()), header.about).unwrap();
        records.into_iter().for_each(|record| writer.record(record).unwrap());
        assert!(writer.finish(header.totals).unwrap().into_inner() == bytes, "{program}");
    }
}
