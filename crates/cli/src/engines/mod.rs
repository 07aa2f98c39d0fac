//! What the command works out for one engine only, before there is a volume.

mod windows;

pub use windows::month;
