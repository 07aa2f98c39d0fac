//! Draws the storage's view, so that one look shows the difference.
//!
//! Panels are side by side. Time runs to the right, the place in the store upwards, with one dot
//! per access. [`draw`] makes a PNG, [`svg`] the same page as a small SVG.

mod canvas;
mod font;
mod layout;
mod panel;
mod svg;

use canvas::Canvas;
use layout::{Align, Item, Page};

pub use panel::{EXPOSED, HIDDEN, Panel};
pub use svg::svg;

/// The panels as a PNG of about 1600 by 800 pixels.
pub fn draw(panels: &[Panel]) -> Vec<u8> {
    let page = Page::of(panels, usize::MAX);
    let mut canvas = Canvas::new(page.width as usize, page.height as usize);
    for item in &page.items {
        paint(&mut canvas, item);
    }
    canvas.png()
}

fn paint(canvas: &mut Canvas, item: &Item) {
    match item {
        Item::Box { x, y, width, height, colour } => {
            canvas.fill(*x, *y, *width, *height, *colour);
        }
        Item::Dots { centres, radius, colour } => {
            // Many dots are drawn paler, so that density still shows.
            let strength = if centres.len() > 4000 { 0.55 } else { 0.85 };
            for &(x, y) in centres {
                canvas.dot(x, y, *radius, *colour, strength);
            }
        }
        Item::Text { x, y, size, align, upwards, colour, text } => {
            let width = font::width(text) * size.scale() as f32;
            let shift = match align {
                Align::Left => 0.0,
                Align::Right => width,
            };
            if *upwards {
                canvas.text_up(*x, y + shift, text, size.scale(), *colour);
            } else {
                canvas.text(x - shift, *y, text, size.scale(), *colour);
            }
        }
    }
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
    fn a_sample_is_a_png_of_the_right_size() {
        let panels = [plain(), oblivious()];
        let png = draw(&panels);
        if let Some(folder) = std::env::var_os("OBLIVIO_SAMPLE") {
            let folder = std::path::Path::new(&folder);
            std::fs::write(folder.join("audit-sample.png"), &png).unwrap();
            std::fs::write(folder.join("audit-sample.svg"), svg(&panels)).unwrap();
        }
        let reader = png::Decoder::new(std::io::Cursor::new(&png)).read_info().unwrap();
        assert_eq!((reader.info().width, reader.info().height), (1600, 800));
        assert!(png.len() < 200_000, "{}", png.len());
    }

    #[test]
    fn odd_panels_are_drawn_all_the_same() {
        let none = Panel::new("", "", Vec::new(), 0);
        let outside = Panel::new("t", "c", vec![(u64::MAX, u64::MAX)], 1).until(0);
        let deep = Trace {
            depth: 63,
            requests: vec![crate::Request {
                leaves: vec![(1 << 63) - 1, u64::MAX],
                depth: 63,
                ..crate::Request::default()
            }],
        };
        let deep = Panel::of_trace("é→\u{1F600}", &"long ".repeat(200), &deep);
        for panels in [&[][..], &[none, outside, deep]] {
            assert!(!draw(panels).is_empty());
            assert!(svg(panels).ends_with("</svg>\n"));
        }
    }

    #[test]
    fn leaves_of_a_growing_tree_share_a_scale() {
        let request =
            |leaf, depth| crate::Request { leaves: vec![leaf], depth, ..Default::default() };
        let trace = Trace { depth: 0, requests: vec![request(0, 0), request(1, 1), request(6, 3)] };
        let points = Panel::of_trace("", "", &trace).points;
        assert_eq!(points, [(0, 1 << 31), (1, 3 << 30), (2, 13 << 28)]);
    }
}
