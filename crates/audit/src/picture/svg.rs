//! The picture as SVG: small, and sharp at any size.

use std::fmt::Write;

use super::layout::{Align, Item, Page, Size};
use super::panel::Panel;

/// The most dots of a panel. More would enlarge the file and show nothing more.
const MOST: usize = 3000;

/// The panels as an SVG of 1600 by 800. Panels with very many points are thinned evenly, and their
/// captions say so.
pub fn svg(panels: &[Panel]) -> String {
    let page = Page::of(panels, MOST);
    let (width, height) = (page.width, page.height);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"system-ui,Helvetica,Arial,sans-serif\">\n\
         <title>What the storage sees</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    for item in &page.items {
        item_to(&mut out, item);
    }
    out.push_str("</svg>\n");
    out
}

fn item_to(out: &mut String, item: &Item) {
    // Writing to a string cannot fail.
    let _ = match item {
        Item::Box { x, y, width, height, colour } => writeln!(
            out,
            "<rect x=\"{x:.0}\" y=\"{y:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
             fill=\"{}\"/>",
            hex(*colour)
        ),
        Item::Dots { centres, radius, colour } => {
            writeln!(
                out,
                "<path d=\"{}\" stroke=\"{}\" stroke-width=\"{}\" stroke-linecap=\"round\" \
                 stroke-opacity=\".8\" fill=\"none\"/>",
                dots(centres),
                hex(*colour),
                radius * 2.0
            )
        }
        Item::Text { x, y, size, align, upwards, colour, text } => {
            let pixels = 9.5 * size.scale() as f32;
            // SVG places text by its baseline.
            let base = 7.0 * size.scale() as f32;
            let place = if *upwards {
                format!("transform=\"translate({:.0} {y:.0}) rotate(-90)\"", x + base)
            } else {
                format!("x=\"{x:.0}\" y=\"{:.0}\"", y + base)
            };
            let weight = if matches!(size, Size::Heading | Size::Title) { "600" } else { "400" };
            let colour = hex(*colour);
            writeln!(
                out,
                "<text {place} font-size=\"{pixels}\" font-weight=\"{weight}\" \
                 text-anchor=\"{}\" fill=\"{colour}\">{}</text>",
                anchor(*align),
                escaped(text)
            )
        }
    };
}

/// All dots as one path: lines of zero length with round ends.
fn dots(centres: &[(f32, f32)]) -> String {
    let mut path = String::new();
    for (x, y) in centres {
        let _ = write!(path, "M{x:.0} {y:.0}h0");
    }
    path
}

fn anchor(align: Align) -> &'static str {
    match align {
        Align::Left => "start",
        Align::Right => "end",
    }
}

fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// The text with XML's own characters escaped, and without control characters, which XML cannot
/// represent.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().filter(|c| !c.is_control()) {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_points_stay_small() {
        let points = (0..200_000u64).map(|t| (t, t * 7919 % 65_536)).collect();
        let text = svg(&[Panel::new("a < b & c", "busy", points, 65_536)]);
        assert!(text.len() < 50_000, "{}", text.len());
        assert!(text.contains("every 67th of 200000 accesses"));
        assert!(text.contains("a &lt; b &amp; c"));
    }
}
