//! Draws the storage's view, so that one look shows the difference.
//!
//! Panels are side by side. Time runs to the right, the place in the store upwards, with one dot
//! per access. [`svg`] makes a small SVG. With the feature `png`, `png` makes the same page of
//! pixels.

#[cfg(feature = "png")]
mod bitmap;
mod page;
mod panel;

use plotters::prelude::*;

#[cfg(feature = "png")]
pub use bitmap::{letters, png};
pub use page::Undrawn;
pub use panel::{EXPOSED, HIDDEN, Panel};

/// The most dots of a panel in an SVG. More would enlarge the file and show nothing more.
const MOST: usize = 1500;

/// The panels as an SVG of 1600 by 800. Panels with very many points are thinned evenly, and their
/// captions say so.
///
/// # Errors
/// None that are expected: it is drawn in memory.
pub fn svg(panels: &[Panel]) -> Result<String, Undrawn> {
    // Words are as wide as its letters; without them their width is estimated.
    #[cfg(feature = "png")]
    letters()?;
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, page::SIZE).into_drawing_area();
        page::draw(&area, panels, MOST, 1).map_err(Undrawn::of)?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted::{SplitMix64, Workload, honest_trace};
    use crate::trace::Trace;

    /// One file of 40 opened 30 times, between openings of the others.
    fn plain() -> Panel {
        let mut rng = SplitMix64::new(7);
        let (mut points, mut t) = (Vec::new(), 0);
        for opening in 0..60 {
            let file = if opening % 2 == 0 { 23 } else { rng.below(40) };
            let first = file * 100 + 10;
            for block in 0..12 {
                points.push((t, first + block * 5));
                t += 1;
            }
        }
        let caption = "1 file of 40 opened 30 times: visible";
        Panel::new("Plain encryption", caption, points, 4000)
    }

    fn oblivious() -> Panel {
        let caption = "uniform, whatever was opened";
        Panel::of_trace("Oblivio", caption, &honest_trace(Workload::OneBlock, 720, 5))
    }

    /// Set OBLIVIO_SAMPLE to a folder to look at the pictures.
    #[test]
    #[cfg(feature = "png")]
    fn a_sample_is_a_png_of_the_right_size() {
        let panels = [plain(), oblivious()];
        let bytes = png(&panels).unwrap();
        if let Some(folder) = std::env::var_os("OBLIVIO_SAMPLE") {
            let folder = std::path::Path::new(&folder);
            std::fs::write(folder.join("audit-sample.png"), &bytes).unwrap();
            std::fs::write(folder.join("audit-sample.svg"), svg(&panels).unwrap()).unwrap();
        }
        let reader = ::png::Decoder::new(std::io::Cursor::new(&bytes)).read_info().unwrap();
        assert_eq!((reader.info().width, reader.info().height), (1600, 800));
        assert!(bytes.len() < 200_000, "{}", bytes.len());
    }

    #[test]
    fn odd_panels_are_drawn_all_the_same() {
        let none = Panel::new("", "", Vec::new(), 0);
        let outside = Panel::new("t", "c", vec![(u64::MAX, u64::MAX)], 1).until(0);
        let deep = Trace {
            depth: 63,
            requests: vec![crate::TraceRequest {
                leaves: vec![(1 << 63) - 1, u64::MAX],
                depth: 63,
                ..crate::TraceRequest::default()
            }],
        };
        let deep = Panel::of_trace("é→\u{1F600}", &"long ".repeat(200), &deep);
        for panels in [&[][..], &[none, outside, deep]] {
            #[cfg(feature = "png")]
            assert!(!png(panels).unwrap().is_empty());
            assert!(svg(panels).unwrap().ends_with("</svg>\n"));
        }
    }

    #[test]
    fn many_points_stay_small_and_words_harmless() {
        let points = (0..200_000u64).map(|t| (t, t * 7919 % 65_536)).collect();
        let text = svg(&[Panel::new("a < b & c", "busy\u{1}", points, 65_536)]).unwrap();
        assert!(text.len() < 200_000, "{}", text.len());
        assert!(text.contains("busy (every 134th of 200000"), "{text:.3000}");
        assert!(text.contains("a &lt; b &amp; c"));
    }

    #[test]
    fn leaves_of_a_growing_tree_share_a_scale() {
        let request =
            |leaf, depth| crate::TraceRequest { leaves: vec![leaf], depth, ..Default::default() };
        let trace = Trace { depth: 0, requests: vec![request(0, 0), request(1, 1), request(6, 3)] };
        let points = Panel::of_trace("", "", &trace).points;
        assert_eq!(points, [(0, 1 << 31), (1, 3 << 30), (2, 13 << 28)]);
    }
}
