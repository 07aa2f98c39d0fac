//! The machines of the evaluation: their memory channels and their clock.

use super::dram::Timing;
use super::paper::PROCESSOR_GHZ;

/// The memory controller's clock for ORAM (Table 1).
const CONTROLLER_GHZ: f64 = 1.26;

/// A processor and its memory.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Memory channels.
    pub channels: usize,
    /// Gigahertz of the processor.
    ghz: f64,
}

impl Machine {
    /// Table 1: all figures but those that say otherwise.
    pub const TABLE1: Self = Self::with_channels(2);
    /// That of the Recursive ORAM before (section 7.1.5).
    pub const RECURSIVE: Self = Self { channels: 4, ghz: 2.6 };

    /// As in Table 1, with other memory channels.
    pub const fn with_channels(channels: usize) -> Self {
        Self { channels, ghz: PROCESSOR_GHZ }
    }

    /// Processor cycles of a memory cycle.
    pub fn memory_cycle(&self) -> f64 {
        Timing::NANOSECONDS * self.ghz
    }

    /// Processor cycles of a cycle of the controller.
    pub fn controller_cycle(&self) -> f64 {
        self.ghz / CONTROLLER_GHZ
    }
}
