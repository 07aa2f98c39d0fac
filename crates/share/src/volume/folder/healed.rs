//! What a start found damaged or lost of a folder, and what became of it.

/// A file that was damaged or lost. Its other copy is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Healed {
    /// The file, as seen from the folder of the volume or the server.
    pub file: String,
    /// Why it could not be made again, if so: the other copy alone is in use.
    pub failed: Option<String>,
}

impl Healed {
    /// It was made again, or not.
    pub(super) fn new<E: std::fmt::Display>(file: String, made: Result<(), E>) -> Self {
        Self { file, failed: made.err().map(|error| error.to_string()) }
    }
}
