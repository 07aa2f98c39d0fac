//! What a volume in an online store costs a month, said before it is made.

mod table;

use crate::exit::usage;
use crate::human::{self, size};
use anyhow::Result;
use oblivio_volume::Traffic;
pub use table::{Prices, of_url};

const DAYS: f64 = 30.4;
/// What somebody does a day, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    pub stored: Option<u64>,
    pub read: u64,
    pub written: u64,
}

impl Default for Use {
    fn default() -> Self {
        Self { stored: None, read: 2 << 30, written: 500 << 20 }
    }
}

/// Parses `READ/WRITTEN`, or `STORED,READ/WRITTEN`.
///
/// # Errors
/// Words for the user.
pub fn parse_use(text: &str) -> std::result::Result<Use, String> {
    let form = || "say what is read and written a day, as 2G/500M, or 50G,2G/500M".to_owned();
    let (stored, day) = match text.split_once(',') {
        Some((stored, day)) => (Some(human::parse_size(stored)?), day),
        None => (None, text),
    };
    let (read, written) = day.split_once('/').ok_or_else(form)?;
    let (read, written) = (human::parse_size(read)?, human::parse_size(written)?);
    Ok(Use { stored, read, written })
}

/// A month of it.
pub struct Month {
    pub used: Use,
    pub traffic: Traffic,
    /// Bytes in the store.
    pub stored: f64,
}

impl Month {
    /// Of days with this traffic.
    pub fn of(used: Use, stored: f64, day: Traffic) -> Self {
        Self { used, traffic: day.times(DAYS), stored }
    }

    /// Dollars: for space, for requests, for bytes out.
    pub fn bill(&self, prices: &Prices) -> [f64; 3] {
        const GB: f64 = 1e9;
        let above = |amount: f64, free: f64| (amount - free).max(0.0);
        let stored = (self.stored / GB).max(prices.least_gb);
        let gets = self.traffic.gets + self.traffic.looks;
        let out_free = prices.out_free_gb + prices.out_free_times_stored * stored;
        [
            stored * prices.stored_gb,
            above(self.traffic.puts, prices.puts_free) / 1e6 * prices.puts_million
                + above(gets, prices.gets_free) / 1e6 * prices.gets_million,
            above(self.traffic.down / GB, out_free) * prices.out_gb,
        ]
    }
}

/// Says what a month costs.
///
/// # Errors
/// Those of the output.
pub fn say(month: &Month, prices: Option<&Prices>) -> Result<()> {
    let Use { stored, read, written } = month.used;
    human::say(format!(
        "With {} in it, and {} read and {} written a day (--expect), a month has",
        size(stored.unwrap_or(0)),
        size(read),
        size(written)
    ))?;
    let millions = |count: f64| format!("{:.2} million", count / 1e6);
    let Traffic { gets, looks, puts, down, up, .. } = month.traffic;
    human::say(format!(
        "  requests   {} to read, {} to store",
        millions(gets + looks),
        millions(puts)
    ))?;
    human::say(format!("  bytes      {} down, {} up", size(down as u64), size(up as u64)))?;
    human::say(format!("  space      {} in the store", size(month.stored as u64)))?;
    let Some(prices) = prices else {
        return human::say("  bill       no price is known for this server (--price FILE)");
    };
    let [space, requests, out] = month.bill(prices);
    human::say(format!("  bill       about ${:.2} on {}:", space + requests + out, prices.name))?;
    human::say(format!(
        "             ${space:.2} for space, ${requests:.2} for requests, ${out:.2} for bytes out"
    ))?;
    human::say("             (list prices of 2026; the service's own page rules)")?;
    if let Some(note) = &prices.note {
        human::say(format!("             {note}"))?;
    }
    Ok(())
}

/// The prices in a file, or those of the service at a URL, if it is known.
///
/// # Errors
/// A file that cannot be read, or is no list of prices.
pub fn prices(url: &str, file: Option<&std::path::Path>) -> Result<Option<Prices>> {
    let Some(file) = file else { return Ok(of_url(url)) };
    let text = std::fs::read_to_string(file)
        .map_err(|error| usage(format!("{}: {error}", file.display()), "Name a file of prices."))?;
    let parsed = table::parse(&text);
    parsed.map(Some).map_err(|why| {
        let hint = "See docs/online.md for the names and units.";
        usage(format!("{}: {why}", file.display()), hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_parsed() {
        let day = Use { stored: None, read: 2 << 30, written: 500 << 20 };
        assert_eq!(parse_use("2G/500M"), Ok(day));
        assert_eq!(parse_use("50G,2G/500M"), Ok(Use { stored: Some(50 << 30), ..day }));
        for bad in ["", "2G", "2G/", "/1G", "a,2G/1G", "2G/500M,3G"] {
            assert!(parse_use(bad).is_err(), "{bad}");
        }
    }
}
