//! The parameters in the header, and the options of a new volume: those of the engine, and the
//! length of an extent.

use crate::creation::NewOptions;
use crate::header::Parameters;
use crate::sequential::{self, LOG_OBJECT, SequentialOptions, TIMES_OBJECT};
use crate::{Error, Result};

use super::shape::ExtentLayout;

/// Where the engine's parameters have four bytes that mean nothing to it.
const AT: std::ops::Range<usize> = 36..40;
/// The longest extent, and the shortest that a new volume gets.
const LONGEST: u64 = 8 << 20;
const SHORTEST: u64 = 256 << 10;
/// Extents that a new volume has about, if none is longer than the longest.
const EXTENTS: u64 = 256;

/// A volume to make in a folder that a sync client copies.
#[derive(Clone, Copy, Debug)]
pub struct ExtentOptions {
    /// The engine, and its log.
    pub sequential: SequentialOptions,
    /// Bytes of an extent: a power of two from 512 on.
    pub extent_bytes: u64,
}

impl ExtentOptions {
    /// The defaults for this block size and capacity.
    pub fn new(block_bytes: usize, capacity_bytes: u64) -> Self {
        let sequential = SequentialOptions::new(block_bytes, capacity_bytes);
        let wanted = sequential.stored_bytes().unwrap_or(0) / EXTENTS;
        let extent_bytes = wanted.clamp(SHORTEST, LONGEST).next_power_of_two();
        Self { sequential, extent_bytes }
    }

    /// The parameters for the header.
    pub(super) fn parameters(&self) -> Result<Parameters> {
        let bytes = self.extent_bytes;
        if !bytes.is_power_of_two() || !(512..=1 << 31).contains(&bytes) {
            let why = "an extent has a power of two of bytes, from 512 to 2 GiB";
            return Err(Error::Invalid(why.into()));
        }
        if self.sequential.lanes.is_some() {
            return Err(Error::Invalid("lanes are for a volume in one file".into()));
        }
        let mut parameters = self.sequential.parameters()?;
        parameters.own[AT].copy_from_slice(&bytes.ilog2().to_le_bytes());
        shape(&parameters)?;
        Ok(parameters)
    }
}

impl From<&NewOptions> for ExtentOptions {
    fn from(new: &NewOptions) -> Self {
        // Extents are of the size for a map in memory, wherever it is.
        let usual = Self::new(new.block_bytes, new.capacity_bytes);
        Self { sequential: new.into(), ..usual }
    }
}

/// The logarithm of the bytes of an extent, and the engine's own parameters.
fn split(parameters: &Parameters) -> (u32, Parameters) {
    let mut engine = *parameters;
    let mut log = [0; 4];
    log.copy_from_slice(&engine.own[AT]);
    engine.own[AT].fill(0);
    (u32::from_le_bytes(log), engine)
}

/// The engine's parameters.
pub(super) fn of_engine(parameters: &Parameters) -> Parameters {
    split(parameters).1
}

/// Refuses parameters unknown to this version.
pub(super) fn check(parameters: &Parameters) -> Result<()> {
    let (log, engine) = split(parameters);
    if !(9..=31).contains(&log) {
        return Err(Parameters::unknown());
    }
    (sequential::ENGINE.check)(&engine)?;
    shape(parameters).map(drop).map_err(|error| Error::Unsupported(error.to_string()))
}

/// What is cut where. Access times stay on this computer: another one restores them.
pub(super) fn shape(parameters: &Parameters) -> Result<ExtentLayout> {
    let (log, engine) = split(parameters);
    let objects = sequential::objects_of(&engine)?;
    Ok(ExtentLayout::new(&objects, &[TIMES_OBJECT], 1 << log)?.apart(LOG_OBJECT))
}
