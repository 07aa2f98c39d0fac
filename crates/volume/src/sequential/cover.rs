//! Cover: a quantum of the log at fixed times, needed or not, so that the times of quanta tell less
//! of when somebody writes. What waits in open lanes goes along.

use super::volume::SequentialVolume;
use crate::Result;
use std::time::Duration;

/// Serves a due tick; gives the time until the next one, if there is cover.
pub(super) fn serve(volume: &mut SequentialVolume) -> Result<Option<Duration>> {
    let clock = volume.options.environment.clock.clone();
    let Some(cover) = &mut volume.session.cover else { return Ok(None) };
    if cover.until(&*clock).is_zero() {
        cover.wait(&*clock);
        volume.guarded(write_quantum)?;
    }
    Ok(volume.session.cover.as_ref().map(|cover| cover.until(&*clock)))
}

/// Makes a quantum durable that has as many empty writes as it has room for, behind what waits: so
/// the flushes of the lanes keep up with what a quantum takes along.
fn write_quantum(volume: &mut SequentialVolume) -> Result<()> {
    let mut left = volume.log.writes_per_quantum();
    while left > 0 {
        left -= volume.write_empty(left)?;
    }
    volume.sync()
}
