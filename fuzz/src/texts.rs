//! Texts from users.

use oblivio_audit::observer::{judge_records, sight_of};
use oblivio_audit::record::{Lines, RecordLine, RecordWriter};

/// A trace: refused, or equal after writing and reading it. Judged if it is short.
pub fn trace(data: &[u8]) {
    let read = |text: &[u8]| Lines::new(text).collect::<Result<Vec<RecordLine>, _>>();
    let Ok(lines) = read(data) else { return };
    let mut writer = RecordWriter::new(Vec::new()).expect("memory");
    lines.iter().for_each(|line| writer.write(line).expect("memory"));
    assert_eq!(read(&writer.into_inner()).expect("it was just written"), lines);
    let sight = sight_of(&lines);
    if sight.whole().accesses() <= 200 {
        let _ = judge_records(&sight, 1e-6);
    }
}
