//! Slowdown of the schemes over a machine without ORAM (Figure 6), and the time of an access of the
//! latter (section 7.1.2).

use super::frames::Mapping;
use super::machine::Machine;
use super::paper::PAGE;
use super::replay::{Args, Insecure, Secure, Trace, geomean};
use super::scheme::Scheme;
use crate::report::{Report, Table};
use anyhow::Result;

/// The paper's mean access without ORAM.
const PAPER_ACCESS: f64 = 58.0;

/// What one program has under one mapping.
struct Row {
    program: String,
    latency: f64,
    /// By scheme.
    slowdowns: Vec<f64>,
    paths: Vec<f64>,
}

/// Runs the experiment.
///
/// # Errors
/// There are no traces; the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let traces = args.find()?;
    let schemes = Scheme::figure6();
    let paths: Vec<f64> = schemes.iter().map(|it| it.path_cycles(Machine::TABLE1)).collect();
    let mut report = Report::on(PAGE, "figure6", "Slowdown of the schemes (Figure 6)");
    introduce(&mut report, &args.describe(&traces), &schemes, &paths);
    for mapping in Mapping::ALL {
        let rows = traces.iter().map(|trace| measure(args, trace, mapping, &schemes, &paths));
        let rows: Vec<Row> = rows.collect::<Result<_>>()?;
        report.text(&format!("**{}**", mapping.name()));
        report.table(&table(&schemes, &rows));
        conclude(&mut report, &rows);
    }
    report.finish(write)
}

fn introduce(report: &mut Report, replayed: &str, schemes: &[Scheme], paths: &[f64]) {
    let costs = schemes.iter().zip(paths).map(|(it, cycles)| format!("{} {cycles:.0}", it.name));
    report.text(&format!(
        "Time of each program with ORAM, divided by its time without; in brackets paths for an \
         access. {replayed} Cycles of a path, read and written, with the controller's (R_X8: of all \
         four trees): {}. Without ORAM each miss is simulated, and writes are done 32 at a time.",
        costs.collect::<Vec<_>>().join(", ")
    ));
}

fn measure(
    args: &Args,
    trace: &Trace,
    mapping: Mapping,
    schemes: &[Scheme],
    paths: &[f64],
) -> Result<Row> {
    let with = schemes.iter().zip(paths);
    let mut secure: Vec<Secure> =
        with.map(|(scheme, &cycles)| Secure::new(scheme, cycles, args.exclusive)).collect();
    let mut insecure = Insecure::new(Machine::TABLE1, trace.header.about.geometry.line);
    args.each(trace, mapping, |record| {
        insecure.take(&record);
        secure.iter_mut().for_each(|it| it.take(&record));
    })?;
    Ok(Row {
        program: trace.program().to_owned(),
        latency: insecure.latency(),
        slowdowns: secure.iter().map(|it| it.cycles / insecure.cycles).collect(),
        paths: secure.iter().map(Secure::paths_per_access).collect(),
    })
}

fn table(schemes: &[Scheme], rows: &[Row]) -> Table {
    let names = schemes.iter().map(|it| it.name);
    let head = ["program", "a miss without"].into_iter().chain(names);
    let mut table = Table::new(head.chain(["PC_X32 over R_X8"]));
    for row in rows {
        let cells = row.slowdowns.iter().zip(&row.paths);
        let cells = cells.map(|(slow, paths)| format!("{slow:.2} ({paths:.2})"));
        let first = [row.program.clone(), format!("{:.0}", row.latency)];
        let last = format!("{:.2}", row.slowdowns[0] / row.slowdowns[2]);
        table.row(first.into_iter().chain(cells).chain([last]));
    }
    let mean = |of: &dyn Fn(&Row) -> f64| geomean(&rows.iter().map(of).collect::<Vec<_>>());
    let latency = rows.iter().map(|row| row.latency).sum::<f64>() / rows.len() as f64;
    let means = (0..schemes.len()).map(|at| format!("{:.2}", mean(&|row| row.slowdowns[at])));
    let last = format!("{:.2}", mean(&|row| row.slowdowns[0] / row.slowdowns[2]));
    table.row(
        ["geometric mean".to_owned(), format!("{latency:.0}")]
            .into_iter()
            .chain(means)
            .chain([last]),
    );
    table
}

fn conclude(report: &mut Report, rows: &[Row]) {
    let ratio = |over: usize, under: usize| {
        geomean(
            &rows.iter().map(|row| row.slowdowns[over] / row.slowdowns[under]).collect::<Vec<_>>(),
        )
    };
    report.text(&format!(
        "PC_X32 is {:.2} times as fast as R_X8 (the paper: 1.43), PIC_X32 costs {:+.1} % more (the \
         paper: 7 %), and PI_X8 is {:.0} % behind PIC_X32. A miss without ORAM takes {:.0} cycles \
         in the mean of the programs (the paper: {PAPER_ACCESS:.0}).",
        ratio(0, 2),
        100.0 * (ratio(4, 2) - 1.0),
        100.0 * (ratio(3, 4) - 1.0),
        rows.iter().map(|row| row.latency).sum::<f64>() / rows.len() as f64
    ));
}
