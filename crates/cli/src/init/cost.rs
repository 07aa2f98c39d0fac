//! The cost of the choice, printed before anything is written.

use super::choice;
use super::plan::Plan;
use crate::args::InitArgs;
use crate::engines;
use crate::human::{self, size};
use crate::price;
use anyhow::Result;
use oblivio_volume::Cost;

/// The bytes in the volume for which the cost is given, unless it may hold less.
const STORED: u64 = 10 << 30;

/// Dollars a month that nobody should pay by surprise. Who said what to expect knows.
const MUCH: f64 = 20.0;

/// Prints it. Space and time are measured values (docs/benchmarks.md).
pub fn say(plan: &Plan) -> Result<()> {
    match plan.new.cost(STORED)? {
        Cost::Growing { stored, path } => growing(plan, stored, path),
        Cost::Fixed { stored, written_per_byte } if plan.synced => {
            synced(plan, stored, written_per_byte)
        }
        Cost::Fixed { stored, written_per_byte } => fixed(plan, stored, written_per_byte),
    }
}

/// Says what a month in an online store costs, and asks if that is much. Whether to go on.
///
/// # Errors
/// A file of prices that is none; those of the terminal.
pub fn say_bill(args: &InitArgs, plan: &Plan) -> Result<bool> {
    let Some(object_bytes) = plan.object_bytes else { return Ok(true) };
    let prices = price::prices(&args.volume.to_string_lossy(), args.price.as_deref())?;
    let cache = oblivio_app::cache::size(args.open.disk_cache);
    let expected = args.expect.unwrap_or_default();
    let month = engines::month((plan.block_bytes, object_bytes), plan.size, expected, cache);
    if !args.open.quiet {
        price::say(&month, prices.as_ref())?;
    }
    let bill = prices.map_or(0.0, |prices| month.bill(&prices).iter().sum());
    if bill < MUCH || args.expect.is_some() { Ok(true) } else { choice::go_on(args) }
}

fn growing(plan: &Plan, stored: u64, path: u64) -> Result<()> {
    let block = size(plan.block_bytes as u64);
    human::say("Hides from whoever keeps it what is read and written, and whether it is either.")?;
    human::say("  space      2 to 2.6 times what is in it, up to 4 while much is removed;")?;
    human::say("             it grows and shrinks with that")?;
    human::say(format!(
        "  bandwidth  with {} in it, up to {} read and {} written for a block of {block};",
        size(stored),
        size(path + path / 3),
        size(path / 3)
    ))?;
    human::say("             less when blocks are asked for together")?;
    human::say("  time       on a local disk some 3 to 10 times that of encryption alone")
}

fn fixed(plan: &Plan, stored: u64, written_per_byte: f64) -> Result<()> {
    let (stored, bytes) = (size(stored), size(plan.size));
    human::say("Hides what is written from whoever has every snapshot; it does not hide reads.")?;
    human::say(format!("  space      {stored} for {bytes}, all of it from now on"))?;
    human::say(format!(
        "  bandwidth  each byte is written {written_per_byte:.1} times, and read once"
    ))?;
    human::say("  time       writes up to 5 times that of encryption alone, reads about as long")?;
    let Some(lanes) = plan.lanes else { return Ok(()) };
    let [each, grace] = [lanes.share, lanes.grace].map(|part| size(plan.size / u64::from(part)));
    let lanes = if lanes.count == 1 { "one".into() } else { format!("{} of them", lanes.count) };
    human::say(format!(
        "  lanes      {lanes} with {each}, written whenever the volume is, used or not: the place"
    ))?;
    human::say(
        "             for a hidden volume, which only its own passphrase opens. An eighth costs a",
    )?;
    human::say(format!(
        "             seventh of the above. {grace} may be written while it is shut, before it"
    ))?;
    human::say("             loses anything. --lanes none leaves it out")
}

fn synced(plan: &Plan, stored: u64, written_per_byte: f64) -> Result<()> {
    let (stored, bytes) = (size(stored), size(plan.size));
    human::say(
        "Hides what is written from whoever gets the copies; reads never leave this computer.",
    )?;
    human::say(format!("  space      up to {stored} for {bytes}, as it is written"))?;
    human::say(format!(
        "  traffic    each byte is sent some {:.0} times, in whole files that never change",
        written_per_byte + 1.0
    ))?;
    human::say("  when       after 64 MiB, after five minutes, and at the end")
}
