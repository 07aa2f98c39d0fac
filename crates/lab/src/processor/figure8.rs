//! Blocks of 64 and of 128 bytes beside the Recursive ORAM before, on its machine (Figure 8).

use super::frames::Mapping;
use super::machine::Machine;
use super::pairs::{Args, Pair};
use super::paper::PAGE;
use super::replay::{Insecure, Secure, geomean};
use super::scheme::{LEVELS, LINES, Scheme};
use crate::papers;
use crate::report::{Report, Table};
use anyhow::Result;
use oblivio_engine::tree::TreeConfig;

const MACHINE: Machine = Machine::RECURSIVE;
const WIDE_BYTES: usize = 128;
/// Lines of 64 bytes in a bucket of three blocks of 128, of 64 and of 32 bytes, and one header.
const WIDE_BUCKET: u64 = 7;
const BUCKET: u64 = 4;
const MAP_BUCKET: u64 = 2;

/// The scheme to beat, and those with a PLB and blocks of 128 and of 64 bytes.
struct Schemes {
    recursive: Scheme,
    wide: Scheme,
    narrow: Scheme,
}

/// What one program has under one mapping. Times are over that of a machine without ORAM, with
/// lines of 128 bytes.
struct Row {
    program: String,
    recursive: f64,
    wide: f64,
    narrow: f64,
    wide_paths: f64,
    narrow_paths: f64,
    /// Lines that are moved for the map, and all lines, by access, with blocks of 128 bytes.
    map_lines: f64,
    lines: f64,
}

/// Runs the experiment.
///
/// # Errors
/// There are no traces; the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let pairs = args.find()?;
    let schemes = Schemes::new();
    let mut report = Report::on(PAGE, "figure8", "Beside the Recursive ORAM before (Figure 8)");
    introduce(&mut report, &args.describe(&pairs), &schemes);
    for mapping in Mapping::ALL {
        let rows = pairs.iter().map(|pair| schemes.measure(args, pair, mapping));
        let rows: Vec<Row> = rows.collect::<Result<_>>()?;
        report.text(&format!("**{}**", mapping.name()));
        report.table(&table(&rows));
        conclude(&mut report, &schemes, &rows);
    }
    report.finish(write)
}

impl Schemes {
    fn new() -> Self {
        let wide = LEVELS - 1;
        // H = 4: a tree for the data, and three with blocks of 32 bytes.
        let maps = [wide - 3, wide - 6, wide - 9].map(|levels| (levels, MAP_BUCKET));
        let recursive = [(wide, WIDE_BUCKET)].into_iter().chain(maps).collect();
        let narrow = papers::pc_x32(64, LINES);
        let narrow = TreeConfig { on_chip_bytes: narrow.on_chip_bytes - 1, ..narrow };
        let x64 = papers::pc_x32(WIDE_BYTES, LINES / 2);
        Self {
            recursive: Scheme::of("R_X8", None, recursive),
            wide: Scheme::of("PC_X64", Some(x64), vec![(wide, WIDE_BUCKET)]),
            narrow: Scheme::of("PC_X32", Some(narrow), vec![(LEVELS, BUCKET)]),
        }
    }

    fn measure(&self, args: &Args, pair: &Pair, mapping: Mapping) -> Result<Row> {
        let secure = |it: &Scheme| Secure::new(it, it.path_cycles(MACHINE), args.replay.exclusive);
        let mut insecure = Insecure::new(MACHINE, WIDE_BYTES as u32);
        let (mut recursive, mut wide) = (secure(&self.recursive), secure(&self.wide));
        let mut narrow = secure(&self.narrow);
        pair.each(
            args,
            mapping,
            |record| narrow.take(record),
            |record| {
                insecure.take(record);
                recursive.take(record);
                wide.take(record);
            },
        )?;
        let (path_lines, _) = self.wide.path_lines();
        let paths = wide.paths_per_access();
        Ok(Row {
            program: pair.program().to_owned(),
            recursive: recursive.cycles / insecure.cycles,
            wide: wide.cycles / insecure.cycles,
            narrow: narrow.cycles / insecure.cycles,
            wide_paths: paths,
            narrow_paths: narrow.paths_per_access(),
            map_lines: (paths - 1.0) * path_lines as f64,
            lines: paths * path_lines as f64,
        })
    }
}

fn introduce(report: &mut Report, replayed: &str, schemes: &Schemes) {
    let Schemes { recursive, wide, narrow } = schemes;
    let costs = [recursive, wide, narrow]
        .map(|it| format!("{} {:.0}", it.name, it.path_cycles(MACHINE)))
        .join(", ");
    report.text(&format!(
        "The machine of the Recursive ORAM before (the paper's reference 26): {} memory channels, a \
         processor of 2.6 GHz, three blocks in a bucket. R_X8 and PC_X64 have lines and blocks of 128 \
         bytes, PC_X32 of 64. Buckets have {WIDE_BUCKET} lines of 64 bytes, {BUCKET} with blocks of \
         64 bytes, and {MAP_BUCKET} in the three trees of R_X8's map: our reading of the paper. \
         Time of each program divided by that without ORAM and with lines of 128 bytes; in brackets \
         paths for an access. {replayed} Cycles of a path, read and written, with the controller's \
         (R_X8: of all four trees): {costs}.",
        MACHINE.channels
    ));
}

fn table(rows: &[Row]) -> Table {
    let head = ["program", "R_X8", "PC_X64", "PC_X32", "PC_X64 over R_X8", "PC_X32 over R_X8"];
    let mut table = Table::new(head.into_iter().chain(["ahead"]));
    for row in rows {
        table.row([
            row.program.clone(),
            format!("{:.2}", row.recursive),
            format!("{:.2} ({:.2})", row.wide, row.wide_paths),
            format!("{:.2} ({:.2})", row.narrow, row.narrow_paths),
            format!("{:.2}", row.recursive / row.wide),
            format!("{:.2}", row.recursive / row.narrow),
            if row.wide < row.narrow { "PC_X64" } else { "PC_X32" }.to_owned(),
        ]);
    }
    let mean = |of: &dyn Fn(&Row) -> f64| format!("{:.2}", mean(rows, of));
    table.row([
        "geometric mean".to_owned(),
        mean(&|row| row.recursive),
        mean(&|row| row.wide),
        mean(&|row| row.narrow),
        mean(&|row| row.recursive / row.wide),
        mean(&|row| row.recursive / row.narrow),
        String::new(),
    ]);
    table
}

fn mean(rows: &[Row], of: impl Fn(&Row) -> f64) -> f64 {
    geomean(&rows.iter().map(of).collect::<Vec<_>>())
}

fn conclude(report: &mut Report, schemes: &Schemes, rows: &[Row]) {
    let (data, map) = schemes.recursive.path_lines();
    let average = |of: fn(&Row) -> f64| rows.iter().map(of).sum::<f64>() / rows.len() as f64;
    let less = |now: f64, before: u64| 100.0 * (1.0 - now / before as f64);
    report.text(&format!(
        "PC_X64 is {:.2} and PC_X32 {:.2} times as fast as R_X8 (the paper: 1.27 both, PC_X64 ahead \
         for hmmer and libquantum, PC_X32 for bzip2, mcf and omnetpp). PC_X64 moves {:.0} % fewer \
         bytes for the map than R_X8, and {:.0} % fewer in all (the paper: 95 and 37 %).",
        mean(rows, |row| row.recursive / row.wide),
        mean(rows, |row| row.recursive / row.narrow),
        less(average(|row| row.map_lines), map),
        less(average(|row| row.lines), data + map),
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the paper says of both: 37 % fewer bytes with 95 % fewer for the map.
    #[test]
    fn buckets_fit_the_traffic_of_the_paper() {
        let schemes = Schemes::new();
        let (data, map) = schemes.recursive.path_lines();
        let (path, none) = schemes.wide.path_lines();
        assert_eq!((path, none), (data, 0));
        let left = (path as f64 + 0.05 * map as f64) / (data + map) as f64;
        assert!((left - 0.63).abs() < 0.01, "{left}");
    }

    #[test]
    fn a_path_of_wide_blocks_takes_longer_than_one_of_narrow_blocks() {
        let Schemes { recursive, wide, narrow } = Schemes::new();
        let [all, wide, narrow] = [recursive, wide, narrow].map(|it| it.path_cycles(MACHINE));
        assert!(narrow < wide && wide < all, "{narrow} {wide} {all}");
        assert!(wide < 2.0 * narrow, "a path of 7 and of 4 lines a bucket: {wide} {narrow}");
    }
}
