//! The page, drawn in the same way for both forms of the picture.

use super::panel::Panel;
use plotters::coord::Shift;
use plotters::prelude::*;

/// Width and height of the page.
pub(super) const SIZE: (u32, u32) = (1600, 800);
/// The name of the font: what SVG viewers understand by it is good enough.
const FONT: &str = "sans-serif";

/// A picture that could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("the picture cannot be drawn: {0}")]
pub struct Undrawn(String);

impl Undrawn {
    pub(super) fn of(error: impl std::fmt::Display) -> Undrawn {
        Undrawn(error.to_string())
    }
}

/// The page's colours, muted so that the dots stand out.
const INK: RGBColor = RGBColor(35, 38, 43);
const SOFT: RGBColor = RGBColor(105, 110, 118);
const GRID: RGBColor = RGBColor(228, 231, 235);
const AXIS: RGBColor = RGBColor(150, 155, 162);
const FIELD: RGBColor = RGBColor(250, 251, 252);

/// The parts into which the grid divides each axis.
const PARTS: f64 = 8.0;
/// The most lines of a caption.
const CAPTION_LINES: usize = 3;

type Area<B> = DrawingArea<B, Shift>;
type Drawn<B> = Result<(), DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>>;

/// Draws the panels side by side, with at most `most` dots in each. The area may be larger than the
/// page by a whole factor, `unit`.
pub(super) fn draw<B: DrawingBackend>(
    area: &Area<B>,
    panels: &[Panel],
    most: usize,
    unit: i32,
) -> Drawn<B> {
    area.fill(&WHITE)?;
    area.draw(&Text::new("What the storage sees", (80 * unit, 30 * unit), font(42, INK, unit)))?;
    let body = area.margin(100 * unit, 0, 20 * unit, 20 * unit);
    for (column, panel) in body.split_evenly((1, panels.len().max(1))).iter().zip(panels) {
        draw_panel(column, panel, most, unit)?;
    }
    area.present()
}

fn draw_panel<B: DrawingBackend>(
    column: &Area<B>,
    panel: &Panel,
    most: usize,
    unit: i32,
) -> Drawn<B> {
    let accent = RGBColor(panel.accent[0], panel.accent[1], panel.accent[2]);
    let left = 60 * unit;
    let mark = [(left, 6 * unit), (left + 16 * unit, 22 * unit)];
    column.draw(&Rectangle::new(mark, accent.filled()))?;
    column.draw(&Text::new(&*panel.title, (left + 28 * unit, 3 * unit), font(31, INK, unit)))?;
    let step = panel.points.len().div_ceil(most.max(1)).max(1);
    dots(column, panel, step, unit)?;
    let mut caption = panel.caption.clone();
    if step > 1 {
        let all = panel.points.len();
        caption.push_str(&format!(" (every {step}th of {all} accesses is drawn)"));
    }
    let style = font(28, INK, unit);
    let width = column.dim_in_pixel().0.saturating_sub(90 * unit.unsigned_abs());
    let fits = |line: &str| column.estimate_text_size(line, &style).is_ok_and(|(w, _)| w <= width);
    for (line, text) in (0..).zip(wrapped(&caption, fits)) {
        column.draw(&Text::new(text, (left, (608 + 33 * line) * unit), style.clone()))?;
    }
    Ok(())
}

/// The dots of a panel over their grid.
fn dots<B: DrawingBackend>(column: &Area<B>, panel: &Panel, step: usize, unit: i32) -> Drawn<B> {
    let mut chart = ChartBuilder::on(column)
        .margin_top(50 * unit)
        .margin_right(30 * unit)
        .margin_bottom(112 * unit)
        .x_label_area_size(30 * unit)
        .margin_left(28 * unit)
        .y_label_area_size(32 * unit)
        .build_cartesian_2d(0.0..PARTS, 0.0..PARTS)?;
    chart.plotting_area().fill(&FIELD)?;
    chart
        .configure_mesh()
        .max_light_lines(0)
        .bold_line_style(GRID.stroke_width(unit.unsigned_abs()))
        .axis_style(AXIS.stroke_width(2 * unit.unsigned_abs()))
        .x_labels(PARTS as usize + 1)
        .y_labels(PARTS as usize + 1)
        .x_label_formatter(&|_| String::new())
        .y_label_formatter(&|_| String::new())
        .set_all_tick_mark_size(0)
        .axis_desc_style(font(20, SOFT, unit))
        .x_desc("time →")
        .y_desc("place in the store →")
        .draw()?;
    let along = |value: u64, end: u64| {
        let part = (value as f64 + 0.5) / end.max(1) as f64;
        // A margin keeps the first and the last dot off the frame.
        PARTS * (0.015 + 0.97 * part.min(1.0))
    };
    let points = panel.points.iter().step_by(step);
    // Many dots are drawn smaller and paler, so that density still shows.
    let (radius, strength) = match points.len() {
        0..=1500 => (6, 0.85),
        1501..=6000 => (5, 0.75),
        _ => (3, 0.55),
    };
    let style = RGBColor(panel.accent[0], panel.accent[1], panel.accent[2]).mix(strength).filled();
    chart.draw_series(points.map(|&(time, place)| {
        let at = (along(time, panel.times), along(place, panel.places));
        Circle::new(at, radius * unit / 2, style)
    }))?;
    Ok(())
}

fn font(size: i32, colour: RGBColor, unit: i32) -> TextStyle<'static> {
    (FONT, size * unit).into_font().color(&colour)
}

/// Breaks a text between words into lines that fit. An overlong text ends in dots.
fn wrapped(text: &str, fits: impl Fn(&str) -> bool) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let full = lines.len() == CAPTION_LINES;
        match lines.last_mut() {
            Some(line) if fits(&format!("{line} {word}")) => {
                line.push(' ');
                line.push_str(word);
            }
            Some(line) if full => {
                line.push_str(" …");
                break;
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_and_cut() {
        let lines = wrapped("one two three four five six seven", |line| line.len() <= 9);
        assert_eq!(lines, ["one two", "three", "four five …"]);
        assert_eq!(wrapped("", |_| true), [""; 0]);
    }
}
