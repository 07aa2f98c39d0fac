//! What all parts share.

/// The page of all parts.
pub const PAGE: &str = "hardware.md";
/// The schemes that are compared, and the memory channels of their circuit.
pub const SCHEMES: [(&str, usize); 3] = [("PI_X8", 2), ("PC_X32", 4), ("PIC_X32", 2)];
