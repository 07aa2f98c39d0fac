//! An access as the circuit does it: what moves in each cycle, drawn.

use super::bench::{Ask, Bench, Said};
use super::scheme::scheme;
use super::shape::Shape;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::Path;

/// The bits of a cycle in the order of the bench, with their names and colours.
const SIGNALS: [(&str, &str); 7] = [
    ("request", "#333"),
    ("word_out", "#333"),
    ("word_in", "#333"),
    ("command, read", "#3a6ea5"),
    ("command, write", "#b5651d"),
    ("read data", "#3a6ea5"),
    ("write data", "#b5651d"),
];
/// Pixels.
const CYCLE: u64 = 3;
const ROW: usize = 30;
const LEFT: u64 = 130;
const TOP: usize = 40;

/// Draws a read and a write of a block in a tree of four levels.
///
/// # Errors
/// Those of the bench and of the file.
pub fn run(write: bool) -> Result<()> {
    // A small stash, so that looking through it takes no longer than in a tree of many levels.
    let shape = Shape { stash: 48, ..scheme("PI_X8", 3, 16).context("a scheme of the paper")? };
    let bench = Bench::build(&shape, 2, 10)?;
    let asks = [Ask::Read(5), Ask::Write(6, [1; 64])];
    let mut cycles = Vec::new();
    for said in bench.run(&asks, 0, 1, &["+wave"])? {
        if let Said::Wave(_, bits) = said? {
            cycles.push(bits);
        }
    }
    // From the first request to the second one's.
    let requests: Vec<usize> = (0..cycles.len()).filter(|&at| cycles[at] & 1 == 1).collect();
    let first = *requests.first().context("a request")?;
    let picture = draw(&cycles[first.saturating_sub(4)..]);
    if write {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures");
        std::fs::write(docs.join("hardware-timing.svg"), picture)?;
    } else {
        print!("{picture}");
    }
    Ok(())
}

fn draw(cycles: &[u64]) -> String {
    let width = LEFT + CYCLE * cycles.len() as u64 + 20;
    let height = TOP + ROW * SIGNALS.len() + 40;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"{width}\" \
         height=\"{height}\" fill=\"#fff\"/>\n<text x=\"{LEFT}\" y=\"20\">A read and a write, each of \
         a path of four levels, with MACs, at 128 bits a cycle; a bar is a cycle in which something \
         moves</text>\n"
    );
    for (row, (name, colour)) in SIGNALS.iter().enumerate() {
        let base = TOP + ROW * (row + 1) - 6;
        let _ = writeln!(svg, "<text x=\"8\" y=\"{base}\">{name}</text>");
        let end = LEFT + CYCLE * cycles.len() as u64;
        let _ = writeln!(svg, "<path d=\"M{LEFT},{base} H{end}\" stroke=\"#bbb\"/>");
        for (from, to) in runs(cycles, row) {
            let (x, wide) = (LEFT + CYCLE * from, CYCLE * (to - from));
            let y = base - 18;
            let _ = writeln!(
                svg,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"18\" fill=\"{colour}\"/>"
            );
        }
    }
    let base = TOP + ROW * SIGNALS.len() + 22;
    for cycle in (0..cycles.len() as u64).step_by(50) {
        let x = LEFT + CYCLE * cycle;
        let _ = writeln!(svg, "<path d=\"M{x},{TOP} V{}\" stroke=\"#eee\"/>", base - 14);
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"{base}\" fill=\"#555\">{cycle}</text>");
    }
    svg.push_str("</svg>\n");
    svg
}

/// The ranges of cycles with this bit.
fn runs(cycles: &[u64], bit: usize) -> Vec<(u64, u64)> {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for (at, _) in cycles.iter().enumerate().filter(|(_, bits)| **bits >> bit & 1 == 1) {
        let at = at as u64;
        match found.last_mut() {
            Some((_, end)) if *end == at => *end += 1,
            _ => found.push((at, at + 1)),
        }
    }
    found
}
