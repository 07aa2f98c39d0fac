//! Plain charts as SVG: lines, steps and bars, with axes labelled in units.

use std::fmt::Write as _;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 430.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 24.0;
/// Top of the plot when the legend has one line.
const TOP: f64 = 78.0;
/// Height of a line of the legend.
const LINE: f64 = 20.0;
/// Bars narrower than this have no room for their value.
const NARROW: f64 = 26.0;
const BOTTOM: f64 = 60.0;
/// Distinct without seeing red and green, and each with its own mark.
const COLOURS: [&str; 8] =
    ["#1f6fb2", "#d2691e", "#2e8b57", "#7b4fa3", "#555555", "#b8860b", "#c2377f", "#16808f"];

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
        let power = 10f64.powf((most / 4.0).log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|times| times * power);
        let step = step.into_iter().find(|step| most / step <= 5.0).unwrap_or(10.0 * power);
        let count = (most / step - 1e-9).ceil() as u32;
        let whole = |digits: i32| {
            let scaled = step * 10f64.powi(digits);
            (scaled - scaled.round()).abs() < 1e-6
        };
        let digits = (0..6).find(|&digits| whole(digits)).unwrap_or(6) as usize;
        let ticks = (0..=count).map(|at| {
            let value = f64::from(at) * step;
            (value, format!("{value:.digits$}"))
        });
        let ticks = ticks.collect();
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

    /// The position of a value between the ends.
    fn place(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.log { value.max(1e-12).log10() } else { value };
        ((scale(value) - scale(self.from)) / (scale(self.to) - scale(self.from))).clamp(0.0, 1.0)
    }
}

struct Series {
    name: String,
    look: Look,
    points: Vec<(f64, f64)>,
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

    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let (wide, high) = (WIDTH - LEFT - RIGHT, HEIGHT - self.top() - BOTTOM);
        (LEFT + self.x.place(x) * wide, HEIGHT - BOTTOM - self.y.place(y) * high)
    }

    /// The position of each series in the legend, and its line.
    fn legend(&self) -> Vec<(f64, usize)> {
        let (mut x, mut line) = (LEFT, 0);
        let place = |series: &Series| {
            let wide = 28.0 + width(&series.name);
            if x > LEFT && x + wide > WIDTH - RIGHT {
                (x, line) = (LEFT, line + 1);
            }
            let place = (x, line);
            x += wide + 20.0;
            place
        };
        self.series.iter().map(place).collect()
    }

    fn top(&self) -> f64 {
        TOP + LINE * self.legend().last().map_or(0, |(_, line)| *line) as f64
    }

    /// The picture as SVG.
    pub fn svg(&self) -> String {
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             width=\"{WIDTH}\" height=\"{HEIGHT}\" font-family=\"Helvetica, Arial, sans-serif\" \
             font-size=\"13\" fill=\"#222\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        );
        text(
            &mut out,
            (LEFT, 26.0),
            "start",
            " font-size=\"16\" font-weight=\"bold\"",
            &self.title,
        );
        self.axes(&mut out);
        let legend = self.legend().into_iter().map(|(x, line)| (x, 50.0 + LINE * line as f64));
        for ((index, series), (x, y)) in self.series.iter().enumerate().zip(legend) {
            let colour = COLOURS[index % COLOURS.len()];
            self.draw(&mut out, series, index, colour);
            key(&mut out, series.look, (x, y), index, colour);
            text(&mut out, (x + 28.0, y + 4.0), "start", "", &series.name);
        }
        out.push_str("</svg>\n");
        out
    }

    fn axes(&self, out: &mut String) {
        let (right, bottom, top) = (WIDTH - RIGHT, HEIGHT - BOTTOM, self.top());
        for (value, name) in &self.y.ticks {
            let (_, y) = self.at((self.x.from, *value));
            let _ = writeln!(
                out,
                "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#e4e4e4\" fill=\"none\"/>"
            );
            text(out, (LEFT - 8.0, y + 4.5), "end", "", name);
        }
        for (value, name) in &self.x.ticks {
            let (x, _) = self.at((*value, self.y.from));
            let _ = writeln!(out, "<path d=\"M{x:.1} {bottom}v5\" stroke=\"#222\" fill=\"none\"/>");
            text(out, (x, bottom + 20.0), "middle", "", name);
        }
        let _ = writeln!(
            out,
            "<path d=\"M{LEFT} {top}V{bottom}H{right}\" stroke=\"#222\" fill=\"none\"/>"
        );
        let middle = (LEFT + right) / 2.0;
        text(out, (middle, HEIGHT - 14.0), "middle", "", &self.x.label);
        let (x, y) = (20.0, (top + bottom) / 2.0);
        let turn = format!(" transform=\"rotate(-90 {x} {y})\"");
        text(out, (x, y), "middle", &turn, &self.y.label);
    }

    fn draw(&self, out: &mut String, series: &Series, index: usize, colour: &str) {
        if series.look == Look::Bar {
            return self.bars(out, series, index, colour);
        }
        let mut line = String::new();
        let mut before: Option<f64> = None;
        for &point in &series.points {
            let (x, y) = self.at(point);
            let _ = match (before, series.look) {
                (None, _) => write!(line, "M{x:.1} {y:.1}"),
                (Some(_), Look::Step | Look::DashedStep) => write!(line, "H{x:.1}V{y:.1}"),
                (Some(_), _) => write!(line, "L{x:.1} {y:.1}"),
            };
            before = Some(y);
        }
        let dash = dash(series.look);
        let _ = writeln!(
            out,
            "<path d=\"{line}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>"
        );
        if series.look == Look::Marked {
            for &point in &series.points {
                mark(out, self.at(point), index, colour);
            }
        }
    }

    fn bars(&self, out: &mut String, series: &Series, index: usize, colour: &str) {
        let count = self.series.iter().filter(|other| other.look == Look::Bar).count() as f64;
        let slot = (WIDTH - LEFT - RIGHT) / self.x.ticks.len().max(1) as f64;
        let wide = (slot * 0.76 / count).min(90.0);
        for &(x, y) in &series.points {
            let (middle, top) = self.at((x, y));
            let left = middle + (index as f64 - count / 2.0) * wide;
            let _ = writeln!(
                out,
                "<rect x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
                left + 1.0,
                wide - 2.0,
                (HEIGHT - BOTTOM - top).max(0.0)
            );
            if wide < NARROW {
                continue;
            }
            let digits = if y >= 100.0 || y.fract() == 0.0 { 0 } else { 1 + usize::from(y < 10.0) };
            let value = format!("{y:.digits$}");
            text(out, (left + wide / 2.0, top - 5.0), "middle", " font-size=\"12\"", &value);
        }
    }
}

/// Approximate width of a name.
fn width(name: &str) -> f64 {
    name.chars().map(|letter| if letter.is_uppercase() { 9.5 } else { 6.7 }).sum()
}

/// Draws the sample of a series in the legend.
fn key(out: &mut String, look: Look, (x, y): (f64, f64), index: usize, colour: &str) {
    if look == Look::Bar {
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"20\" height=\"11\" fill=\"{colour}\"/>",
            y - 6.0
        );
        return;
    }
    let dash = dash(look);
    let _ =
        writeln!(out, "<path d=\"M{x:.1} {y}h22\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>");
    if look == Look::Marked {
        mark(out, (x + 11.0, y), index, colour);
    }
}

fn dash(look: Look) -> &'static str {
    match look {
        Look::Dashed | Look::DashedStep => " stroke-dasharray=\"6 4\"",
        _ => "",
    }
}

fn mark(out: &mut String, (x, y): (f64, f64), index: usize, colour: &str) {
    let _ = match index % 4 {
        0 => writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\"/>"),
        1 => writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"8\" height=\"8\" fill=\"{colour}\"/>",
            x - 4.0,
            y - 4.0
        ),
        2 => writeln!(out, "<path d=\"M{x:.1} {:.1}l5 9h-10z\" fill=\"{colour}\"/>", y - 6.0),
        _ => writeln!(out, "<path d=\"M{x:.1} {:.1}l5 5l-5 5l-5-5z\" fill=\"{colour}\"/>", y - 5.0),
    };
}

fn text(out: &mut String, (x, y): (f64, f64), anchor: &str, more: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{more}>{words}</text>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        assert_eq!(Axis::linear("", 93.0).to, 100.0);
        assert_eq!(Axis::linear("", 0.66).to, 0.8);
        assert_eq!(Axis::linear("", 1.2).ticks[1].1, "0.25");
        assert_eq!(Axis::linear("", 0.0).to, 1.0);
        let log = Axis::log("", [0.1, 100.0].map(|tick| (tick, String::new())));
        assert!((log.place(1.0) - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_long_legend_has_lines() {
        let mut chart = Chart::new("", Axis::names("", ["one"]), Axis::linear("", 1.0));
        for _ in 0..6 {
            chart.add("a name that is long enough", Look::Bar, [(0.0, 1.0)]);
        }
        let lines: Vec<usize> = chart.legend().into_iter().map(|(_, line)| line).collect();
        assert_eq!(lines, [0, 0, 0, 1, 1, 1]);
        assert_eq!(chart.top(), TOP + LINE);
    }

    #[test]
    fn words_cannot_break_the_picture() {
        let mut chart = Chart::new("a < b & c", Axis::names("x", ["one"]), Axis::linear("y", 1.0));
        chart.add("bars", Look::Bar, [(0.0, 0.5)]);
        let svg = chart.svg();
        assert!(svg.contains("a &lt; b &amp; c") && svg.ends_with("</svg>\n"));
    }
}
