//! The layout of the page, for both forms of the picture.

use super::font;
use super::panel::Panel;

/// The page's colours, muted so that the dots stand out.
const INK: [u8; 3] = [35, 38, 43];
const SOFT: [u8; 3] = [105, 110, 118];
const GRID: [u8; 3] = [228, 231, 235];
const AXIS: [u8; 3] = [150, 155, 162];
const FIELD: [u8; 3] = [250, 251, 252];

const WIDTH: f32 = 1600.0;
const HEIGHT: f32 = 800.0;

/// The plots' upper and lower edge.
const TOP: f32 = 150.0;
const BOTTOM: f32 = 642.0;

/// The parts into which the grid divides each axis.
const PARTS: u32 = 8;

/// The most lines of a caption.
const CAPTION_LINES: usize = 3;

/// Sizes of text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Size {
    /// The page's heading.
    Heading,
    /// Panel titles.
    Title,
    /// Captions.
    Caption,
    /// Labels on the axes.
    Label,
}

impl Size {
    /// Width of a font pixel in drawn pixels.
    pub(super) fn scale(self) -> usize {
        match self {
            Size::Heading => 4,
            Size::Title | Size::Caption => 3,
            Size::Label => 2,
        }
    }
}

/// The end of a text at its position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Align {
    Left,
    Right,
}

/// An item to draw.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// A filled rectangle; thin ones are lines.
    Box { x: f32, y: f32, width: f32, height: f32, colour: [u8; 3] },
    /// Dots of one colour and size.
    Dots { centres: Vec<(f32, f32)>, radius: f32, colour: [u8; 3] },
    /// A line of text; `y` is its upper edge, or `x` when it runs upwards.
    Text { x: f32, y: f32, size: Size, align: Align, upwards: bool, colour: [u8; 3], text: String },
}

/// A page of panels.
pub(super) struct Page {
    pub(super) width: f32,
    pub(super) height: f32,
    pub(super) items: Vec<Item>,
}

/// A panel's plot.
struct Plot {
    x: f32,
    width: f32,
}

impl Page {
    /// Lays the panels out side by side, with at most `most` dots in each.
    pub(super) fn of(panels: &[Panel], most: usize) -> Page {
        let mut page = Page { width: WIDTH, height: HEIGHT, items: Vec::new() };
        page.text(80.0, 34.0, Size::Heading, INK, "What the storage sees");
        let column = (WIDTH - 40.0) / panels.len().max(1) as f32;
        for (i, panel) in panels.iter().enumerate() {
            let x = 20.0 + column * i as f32 + 60.0;
            page.panel(&Plot { x, width: (column - 90.0).max(20.0) }, panel, most);
        }
        page
    }

    fn panel(&mut self, plot: &Plot, panel: &Panel, most: usize) {
        let mark = 16.0;
        self.rectangle(plot.x, TOP - 43.0, mark, mark, panel.accent);
        let title = fitted(&panel.title, Size::Title, plot.width - 28.0, 1);
        self.text(plot.x + 28.0, TOP - 46.0, Size::Title, INK, &title.join(""));
        self.grid(plot);
        let step = panel.points.len().div_ceil(most.max(1)).max(1);
        self.dots(plot, panel, step);
        self.labels(plot);
        let mut caption = panel.caption.clone();
        if step > 1 {
            let all = panel.points.len();
            caption.push_str(&format!(" (every {step}th of {all} accesses is drawn)"));
        }
        let lines = fitted(&caption, Size::Caption, plot.width, CAPTION_LINES);
        for (i, line) in lines.iter().enumerate() {
            self.text(plot.x, BOTTOM + 54.0 + 32.0 * i as f32, Size::Caption, INK, line);
        }
    }

    fn grid(&mut self, plot: &Plot) {
        let height = BOTTOM - TOP;
        self.rectangle(plot.x, TOP, plot.width, height, FIELD);
        for i in 0..=PARTS {
            let at = i as f32 / PARTS as f32;
            self.rectangle(plot.x, TOP + height * at, plot.width, 1.0, GRID);
            self.rectangle(plot.x + plot.width * at, TOP, 1.0, height, GRID);
        }
        self.rectangle(plot.x, BOTTOM, plot.width, 2.0, AXIS);
        self.rectangle(plot.x - 2.0, TOP, 2.0, height + 2.0, AXIS);
    }

    fn dots(&mut self, plot: &Plot, panel: &Panel, step: usize) {
        // A margin keeps the first and the last dot off the frame.
        let (margin, height) = (6.0, BOTTOM - TOP - 12.0);
        let along = |value: u64, end: u64| ((value as f64 + 0.5) / end.max(1) as f64) as f32;
        let centre = |&(time, place): &(u64, u64)| {
            let x = along(time, panel.times).min(1.0) * (plot.width - 2.0 * margin);
            let y = along(place, panel.places).min(1.0) * height;
            (plot.x + margin + x, BOTTOM - margin - y)
        };
        let centres: Vec<_> = panel.points.iter().step_by(step).map(centre).collect();
        let radius = match centres.len() {
            0..=1500 => 3.2,
            1501..=6000 => 2.2,
            _ => 1.4,
        };
        self.items.push(Item::Dots { centres, radius, colour: panel.accent });
    }

    fn labels(&mut self, plot: &Plot) {
        let end = plot.x + plot.width;
        self.label(end, BOTTOM + 14.0, Align::Right, false, "time →");
        self.label(plot.x - 28.0, TOP, Align::Right, true, "place in the store →");
    }

    fn label(&mut self, x: f32, y: f32, align: Align, upwards: bool, text: &str) {
        let (size, colour, text) = (Size::Label, SOFT, text.into());
        self.items.push(Item::Text { x, y, size, align, upwards, colour, text });
    }

    fn text(&mut self, x: f32, y: f32, size: Size, colour: [u8; 3], text: &str) {
        let (align, upwards, text) = (Align::Left, false, text.into());
        self.items.push(Item::Text { x, y, size, align, upwards, colour, text });
    }

    fn rectangle(&mut self, x: f32, y: f32, width: f32, height: f32, colour: [u8; 3]) {
        self.items.push(Item::Box { x, y, width, height, colour });
    }
}

/// Breaks a text between words into lines that fit. An overlong text ends in dots.
fn fitted(text: &str, size: Size, width: f32, most: usize) -> Vec<String> {
    let fits = |line: &str| font::width(line) * size.scale() as f32 <= width;
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let full = lines.len() == most;
        let line = lines.last_mut().expect("there is always a line");
        let longer = if line.is_empty() { word.into() } else { format!("{line} {word}") };
        if fits(&longer) || line.is_empty() {
            *line = longer;
        } else if full {
            line.push_str(" ...");
            break;
        } else {
            lines.push(word.into());
        }
    }
    for line in &mut lines {
        while !fits(line) && line.pop().is_some() {}
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_and_cut() {
        let lines = fitted("one two three four five", Size::Label, 100.0, 2);
        assert_eq!(lines.len(), 2);
        assert!(lines[1].ends_with("..."), "{lines:?}");
        assert!(fitted(&"w".repeat(500), Size::Label, 100.0, 1)[0].len() < 20);
    }

    #[test]
    fn thinning_is_stated() {
        let points = (0..1000).map(|t| (t, t)).collect();
        let page = Page::of(&[Panel::new("t", "c", points, 1000)], 300);
        let said = page.items.iter().any(|item| match item {
            Item::Text { text, .. } => text.contains("every 4th of 1000 accesses"),
            _ => false,
        });
        assert!(said);
    }
}
