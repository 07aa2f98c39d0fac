//! Names of engines: in an engine's own folders and in the registry only.

use crate::finding::Finding;
use crate::source::Source;

/// The list of engines. Each is named after its folder.
const REGISTRY: &str = "crates/volume/src/registry.rs";
/// What the types of an engine are called after the engine.
const TYPES: [&str; 5] = ["Volume", "Info", "Options", "Oram", "Config"];
/// Where every engine may be named.
const PLACES: [&str; 5] = [
    "crates/engine/src/",
    // Of both kinds of volumes on trees.
    "crates/volume/src/core/",
    "crates/volume/src/records/record.rs",
    REGISTRY,
    "crates/volume/src/fuzzing.rs",
];

pub(crate) fn findings(sources: &[Source]) -> Vec<Finding> {
    let registry = sources.iter().find(|source| source.path == REGISTRY);
    let engines = registry.map(|source| engines(&source.text)).unwrap_or_default();
    let in_volume = |source: &Source| source.path.starts_with("crates/volume/src/");
    if engines.is_empty() && sources.iter().any(in_volume) {
        return vec![Finding {
            at: REGISTRY.into(),
            what: "the list of engines is not found".into(),
            advice: "Keep `ENGINES` a list of `&folder::ENGINE`.",
        }];
    }
    let own = engines.iter().map(|name| format!("crates/volume/src/{name}/"));
    let places: Vec<String> = PLACES.into_iter().map(str::to_owned).chain(own).collect();
    let names: Vec<String> = engines.iter().flat_map(|name| names(name)).collect();
    let production = sources.iter().filter(|source| {
        let product = source.in_src().is_some_and(|(name, _)| name != "lab" && name != "tidy");
        let its_own = places.iter().any(|place| source.path.starts_with(place));
        // A folder `engines` holds what a crate works out for each.
        product && !its_own && !source.path.contains("/engines/")
    });
    production.flat_map(|source| file(source, &names)).collect()
}

/// The engines in the registry.
fn engines(registry: &str) -> Vec<&str> {
    let list = registry.split_once("ENGINES: &[&EngineEntry] =").map_or("", |(_, rest)| rest);
    let list = list.split(';').next().unwrap_or("").split(['[', ',', ']']);
    list.filter_map(|entry| entry.trim().strip_prefix('&')?.strip_suffix("::ENGINE")).collect()
}

/// What only an engine's own folders and the registry say.
fn names(engine: &str) -> Vec<String> {
    let stem = engine.strip_suffix('s').unwrap_or(engine);
    let stem = stem[..1].to_uppercase() + &stem[1..];
    let modules = ["engine", "volume"].map(|name| format!("oblivio_{name}::{engine}"));
    TYPES.iter().map(|of| format!("{stem}{of}")).chain(modules).collect()
}

fn file(source: &Source, names: &[String]) -> Vec<Finding> {
    let production = source.text.split("#[cfg(test)]\nmod ").next().unwrap_or("");
    let lines = production.lines().enumerate();
    let code = lines.filter(|(_, line)| !line.trim_start().starts_with("//"));
    let named = |line: &str| names.iter().find(|name| line.contains(name.as_str()));
    code.filter_map(|(at, line)| {
        Some(Finding {
            at: format!("{}:{}", source.path, at + 1),
            what: format!("an engine is named: {}", named(line)?),
            advice: "Ask the registry's entry or the volume's report; what only one engine needs \
                     stands in a folder `engines`.",
        })
    })
    .collect()
}
