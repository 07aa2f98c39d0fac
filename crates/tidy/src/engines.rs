//! Names of engines: in an engine's own folders and in the registry only.

use crate::finding::Finding;
use crate::source::Source;

/// What only an engine's own folders and the registry say.
const NAMES: [&str; 20] = [
    "TreeVolume",
    "TreeInfo",
    "TreeOram",
    "TreeConfig",
    "SequentialVolume",
    "SequentialInfo",
    "SequentialOptions",
    "SequentialConfig",
    "oblivio_engine::tree",
    "oblivio_engine::sequential",
    "oblivio_volume::tree",
    "oblivio_volume::sequential",
    "WindowVolume",
    "WindowInfo",
    "WindowOptions",
    "oblivio_volume::windows",
    "ExtentVolume",
    "ExtentInfo",
    "ExtentOptions",
    "oblivio_volume::extents",
];

/// Folders of engines, and the registry. A folder `engines` holds what a crate says of each.
const PLACES: [&str; 9] = [
    "crates/engine/src/",
    // Of both kinds of volumes on trees.
    "crates/volume/src/core/",
    "crates/volume/src/records/record.rs",
    "crates/volume/src/tree/",
    "crates/volume/src/sequential/",
    "crates/volume/src/windows/",
    "crates/volume/src/extents/",
    "crates/volume/src/registry.rs",
    "crates/volume/src/fuzzing.rs",
];

pub(crate) fn findings(sources: &[Source]) -> Vec<Finding> {
    let production = sources.iter().filter(|source| {
        let product = source.in_src().is_some_and(|(name, _)| name != "lab" && name != "tidy");
        let its_own = PLACES.iter().any(|place| source.path.starts_with(place));
        product && !its_own && !source.path.contains("/engines/")
    });
    production.flat_map(file).collect()
}

fn file(source: &Source) -> Vec<Finding> {
    let production = source.text.split("#[cfg(test)]\nmod ").next().unwrap_or("");
    let lines = production.lines().enumerate();
    let code = lines.filter(|(_, line)| !line.trim_start().starts_with("//"));
    let named = |line: &str| NAMES.into_iter().find(|name| line.contains(name));
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
