//! Queries of many clients at the same time.

use super::crowd::{self, Latencies, Load};
use super::place::{self, PAGE, Place, Served, ask};
use super::process::{Used, loaded, threads};
use super::proxy::Passed;
use super::seen::{Counts, Meter};
use crate::privatefs::{Crowd, paper_beside};
use crate::report::{Report, Table, bytes, count};
use anyhow::{Result, anyhow};
use oblivio_client::Client;
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    place: place::Which,
    /// Clients, one of them the scribe
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// Requests that each has under way
    #[arg(long, default_value_t = 4)]
    requests: usize,
    /// Milliseconds of a round trip between a client and the server
    #[arg(long, default_value_t = 50)]
    rtt_ms: u64,
    /// Seconds before it is measured
    #[arg(long, default_value_t = 10)]
    warm_up: u64,
    /// Seconds that are measured
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

/// What the processes have used and passed at a time.
struct Marks {
    at: Instant,
    server: Used,
    clients: Used,
    line: Used,
    passed: Passed,
    threads: [BTreeMap<String, Used>; 2],
}

impl Marks {
    fn take(served: &mut Served<'_>) -> Result<Self> {
        let me = std::process::id();
        Ok(Self {
            at: Instant::now(),
            server: served.used()?,
            clients: Used::of(me)?,
            line: served.proxy.used()?,
            passed: served.proxy.passed()?,
            threads: [threads(served.process())?, threads(me)?],
        })
    }
}

/// What was found.
struct Found {
    before: Marks,
    after: Marks,
    counts: Counts,
    latencies: Latencies,
}

/// Runs it.
///
/// # Errors
/// Those of the server, the clients and the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let tool = args.place.tool.path()?;
    let place = Place::prepare(&args.place)?;
    let mut served = Served::start(&place, &tool, Duration::from_millis(args.rtt_ms))?;
    let meter = Meter::new(place.config.turn_asks());
    let clients = open(args, &served, &meter)?;
    let load = Load { requests: args.requests, blocks: args.place.blocks() };
    let ((before, after, counts), answers) = crowd::run(&clients, load, || {
        thread::sleep(Duration::from_secs(args.warm_up));
        meter.take();
        let before = Marks::take(&mut served)?;
        thread::sleep(Duration::from_secs(args.seconds));
        Ok((before, Marks::take(&mut served)?, meter.take()))
    })?;
    let latencies = Latencies::within(&answers, before.at..=after.at);
    drop(clients);
    report(args, &place, &Found { before, after, counts, latencies }, write)
}

/// All clients, the first of which is the scribe, and serves.
fn open(args: &Args, served: &Served<'_>, meter: &Meter) -> Result<Vec<Client>> {
    let share = meter.over(served.line("scribe")?);
    let scribe = served.client(Box::new(share), true)?;
    scribe.carry_out(&[ask(0, false)])?;
    let mut clients = vec![scribe];
    let one = |number: usize| {
        let line = served.line(&format!("client-{number}"))?;
        served.client(Box::new(line), false)
    };
    // At the same time: each takes several round trips.
    let others = thread::scope(|scope| {
        let one = &one;
        let begun: Vec<_> = (1..args.clients).map(|at| scope.spawn(move || one(at))).collect();
        let ended =
            begun.into_iter().map(|it| it.join().map_err(|_| anyhow!("a client panicked"))?);
        ended.collect::<Result<Vec<Client>>>()
    });
    clients.extend(others?);
    Ok(clients)
}

fn report(args: &Args, place: &Place, found: &Found, write: bool) -> Result<()> {
    let Found { before, after, counts, latencies } = found;
    let (queries, config) = (latencies.count(), place.config);
    let seconds = (after.at - before.at).as_secs_f64();
    let rate = queries as f64 / seconds;
    let mut report = Report::on(PAGE, "speed", "Many clients at the same time");
    report.text(&format!(
        "{} clients with {} requests each under way, {} ms from the server and back, for {:.0} s; \
         uniformly random blocks, half reads and half writes; each answer was checked. The volume \
         may have 2^{} blocks of 4 KiB, and {} % of them exist. The server is `oblivio share \
         serve` over TLS; all clients are in one process, one of them is the scribe. {}",
        args.clients,
        args.requests,
        args.rtt_ms,
        seconds,
        config.log_blocks,
        args.place.fill,
        place.told
    ));
    let each = |of: fn(&Marks) -> Used| of(after).micros_each(of(before), queries);
    let (server, clients) = (each(|marks| marks.server), each(|marks| marks.clients));
    let wire = (after.passed.up - before.passed.up) + (after.passed.down - before.passed.down);
    let crowd = Crowd { clients: args.clients, requests: args.requests };
    let (paper, paper_bytes) = paper_beside(config.log_blocks, crowd, args.rtt_ms)?;
    let mut table = Table::new(["", "found"]);
    let mut row = |name: &str, found: String| table.row([name.to_owned(), found]);
    row("queries a second", count(rate));
    row(
        "latency, median and 99 in 100",
        format!("{} and {} ms", latencies.millis(0.5), latencies.millis(0.99)),
    );
    row("processor time a query, server and clients", format!("{:.0} us", server + clients));
    row("of it the server", format!("{server:.0} us"));
    row("of it all clients and what asks them", format!("{clients:.0} us"));
    row("not in it: the line", format!("{:.0} us", each(|marks| marks.line)));
    row(
        "bytes on the wire a query, of all parties",
        bytes((wire as f64 / queries.max(1) as f64) as u64),
    );
    row(
        "the same in slots",
        format!("{:.1}", wire as f64 / (queries.max(1) * config.slot_bytes() as u64) as f64),
    );
    row("asks in a batch", format!("{:.1}", counts.asks as f64 / counts.batches.max(1) as f64));
    row("turns due and not switched, at most", counts.most_behind.to_string());
    row("turns that may be open before asks wait", config.open_turns().to_string());
    row("the paper's construction, queries a second", format!("{paper:.1}"));
    row("its bytes a query", bytes(paper_bytes as u64));
    row("queries a second / its", format!("{:.0}", rate / paper));
    report.table(&table);
    report.text(&loaded()?);
    told_threads(found, queries);
    report.finish(write)
}

/// The processor time of each thread, to find a bottleneck. It is printed, and not on the page.
fn told_threads(found: &Found, queries: u64) {
    for (side, name) in ["server", "clients"].into_iter().enumerate() {
        let before = &found.before.threads[side];
        for (thread, used) in &found.after.threads[side] {
            let micros = used.micros_each(before.get(thread).copied().unwrap_or_default(), queries);
            eprintln!("{name}: {thread}: {micros:.0} us a query");
        }
    }
    for (call, (times, took)) in &found.counts.calls {
        let each = took.as_secs_f64() * 1e3 / (*times).max(1) as f64;
        eprintln!("the scribe's calls: {call}: {times} of {each:.1} ms on average");
    }
    let Counts { asks, merged, stored, switches, .. } = &found.counts;
    eprintln!(
        "{asks} asks, {merged} slots read by merges, {stored} bytes stored, {switches} switches"
    );
}
