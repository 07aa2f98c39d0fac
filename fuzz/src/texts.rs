//! Texts from users.

use oblivio_audit::record::{Line, Lines, Writer};
use oblivio_audit::sight::{judge_records, sight_of};

/// A trace: refused, or equal after writing and reading it. Judged if it is short.
pub fn trace(data: &[u8]) {
    let read = |text: &[u8]| Lines::new(text).collect::<Result<Vec<Line>, _>>();
    let Ok(lines) = read(data) else { return };
    let mut writer = Writer::new(Vec::new()).expect("memory");
    lines.iter().for_each(|line| writer.write(line).expect("memory"));
    assert_eq!(read(&writer.into_inner()).expect("it was just written"), lines);
    let sight = sight_of(&lines);
    if sight.whole().accesses() <= 200 {
        let _ = judge_records(&sight, 1e-6);
    }
}
