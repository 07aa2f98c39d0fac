//! The frame of a note: a few lines of text with a checksum. The first ones say what it is, of
//! which volume, and its number.

use oblivio_crypto::{VolumeId, digest, hex, unhex};
use oblivio_volume::notes::{NOTE_BYTES, Parsed};

/// A note with these further lines.
pub(super) fn framed(
    magic: &str,
    (volume, number): (VolumeId, u64),
    lines: &str,
) -> [u8; NOTE_BYTES] {
    let mut text = format!("{magic}\nvolume {volume}\nnote {number}\n{lines}");
    let sum = hex(&digest(text.as_bytes())[..16]);
    text.push_str(&format!("sum {sum}\n"));
    debug_assert!(text.len() <= NOTE_BYTES, "every field has a bound");
    let mut note = [b'\n'; NOTE_BYTES];
    note[..text.len()].copy_from_slice(text.as_bytes());
    note
}

/// The number of a note and its further lines; `None` for a torn one.
pub(super) fn unframed<'a>(
    magic: &str,
    volume: VolumeId,
    note: &'a [u8],
) -> Parsed<Option<(u64, LinesOfNote<'a>)>> {
    let parts = std::str::from_utf8(note).ok().and_then(|text| text.rsplit_once("sum "));
    let whole = |(body, sum): &(&str, &str)| sum.trim_end() == hex(&digest(body.as_bytes())[..16]);
    let Some((body, _)) = parts.filter(whole) else { return Ok(None) };
    let mut lines = LinesOfNote(body.lines());
    if lines.0.next() != Some(magic) {
        return Err("it is of a newer version");
    }
    let of = lines.field("volume").and_then(unhex).ok_or("it names no volume")?;
    if VolumeId(of) != volume {
        return Err("it is about another volume");
    }
    let number = lines.field("note").and_then(|number| number.parse().ok()).ok_or(WRONG_LINE)?;
    Ok(Some((number, lines)))
}

/// What is wrong with a line that does not parse.
pub(super) const WRONG_LINE: &str = "a line is not what it should be";

/// Lines that were not read yet.
pub(super) struct LinesOfNote<'a>(std::str::Lines<'a>);

impl<'a> LinesOfNote<'a> {
    /// The next line, if it has this name.
    pub fn field(&mut self, name: &str) -> Option<&'a str> {
        self.0.next()?.strip_prefix(name)?.strip_prefix(' ')
    }
}
