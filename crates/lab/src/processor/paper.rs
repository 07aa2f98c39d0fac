//! What all parts share.

/// The page of all parts.
pub const PAGE: &str = "processor.md";
/// Gigahertz of the processor, in whose cycles the paper gives all times (Table 1).
pub const PROCESSOR_GHZ: f64 = 1.3;
