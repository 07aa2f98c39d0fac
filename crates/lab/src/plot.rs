//! Plain charts as SVG: lines, steps and bars, with axes labelled in units.

use anyhow::Result;
use oblivio_audit::picture::letters;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::ops::Range;

const WIDTH: u32 = 760;
const HEIGHT: u32 = 430;
/// Where the plot, its title and its legend begin.
const LEFT: i32 = 78;
const RIGHT: i32 = 24;
/// Top of the plot when the legend has one line.
const TOP: i32 = 78;
/// Height of a line of the legend.
const LINE: i32 = 20;
/// Most bars that have room for their values.
const MOST_VALUES: usize = 24;
const INK: RGBColor = RGBColor(34, 34, 34);
const GRID: RGBColor = RGBColor(228, 228, 228);
/// Distinct without seeing red and green, and each with its own mark.
const COLOURS: [u32; 8] =
    [0x1f6fb2, 0xd2691e, 0x2e8b57, 0x7b4fa3, 0x555555, 0xb8860b, 0xc2377f, 0x16808f];
/// The marks' corners.
const MARKS: [&[(i32, i32)]; 4] = [
    &[(-2, -4), (2, -4), (4, -2), (4, 2), (2, 4), (-2, 4), (-4, 2), (-4, -2)],
    &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
    &[(0, -6), (5, 3), (-5, 3)],
    &[(0, -5), (5, 0), (0, 5), (-5, 0)],
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Plot<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Axis, Axis>>;

/// The style of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A line.
    Line,
    /// A dashed line.
    Dashed,
    /// A line with a mark at each point.
    Marked,
    /// A value that holds until the next point.
    Step,
    /// The same, dashed.
    DashedStep,
    /// A bar at each point, beside those of other series.
    Bar,
}

/// One of the two axes.
#[derive(Clone, Debug)]
pub struct Axis {
    label: String,
    ticks: Vec<(f64, String)>,
    log: bool,
    from: f64,
    to: f64,
}

impl Axis {
    /// An axis from zero to the next round number above `most`.
    pub fn linear(label: &str, most: f64) -> Self {
        let most = if most > 0.0 { most } else { 1.0 };
        let step = RangedCoordf64::from(0.0..most).key_points(6).get(1).copied().unwrap_or(most);
        let count = (most / step - 1e-9).ceil() as u32;
        let values = (0..=count).map(|at| (f64::from(at) * step * 1e6).round() / 1e6);
        let ticks = values.map(|value| (value, value.to_string())).collect();
        Self { label: label.into(), ticks, log: false, from: 0.0, to: f64::from(count) * step }
    }

    /// A logarithmic axis with these ticks, from the first to the last.
    pub fn log(label: &str, ticks: impl IntoIterator<Item = (f64, String)>) -> Self {
        let ticks: Vec<_> = ticks.into_iter().collect();
        let (from, to) = match (ticks.first(), ticks.last()) {
            (Some(first), Some(last)) => (first.0, last.0),
            _ => (1.0, 10.0),
        };
        Self { label: label.into(), ticks, log: true, from, to }
    }

    /// An axis of names, at 0, 1, 2 and so on.
    pub fn names<S: Into<String>>(label: &str, names: impl IntoIterator<Item = S>) -> Self {
        let names = names.into_iter().enumerate();
        let ticks: Vec<_> = names.map(|(at, name)| (at as f64, name.into())).collect();
        let to = ticks.len() as f64 - 0.5;
        Self { label: label.into(), ticks, log: false, from: -0.5, to }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let scale = |value: f64| if self.log { value.max(1e-12).log10() } else { value };
        let part = (scale(*value) - scale(self.from)) / (scale(self.to) - scale(self.from));
        from + (part.clamp(0.0, 1.0) * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.iter().map(|(value, _)| *value).collect()
    }

    fn range(&self) -> Range<f64> {
        self.from..self.to
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        let tick = self.ticks.iter().find(|(tick, _)| tick == value);
        tick.map_or_else(String::new, |(_, name)| name.clone())
    }
}

struct Series {
    name: String,
    look: Look,
    points: Vec<(f64, f64)>,
}

impl Series {
    /// The corners of its line.
    fn corners(&self) -> Vec<(f64, f64)> {
        if !matches!(self.look, Look::Step | Look::DashedStep) {
            return self.points.clone();
        }
        let pairs = self.points.iter().zip(self.points.iter().skip(1));
        let corners = pairs.flat_map(|(one, next)| [*one, (next.0, one.1)]);
        corners.chain(self.points.last().copied()).collect()
    }
}

/// A chart.
pub struct Chart {
    title: String,
    x: Axis,
    y: Axis,
    series: Vec<Series>,
}

impl Chart {
    /// An empty chart; the title says what it shows.
    pub fn new(title: &str, x: Axis, y: Axis) -> Self {
        Self { title: title.into(), x, y, series: Vec::new() }
    }

    /// Adds a series.
    pub fn add(&mut self, name: &str, look: Look, points: impl IntoIterator<Item = (f64, f64)>) {
        self.series.push(Series { name: name.into(), look, points: points.into_iter().collect() });
    }

    /// The chart's title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The picture as SVG.
    pub fn svg(&self) -> Result<String> {
        letters()?;
        let mut out = String::new();
        {
            let area = SVGBackend::with_string(&mut out, (WIDTH, HEIGHT)).into_drawing_area();
            area.fill(&WHITE)?;
            let title = font(20).style(FontStyle::Bold);
            area.draw(&Text::new(self.title.as_str(), (LEFT, 12), title))?;
            let top = TOP + LINE * self.legend(&area)?;
            self.plot(&area, top)?;
            area.present()?;
        }
        Ok(out)
    }

    /// Draws the legend in as many lines as it needs, and says how many more than one those are.
    fn legend(&self, area: &Area) -> Result<i32> {
        let (mut x, mut line) = (LEFT, 0);
        for (index, series) in self.series.iter().enumerate() {
            let wide = 28 + area.estimate_text_size(&series.name, &font(16).into())?.0 as i32;
            if x > LEFT && x + wide > WIDTH as i32 - RIGHT {
                (x, line) = (LEFT, line + 1);
            }
            let y = 50 + LINE * line;
            let colour = colour(index);
            if series.look == Look::Bar {
                area.draw(&Rectangle::new([(x, y - 6), (x + 20, y + 5)], colour.filled()))?;
            } else {
                let ends = vec![(x, y), (x + 22, y)];
                area.draw(&stroke(ends, series.look, colour))?;
            }
            if series.look == Look::Marked {
                area.draw(&(EmptyElement::at((x + 11, y)) + mark(index)))?;
            }
            let name = font(16).into_text_style(area).pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(series.name.as_str(), (x + 28, y), name))?;
            x += wide + 20;
        }
        Ok(line)
    }

    fn plot(&self, area: &Area, top: i32) -> Result<()> {
        let mut plot = ChartBuilder::on(area)
            .margin_top(top)
            .margin_right(RIGHT)
            .margin_bottom(10)
            .margin_left(10)
            .x_label_area_size(50)
            .y_label_area_size(LEFT - 10)
            .build_cartesian_2d(self.x.clone(), self.y.clone())?;
        plot.configure_mesh()
            .disable_x_mesh()
            .max_light_lines(0)
            .bold_line_style(GRID)
            .axis_style(INK)
            .label_style(font(16))
            .axis_desc_style(font(16))
            .x_desc(self.x.label.as_str())
            .y_desc(self.y.label.as_str())
            .draw()?;
        for (index, series) in self.series.iter().enumerate() {
            if series.look == Look::Bar {
                self.bars(&mut plot, series, index)?;
                continue;
            }
            plot.draw_series([stroke(series.corners(), series.look, colour(index))])?;
            if series.look == Look::Marked {
                let points = series.points.iter();
                plot.draw_series(points.map(|&point| EmptyElement::at(point) + mark(index)))?;
            }
        }
        Ok(())
    }

    fn bars(&self, plot: &mut Plot, series: &Series, index: usize) -> Result<()> {
        let count = self.series.iter().filter(|other| other.look == Look::Bar).count();
        let wide = 0.76 / count as f64;
        let left = |x: f64| x + (index as f64 - count as f64 / 2.0) * wide;
        plot.draw_series(series.points.iter().map(|&(x, y)| {
            let corners = [(left(x) + 0.04 * wide, self.y.from), (left(x) + 0.96 * wide, y)];
            Rectangle::new(corners, colour(index).filled())
        }))?;
        if count * self.x.ticks.len() > MOST_VALUES {
            return Ok(());
        }
        let style = font(15).color(&INK).pos(Pos::new(HPos::Center, VPos::Bottom));
        plot.draw_series(series.points.iter().map(|&(x, y)| {
            let digits = if y >= 100.0 || y.fract() == 0.0 { 0 } else { 1 + usize::from(y < 10.0) };
            Text::new(format!("{y:.digits$}"), (left(x) + wide / 2.0, y), style.clone())
        }))?;
        Ok(())
    }
}

fn colour(index: usize) -> RGBColor {
    let [_, red, green, blue] = COLOURS[index % COLOURS.len()].to_be_bytes();
    RGBColor(red, green, blue)
}

fn font(size: i32) -> FontDesc<'static> {
    ("sans-serif", size).into_font()
}

/// A line through these points, dashed for some looks.
fn stroke<'b, C: Clone + 'static>(
    points: Vec<C>,
    look: Look,
    colour: RGBColor,
) -> DynElement<'static, SVGBackend<'b>, C> {
    let style = colour.stroke_width(2);
    match look {
        Look::Dashed | Look::DashedStep => DashedPathElement::new(points, 6, 4, style).into_dyn(),
        _ => PathElement::new(points, style).into_dyn(),
    }
}

/// A series' mark, which another series has in another shape.
fn mark(index: usize) -> Polygon<(i32, i32)> {
    Polygon::new(MARKS[index % MARKS.len()], colour(index).filled())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!(Axis::linear("", 93.0).to, 100.0);
        assert_eq!(Axis::linear("", 0.66).to, 0.8);
        assert_eq!(Axis::linear("", 1.2).ticks[1].1, "0.5");
        assert_eq!(Axis::linear("", 0.0).to, 1.0);
        let log = Axis::log("", [0.1, 100.0].map(|tick| (tick, String::new())));
        assert_eq!(log.map(&1.0, (0, 300)), 100);
    }

    #[test]
    fn a_long_legend_has_lines() -> Result<()> {
        letters()?;
        let mut chart = Chart::new("", Axis::names("", ["one"]), Axis::linear("", 1.0));
        for _ in 0..6 {
            chart.add("a name that is long enough", Look::Bar, [(0.0, 1.0)]);
        }
        let mut out = String::new();
        let area = SVGBackend::with_string(&mut out, (WIDTH, HEIGHT)).into_drawing_area();
        // Two names in each of three lines.
        assert_eq!(chart.legend(&area)?, 2);
        Ok(())
    }

    #[test]
    fn words_cannot_break_the_picture() -> Result<()> {
        let mut chart = Chart::new("a < b & c", Axis::names("x", ["one"]), Axis::linear("y", 1.0));
        chart.add("bars", Look::Bar, [(0.0, 0.5)]);
        let svg = chart.svg()?;
        assert!(svg.contains("a &lt; b &amp; c") && svg.ends_with("</svg>\n"));
        Ok(())
    }
}
