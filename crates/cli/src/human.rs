//! Numbers, times and names as people write and read them.

use anyhow::Result;
pub use oblivio_serve::plain::plain;
use oblivio_serve::plain::shows_itself;
use oblivio_volume::fs::{FileKind, Timestamp};
use oblivio_volume::report::words::UNITS;
pub use oblivio_volume::report::words::{count, grouped, size};
use std::io::{IsTerminal, Write};
use std::sync::LazyLock;
use std::time::Duration;

/// A number of bytes as typed: `4096`, `64K`, `256M`, `1.5G`, `2TiB`.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let bad = || format!("{text:?} is not a size; write for example 64K, 256M or 10G");
    let factor = match unit.trim().to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        unit => {
            let letter = unit.chars().next().unwrap_or(' ');
            let power = UNITS.iter().position(|&u| u == letter).ok_or_else(bad)?;
            if !["", "B", "IB"].contains(&&unit[1..]) {
                return Err(bad());
            }
            1u64 << (10 * (power + 1))
        }
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(|| format!("{text:?} is too large"));
    }
    let value = number.parse::<f64>().map_err(|_| bad())? * factor as f64;
    if value < u64::MAX as f64 { Ok(value as u64) } else { Err(format!("{text:?} is too large")) }
}

/// A span of time as typed: `90`, `90s`, `10m`, `2h`.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let seconds = match unit.trim() {
        "" | "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3600),
        _ => None,
    };
    let all =
        number.parse::<u64>().ok().zip(seconds).and_then(|(number, each)| number.checked_mul(each));
    let bad = || format!("{text:?} is not a time; write for example 90s, 10m or 2h");
    all.map(Duration::from_secs).ok_or_else(bad)
}

/// A time as `2026-01-31 18:05Z`. The Z says UTC: the reader's time zone is unknown.
pub fn time(at: Timestamp) -> String {
    let (date, seconds) = (at.seconds.div_euclid(86_400), at.seconds.rem_euclid(86_400));
    let (year, month, day) = civil(date);
    let (hour, minute) = (seconds / 3600, seconds / 60 % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}Z")
}

/// A time to the nanosecond, for `--json` and `stat`.
pub fn exact_time(at: Timestamp) -> String {
    let (date, seconds) = (at.seconds.div_euclid(86_400), at.seconds.rem_euclid(86_400));
    let (year, month, day) = civil(date);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:09}Z", at.nanos)
}

/// Year, month and day of a number of days since 1970-01-01, in the proleptic Gregorian calendar
/// (the usual algorithm over eras of 400 years that begin on a first of March). For display only: a
/// time beyond the calendar is shown as its end.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days.clamp(-700_000_000_000, 700_000_000_000) + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
    (era * 400 + year + i64::from(month <= 2), month, day)
}

/// `drwxr-xr-x`.
pub fn mode(kind: FileKind, mode: u32) -> String {
    let kind = match kind {
        FileKind::File => '-',
        FileKind::Directory => 'd',
        FileKind::Symlink => 'l',
        FileKind::Fifo => 'p',
        FileKind::Socket => 's',
        FileKind::CharDevice => 'c',
        FileKind::BlockDevice => 'b',
    };
    let mut out: Vec<char> = vec![kind];
    for at in (0..9).rev() {
        out.push(if mode >> at & 1 == 1 { ['x', 'w', 'r'][at % 3] } else { '-' });
    }
    for (bit, at, letter) in [(0o4000, 3, 's'), (0o2000, 6, 's'), (0o1000, 9, 't')] {
        if mode & bit != 0 {
            out[at] = if out[at] == 'x' { letter } else { letter.to_ascii_uppercase() };
        }
    }
    out.into_iter().collect()
}

/// The kind in a word.
pub fn kind(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Directory => "directory",
        FileKind::Symlink => "symlink",
        FileKind::Fifo => "fifo",
        FileKind::Socket => "socket",
        FileKind::CharDevice => "character device",
        FileKind::BlockDevice => "block device",
    }
}

/// The raw bytes of a name for a program, a harmless form for a person.
pub fn name(bytes: &[u8]) -> Vec<u8> {
    static TERMINAL: LazyLock<bool> = LazyLock::new(|| std::io::stdout().is_terminal());
    if *TERMINAL { plain(&String::from_utf8_lossy(bytes)).into_bytes() } else { bytes.to_vec() }
}

/// Writes one line to standard output. Unlike `println!` a closed pipe is an error, not a panic.
pub fn say(line: impl AsRef<[u8]>) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_ref())?;
    out.write_all(b"\n")?;
    Ok(())
}

/// Writes one JSON value as a line. JSON escapes replace what could drive a terminal: the value is
/// the same, and everything outside its strings is plain.
pub fn say_json(value: &impl serde::Serialize) -> Result<()> {
    say(harmless(&serde_json::to_string(value)?))
}

fn harmless(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if shows_itself(c) {
            out.push(c);
        } else {
            let escape = |unit: &u16| format!("\\u{unit:04x}");
            out.extend(c.encode_utf16(&mut [0; 2]).iter().map(escape));
        }
    }
    out
}

/// A path as a shell takes it: in quotes if it has to be.
pub fn for_shell(path: &std::path::Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-~:@%+,=".contains(c);
    match text.chars().all(|c| is_plain(c) || !c.is_ascii()) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("64K", 64 << 10),
            ("64k", 64 << 10),
            ("256M", 256 << 20),
            ("1.5G", 3 << 29),
            ("2TiB", 2 << 40),
            ("10 GB", 10 << 30),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "K", "-1", "1X", "1KX", "1.2.3", "99999999999E", "é", "1é"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_shown() {
        let shown = |bytes, text: &str| assert_eq!(size(bytes), text);
        shown(0, "0 B");
        shown(1023, "1023 B");
        shown(1536, "1.5 KiB");
        shown((1 << 20) - 1, "1.0 MiB");
        shown(240 << 20, "240 MiB");
        shown(u64::MAX, "16 EiB");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(count(2, "directory"), "2 directories");
        assert_eq!(
            (count(0, "batch"), count(3, "access")),
            ("0 batches".into(), "3 accesses".into())
        );
    }

    #[test]
    fn times_are_dates() {
        let at = |seconds| exact_time(Timestamp { seconds, nanos: 5 });
        assert_eq!(at(0), "1970-01-01T00:00:00.000000005Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000000005Z");
        assert_eq!(at(-1), "1969-12-31T23:59:59.000000005Z");
        assert_eq!(time(Timestamp { seconds: 4_102_444_800, nanos: 0 }), "2100-01-01 00:00Z");
        time(Timestamp { seconds: i64::MAX, nanos: 0 });
        time(Timestamp { seconds: i64::MIN, nanos: 0 });
    }

    #[test]
    fn modes_are_letters() {
        assert_eq!(mode(FileKind::Directory, 0o1777), "drwxrwxrwt");
        assert_eq!(mode(FileKind::File, 0o4755), "-rwsr-xr-x");
        assert_eq!(mode(FileKind::File, 0o6640), "-rwSr-S---");
    }

    #[test]
    fn names_cannot_drive_the_terminal() {
        assert_eq!(plain("a\x1b[2Jb\n"), "a\\u{1b}[2Jb\\n");
        assert_eq!(plain("Übung"), "Übung");
    }

    #[test]
    fn what_does_not_show_itself_is_escaped() {
        assert_eq!(plain("gpj\u{202e}exe.txt"), "gpj\\u{202e}exe.txt");
        let hidden = "\u{61c}\u{200b}\u{200e}\u{200f}\u{202a}\u{202e}\u{2066}\u{2069}\u{feff}\u{ad}\
                      \u{9b}\u{85}\u{2028}\u{2029}\u{e0001}\u{e007f}\u{fff9}\u{180e}\u{115f}\u{3164}";
        for c in hidden.chars() {
            let shown = plain(&format!("a{c}b"));
            assert!(shown.is_ascii() && shown.contains("\\u{"), "{shown}");
        }
        // Ordinary text, accents that stand alone included.
        let names =
            "café cafe\u{301} نام 名前\u{3000}一 a\u{a0}b 😀 Ελλάδα \"quoted\" it's back\\slash";
        assert_eq!(plain(names), names);
    }

    #[test]
    fn json_cannot_drive_the_terminal_either() -> Result<()> {
        let name = "a\u{9b}31m\u{202e}\u{e0041}\u{1b}\"\\ é 名";
        let text = harmless(&serde_json::to_string(&serde_json::json!({ name: [name] }))?);
        assert!(text.chars().all(shows_itself), "{text}");
        assert!(text.contains("\\u009b31m\\u202e\\udb40\\udc41"), "{text}");
        let back: serde_json::Value = serde_json::from_str(&text)?;
        assert_eq!(back[name][0], name);
        Ok(())
    }
}
