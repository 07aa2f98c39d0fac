//! Which crate may use which: reading downwards is reading a request downwards.

use crate::finding::Finding;
use crate::source::Source;

/// Each crate of the product and what it may depend on, tests apart.
const LAYERS: [(&str, &[&str]); 19] = [
    ("crypto", &[]),
    // The store never sees a key: it is the adversary's view.
    ("store", &[]),
    // Stores on a network, and the only async code. It never sees a key of a volume either.
    ("online", &["store"]),
    // What transactions are made of is the file system's, which needs nothing.
    ("engine", &["crypto", "privatefs"]),
    ("splitmix", &[]),
    ("audit", &["splitmix"]),
    // A file system over a trait, and the words of both: it knows no engine, and no key.
    ("privatefs", &[]),
    // Its file system has the words of the other one.
    ("volume", &["crypto", "engine", "store", "privatefs"]),
    ("ublk", &[]),
    ("serve", &["crypto", "store", "volume", "privatefs", "ublk"]),
    // The server of shared volumes has no key and no engine.
    ("share", &["store"]),
    // What a computer does with a shared volume.
    ("client", &["crypto", "engine", "store", "volume", "privatefs"]),
    // Places, the way to files, what a computer remembers: what all programs do alike.
    ("app", &["crypto", "engine", "store", "online", "volume", "privatefs", "share", "client"]),
    // The library that others embed. Nothing of ours stands on it: it may promise what it shows.
    ("oblivio", &["crypto", "store", "volume", "client", "share", "app"]),
    (
        "cli",
        &[
            "crypto",
            "engine",
            "store",
            "volume",
            "audit",
            "privatefs",
            "serve",
            "share",
            "client",
            "app",
        ],
    ),
    // What ships uses it in tests only, which are not looked at here.
    ("testkit", &["splitmix", "engine", "store", "volume"]),
    ("tidy", &[]),
    // A plugin of QEMU, and the format of its traces.
    ("tracer", &[]),
    (
        "lab",
        &[
            "crypto", "engine", "store", "volume", "audit", "serve", "share", "client", "app",
            "testkit", "tracer",
        ],
    ),
];

pub(crate) fn findings(sources: &[Source]) -> Vec<Finding> {
    let manifests = sources.iter().filter(|source| source.path.ends_with("/Cargo.toml"));
    manifests.flat_map(manifest).collect()
}

fn manifest(source: &Source) -> Vec<Finding> {
    let Some((name, _)) = source.in_crate() else { return Vec::new() };
    let Some((_, allowed)) = LAYERS.iter().find(|(of, _)| *of == name) else {
        return vec![Finding {
            at: source.path.clone(),
            what: format!("the crate {name} has no place among the layers"),
            advice: "Name it in crates/tidy/src/layers.rs, with what it may depend on.",
        }];
    };
    let mut findings = Vec::new();
    let mut section = "";
    for (at, line) in source.text.lines().enumerate() {
        if line.starts_with('[') {
            section = line;
        }
        let used = line.strip_prefix("oblivio").map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            rest[..end.unwrap_or(rest.len())].trim_start_matches('-')
        });
        let Some(used) = used.filter(|_| is_dependencies(section)) else { continue };
        let used = if used.is_empty() { "oblivio" } else { used };
        if !allowed.contains(&used) {
            findings.push(Finding {
                at: format!("{}:{}", source.path, at + 1),
                what: format!("the crate {name} depends on {used}, which is not below it"),
                advice: "Move what is needed to a crate below both, or pass it in as a value or trait.",
            });
        }
    }
    findings
}

fn is_dependencies(section: &str) -> bool {
    section == "[dependencies]"
        || section.starts_with("[target.") && section.ends_with(".dependencies]")
}
