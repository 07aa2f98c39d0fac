//! The one driver: it carries out jobs' steps on any kind of storage.

use crate::{EngineError, Extent, Job, Read, Step, WorkPart, Write};
use std::sync::{Mutex, PoisonError};

/// The storage of an engine, as its steps see it.
pub trait Carrier {
    /// What may go wrong.
    type Error: From<EngineError>;

    /// Fills the buffer.
    ///
    /// # Errors
    /// Those of the storage.
    fn read(&mut self, read: Read<'_>) -> Result<(), Self::Error>;

    /// Stores the bytes.
    ///
    /// # Errors
    /// Those of the storage.
    fn write(&mut self, write: Write<'_>) -> Result<(), Self::Error>;

    /// Likely reads of the next jobs. It changes no result to ignore them.
    fn expect(&mut self, extents: &[Extent]) {
        let _ = extents;
    }

    /// Carries out one step; false if there was nothing left to do.
    ///
    /// # Errors
    /// Those of the storage.
    fn carry(&mut self, step: Step<'_>) -> Result<bool, Self::Error> {
        match step {
            Step::Done => return Ok(false),
            Step::Read(read) => self.read(read)?,
            Step::Write(write) => self.write(write)?,
            Step::Work { expected } => self.expect(expected),
        }
        Ok(true)
    }

    /// How many parts of the work may run at once.
    fn hands(&self) -> usize {
        1
    }

    /// Runs the parts, perhaps on several threads.
    fn work(&mut self, parts: Vec<WorkPart<'_>>) {
        parts.into_iter().for_each(WorkPart::run);
    }
}

/// An engine that is at hand for a moment: alone, or behind a lock.
pub trait Lend<E> {
    /// Gives it to `work`.
    fn lend<T>(&mut self, work: impl FnOnce(&mut E) -> T) -> T;
}

impl<E> Lend<E> for &mut E {
    fn lend<T>(&mut self, work: impl FnOnce(&mut E) -> T) -> T {
        work(self)
    }
}

impl<E> Lend<E> for &Mutex<E> {
    fn lend<T>(&mut self, work: impl FnOnce(&mut E) -> T) -> T {
        work(&mut self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Carries out one step of a job; false if there was nothing left to do. The engine is free for
/// other jobs while the storage is at work, and while the parts of the work run.
///
/// # Errors
/// Those of the engine and of the storage.
pub fn advance<J: Job, C: Carrier>(
    job: &mut J,
    mut engine: impl Lend<J::Engine>,
    carrier: &mut C,
) -> Result<bool, C::Error> {
    let more = carrier.carry(engine.lend(|engine| job.step(engine))?)?;
    carrier.work(job.parts(carrier.hands()));
    Ok(more)
}

/// Carries out a job to its end.
///
/// # Errors
/// As [`advance`].
pub fn carry_out<J: Job, C: Carrier>(
    job: &mut J,
    engine: &mut J::Engine,
    carrier: &mut C,
) -> Result<(), C::Error> {
    while advance(job, &mut *engine, carrier)? {}
    Ok(())
}
