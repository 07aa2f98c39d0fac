//! Plain plots of a few lines, as SVG.

use std::fmt::Write;

const WIDTH: f64 = 800.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 70.0;
const BOTTOM: f64 = 46.0;
const TOP: f64 = 58.0;
/// Names in a row of the legend.
const NAMES: usize = 4;
const COLOURS: [&str; 8] =
    ["#1f4e9c", "#c0392b", "#2e7d32", "#8e44ad", "#b9770e", "#16808f", "#5d6d7e", "#c2377f"];

/// One line: its name, and a height at each step.
pub struct Line {
    pub name: &'static str,
    pub heights: Vec<f64>,
}

/// One picture: lines over the same steps, from zero up.
pub struct Plot {
    pub title: &'static str,
    pub unit: &'static str,
    pub below: &'static str,
    pub lines: Vec<Line>,
}

/// The plots, one below the other.
pub fn svg(plots: &[Plot]) -> String {
    let height = HEIGHT * plots.len() as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"system-ui,Helvetica,Arial,sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    for (at, plot) in plots.iter().enumerate() {
        draw(&mut out, plot, HEIGHT * at as f64);
    }
    out.push_str("</svg>\n");
    out
}

fn draw(out: &mut String, plot: &Plot, top: f64) {
    let heights = || plot.lines.iter().flat_map(|line| &line.heights);
    let tick = tick(heights().copied().fold(0.0, f64::max));
    let most = tick * (heights().copied().fold(0.0, f64::max) / tick).ceil().max(1.0);
    let steps = plot.lines.iter().map(|line| line.heights.len()).max().unwrap_or(0);
    let (right, floor) = (WIDTH - 20.0, top + HEIGHT - BOTTOM);
    let x =
        |step: usize| LEFT + (right - LEFT) * step as f64 / steps.saturating_sub(1).max(1) as f64;
    let y = |value: f64| floor - (HEIGHT - BOTTOM - TOP) * value / most;
    // Writing to a string cannot fail.
    let mut text = |x: f64, y: f64, more: &str, text: &str| {
        let _ = writeln!(out, "<text x=\"{x:.0}\" y=\"{y:.0}\" {more}>{text}</text>");
    };
    text(LEFT, top + 18.0, "font-weight=\"600\"", &format!("{}, {}", plot.title, plot.unit));
    text((LEFT + right) / 2.0, floor + 34.0, "text-anchor=\"middle\"", plot.below);
    for (at, line) in plot.lines.iter().enumerate() {
        let colour = format!("fill=\"{}\"", COLOURS[at % COLOURS.len()]);
        let (column, row) = ((at % NAMES) as f64, (at / NAMES) as f64);
        text(LEFT + 170.0 * column, top + 34.0 + 16.0 * row, &colour, line.name);
    }
    let mut value = 0.0;
    while value <= most * 1.001 {
        text(LEFT - 6.0, y(value) + 4.0, "text-anchor=\"end\"", &number(value));
        value += tick;
    }
    for step in (0..steps).step_by((steps / 16).max(1)) {
        text(x(step), floor + 16.0, "text-anchor=\"middle\"", &step.to_string());
    }
    let _ = writeln!(
        out,
        "<path d=\"M{LEFT} {:.1}V{floor}H{right}\" fill=\"none\" stroke=\"#888\"/>",
        top + TOP
    );
    for (at, line) in plot.lines.iter().enumerate() {
        let mut path = String::new();
        for (step, value) in line.heights.iter().enumerate() {
            let letter = if step == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{letter}{:.1} {:.1}", x(step), y(*value));
        }
        let colour = COLOURS[at % COLOURS.len()];
        let _ = writeln!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"/>"
        );
    }
}

/// A round distance between marks, of which there are three to eight.
fn tick(most: f64) -> f64 {
    let power = 10f64.powf(most.max(1e-9).log10().floor());
    let fits = [0.2, 0.5, 1.0, 2.0].into_iter().map(|part| part * power);
    fits.into_iter().find(|tick| most / tick <= 8.0).unwrap_or(power)
}

fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round() {
        assert_eq!(
            [tick(7.0), tick(70.0), tick(1.9), tick(0.035)].map(number),
            ["1", "10", "0.5", "0.005"]
        );
        let lines = vec![Line { name: "a", heights: vec![0.0, 2.0, 1.0] }];
        let text = svg(&[Plot { title: "t", unit: "s", below: "step", lines }]);
        assert!(text.contains("<path d=\"M70.0 274.0L"), "{text}");
    }
}
