//! Runtime by the size of the PLB (Figure 5).

use super::frames::Mapping;
use super::machine::Machine;
use super::paper::PAGE;
use super::replay::{Args, Secure, Trace, geomean};
use super::scheme::{LINES, Scheme};
use crate::papers;
use crate::report::{Report, Table};
use anyhow::Result;
use oblivio_engine::tree::TreeConfig;

const KIB: [usize; 5] = [8, 16, 32, 64, 128];

/// Runs the experiment.
///
/// # Errors
/// There are no traces; the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let traces = args.find()?;
    let schemes = schemes();
    let cycles = schemes[0].path_cycles(Machine::TABLE1);
    let mut report = Report::on(PAGE, "figure5", "The size of the PLB (Figure 5)");
    report.text(&format!(
        "How much faster a program is than with a direct-mapped PLB of 8 KB, with PC_X32; and how \
         much faster with one of 64 KB in which a block may be anywhere than with a direct-mapped \
         one. {} The paper: bzip2 +67 % and mcf +49 % from 8 to 128 KB, most others at most 10 %; \
         +2.7 % in the mean from 64 to 128 KB; full associativity at most 10 %.",
        args.describe(&traces)
    ));
    for mapping in Mapping::ALL {
        let names = KIB.iter().skip(1).map(|kib| format!("{kib} KB"));
        let head = std::iter::once("program".to_owned()).chain(names);
        let mut table = Table::new(head.chain(["64 KB, fully associative".to_owned()]));
        let rows = traces.iter().map(|trace| measure(args, trace, mapping, &schemes, cycles));
        let rows: Vec<Vec<f64>> = rows.collect::<Result<_>>()?;
        for (trace, gains) in traces.iter().zip(&rows) {
            table.row(line(trace.program(), gains));
        }
        let mean = |at: usize| geomean(&rows.iter().map(|row| row[at]).collect::<Vec<_>>());
        let means: Vec<f64> = (0..rows[0].len()).map(mean).collect();
        table.row(line("geometric mean", &means));
        report.text(&format!("**{}**", mapping.name()));
        report.table(&table);
        let last = KIB.len() - 2;
        report.text(&format!(
            "From 64 to 128 KB: {:+.1} % in the mean.",
            100.0 * (means[last] / means[last - 1] - 1.0)
        ));
    }
    report.finish(write)
}

fn line(name: &str, gains: &[f64]) -> Vec<String> {
    let gains = gains.iter().map(|gain| format!("{:+.1} %", 100.0 * (gain - 1.0)));
    std::iter::once(name.to_owned()).chain(gains).collect()
}

/// PLBs by size, and the one that is fully associative.
fn schemes() -> Vec<Scheme> {
    let config = papers::pc_x32(64, LINES);
    let config = TreeConfig { on_chip_bytes: config.on_chip_bytes - 1, ..config };
    let sized = |kib: usize| TreeConfig { plb_bytes: kib << 10, ..config };
    let full = TreeConfig { plb_ways: (64 << 10) / 64, ..sized(64) };
    let all = KIB.into_iter().map(sized).chain([full]);
    all.map(|config| Scheme::unified("PC_X32", config)).collect()
}

/// How much faster than with 8 KB, by size; and than with 64 KB if fully associative.
fn measure(
    args: &Args,
    trace: &Trace,
    mapping: Mapping,
    schemes: &[Scheme],
    cycles: f64,
) -> Result<Vec<f64>> {
    let mut machines: Vec<Secure> =
        schemes.iter().map(|scheme| Secure::new(scheme, cycles, args.exclusive)).collect();
    args.each(trace, mapping, |record| machines.iter_mut().for_each(|it| it.take(&record)))?;
    let times: Vec<f64> = machines.iter().map(|it| it.cycles).collect();
    let mut gains: Vec<f64> = (1..KIB.len()).map(|at| times[0] / times[at]).collect();
    gains.push(times[KIB.len() - 2] / times[KIB.len()]);
    Ok(gains)
}
