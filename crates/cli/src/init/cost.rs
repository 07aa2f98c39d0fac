//! The cost of the choice, printed before anything is written.

use super::plan::{Engine, Plan};
use crate::human::{self, size};
use anyhow::Result;
use oblivio_volume::CreateOptions;
use oblivio_volume::sequential::SequentialOptions;
use oblivio_volume::tree::TreeVolume;

/// Prints it.
pub fn say(plan: &Plan) -> Result<()> {
    match &plan.engine {
        Engine::Tree(create) => tree(create),
        Engine::Sequential(create) => sequential(create),
    }
}

/// Space and time are measured values (docs/benchmarks.md).
fn tree(create: &CreateOptions) -> Result<()> {
    let stored = create.capacity_bytes.min(10 << 30);
    let path = TreeVolume::path_bytes(create, stored);
    let block = size(create.block_bytes as u64);
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

fn sequential(create: &SequentialOptions) -> Result<()> {
    let bytes = create.engine.blocks * create.engine.block_bytes as u64;
    let stored = create.stored_bytes()?;
    human::say("Hides what is written from whoever has every snapshot; it does not hide reads.")?;
    human::say(format!(
        "  space      {} for {}, all of it from now on",
        size(stored),
        size(bytes)
    ))?;
    human::say(format!(
        "  bandwidth  each byte is written {:.1} times, and read once",
        create.written_per_byte()?
    ))?;
    human::say("  time       writes up to 5 times that of encryption alone, reads about as long")
}
