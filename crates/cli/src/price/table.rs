//! What services ask for: list prices in dollars, as published in 2026, to compare orders of
//! magnitude. They change; the services' own pages rule.

use serde::Deserialize;

/// A service's prices, a month.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Prices {
    /// For people, with a date.
    pub name: String,
    /// For each GB stored.
    pub stored_gb: f64,
    /// The least that is billed, in GB.
    pub least_gb: f64,
    /// For each million puts, and how many are free.
    pub puts_million: f64,
    pub puts_free: f64,
    /// For each million reads, and how many are free.
    pub gets_million: f64,
    pub gets_free: f64,
    /// For each GB that leaves the service; how many are free, in GB and as multiples of what is
    /// stored.
    pub out_gb: f64,
    pub out_free_gb: f64,
    pub out_free_times_stored: f64,
    /// What else to know.
    pub note: Option<String>,
}

/// Prices in a file.
///
/// # Errors
/// Words for the user.
pub fn parse(text: &str) -> Result<Prices, String> {
    let prices: Prices = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let all = [
        prices.stored_gb,
        prices.least_gb,
        prices.puts_million,
        prices.puts_free,
        prices.gets_million,
        prices.gets_free,
        prices.out_gb,
        prices.out_free_gb,
        prices.out_free_times_stored,
    ];
    match all.iter().all(|price| price.is_finite() && *price >= 0.0) {
        true => Ok(prices),
        false => Err("a price is not negative".to_owned()),
    }
}

/// The prices of the service at a URL, if they are known.
pub fn of_url(url: &str) -> Option<Prices> {
    let (scheme, rest) = url.split_once(':')?;
    let own = |hosts: &[&str]| {
        let endpoint = rest.split(['?', '&']).find_map(|part| part.strip_prefix("endpoint="));
        endpoint.is_none_or(|endpoint| hosts.iter().any(|host| endpoint.contains(host)))
    };
    let wasabi = rest.contains("endpoint=") && rest.contains("wasabisys.com");
    match scheme {
        "s3" if wasabi => Some(wasabi_prices()),
        "s3" if own(&["amazonaws.com"]) => Some(s3()),
        "r2" => Some(r2()),
        "b2" => Some(b2()),
        "gs" if own(&["googleapis.com"]) => Some(google()),
        "az" if own(&["windows.net"]) => Some(azure()),
        _ => None,
    }
}

fn s3() -> Prices {
    Prices {
        name: "Amazon S3 (Standard, us-east-1)".into(),
        stored_gb: 0.023,
        puts_million: 5.0,
        gets_million: 0.4,
        out_gb: 0.09,
        out_free_gb: 100.0,
        note: Some(
            "Nearly all of it is for bytes out: R2 and B2 ask little or nothing for them.".into(),
        ),
        ..Prices::default()
    }
}

fn r2() -> Prices {
    Prices {
        name: "Cloudflare R2 (Standard)".into(),
        stored_gb: 0.015,
        puts_million: 4.5,
        puts_free: 1e6,
        gets_million: 0.36,
        gets_free: 1e7,
        ..Prices::default()
    }
}

fn b2() -> Prices {
    Prices {
        name: "Backblaze B2".into(),
        stored_gb: 0.006,
        gets_million: 0.4,
        out_gb: 0.01,
        out_free_times_stored: 3.0,
        note: Some(
            "Keep only the last version of a file there, or deleted ones are billed too.".into(),
        ),
        ..Prices::default()
    }
}

fn wasabi_prices() -> Prices {
    Prices {
        name: "Wasabi".into(),
        stored_gb: 0.00799,
        least_gb: 1000.0,
        note: Some(
            "Each object is billed for 90 days at least, and objects here live shorter.".into(),
        ),
        ..Prices::default()
    }
}

fn google() -> Prices {
    Prices {
        name: "Google Cloud Storage (Standard, us-east1)".into(),
        stored_gb: 0.020,
        puts_million: 5.0,
        gets_million: 0.4,
        out_gb: 0.12,
        ..Prices::default()
    }
}

fn azure() -> Prices {
    Prices {
        name: "Azure Blob Storage (Hot, LRS, East US)".into(),
        stored_gb: 0.018,
        puts_million: 6.5,
        gets_million: 0.5,
        out_gb: 0.087,
        out_free_gb: 100.0,
        ..Prices::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_come_from_a_file_too() {
        let prices = parse("name = \"NAS\"\nstored_gb = 0.004\nout_gb = 0.01\n").expect("prices");
        assert_eq!((prices.stored_gb, prices.out_gb, prices.puts_million), (0.004, 0.01, 0.0));
        for bad in ["stored_gb = -1.0", "stored = 1.0", "stored_gb = nan", "what"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_service_is_known_by_its_url() {
        let name = |url| of_url(url).map(|prices| prices.name).unwrap_or_default();
        assert!(name("s3://b/x?region=a").contains("Amazon"));
        assert!(name("s3://b?endpoint=https://s3.wasabisys.com&region=a").contains("Wasabi"));
        assert_eq!(name("s3://b?endpoint=https://minio.example.org"), "");
        assert_eq!(name("sftp://me@host/a"), "");
    }
}
