//! Memory shared with the kernel, and the commands that name it: all unsafe code.
//!
//! Nothing here returns a reference into shared memory: the kernel may change it at any time, so
//! bytes are copied out of it and into it. Memory that a command names by address has one of two
//! owners. The ring of the command owns it, and drops it after the ring itself; or the command owns
//! it until its result arrives.
#![allow(unsafe_code)]

use crate::abi::{
    CONTROL_ADDRESS, CONTROL_BYTES, Command, DESCRIPTION_BYTES, Description, Numbering, queue,
};
use io_uring::types::Fd;
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::Arc;

/// Commands to the control device, one at a time.
pub(crate) struct ControlRing(IoUring<squeue::Entry128>);

impl ControlRing {
    pub(crate) fn new() -> io::Result<Self> {
        IoUring::builder().build(2).map(Self)
    }

    /// Gives one command and waits for its result. The driver reads and writes `data`, which is
    /// returned as the driver left it.
    pub(crate) fn command(
        &mut self,
        control: &File,
        number: u32,
        mut head: [u8; CONTROL_BYTES],
        mut data: Vec<u8>,
    ) -> io::Result<Vec<u8>> {
        if !data.is_empty() {
            let address = data.as_mut_ptr() as u64;
            head[CONTROL_ADDRESS..CONTROL_ADDRESS + 8].copy_from_slice(&address.to_ne_bytes());
        }
        let mut command = [0; 80];
        command[..CONTROL_BYTES].copy_from_slice(&head);
        let entry = opcode::UringCmd80::new(Fd(control.as_raw_fd()), number).cmd(command).build();
        // SAFETY: the command names only the bytes of `data`, which `until_done` keeps until the
        // result is here, or for ever; and `control`, which the kernel itself keeps open.
        unsafe { self.0.submission().push(&entry) }.map_err(io::Error::other)?;
        until_done(data, || {
            let waited = self.0.submit_and_wait(1);
            (self.0.completion().next().map(|done| done.result()), waited.map(drop))
        })
    }
}

/// Waits, as often as it must, for the result of a command that names `data`, and returns the data
/// with it. If waiting fails, the command may still be at work: then the data is never given back
/// to the allocator.
fn until_done<D>(
    data: D,
    mut wait: impl FnMut() -> (Option<i32>, io::Result<()>),
) -> io::Result<D> {
    let kept = ManuallyDrop::new(data);
    loop {
        match wait() {
            (Some(done), _) => {
                let data = ManuallyDrop::into_inner(kept);
                return result(done).map(|()| data);
            }
            (None, Err(error)) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            (None, _) => {}
        }
    }
}

fn result(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
}

/// A mapped range of memory, accessed only by copying.
struct Mapping {
    start: *mut u8,
    len: usize,
}

// SAFETY: it is plain memory that on our side only this value owns.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Memory of our own, whole pages.
    fn anonymous(len: usize) -> io::Result<Self> {
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping anywhere touches no memory in use.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), len, rights, MapFlags::PRIVATE) }?;
        Ok(Self { start: start.cast(), len })
    }

    /// The beginning of a file, for reading.
    fn of(file: &File, len: usize) -> io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: as above; the driver's writes there are only ever copied out.
        let start = unsafe { mmap(ptr::null_mut(), len, ProtFlags::READ, flags, file, 0) }?;
        Ok(Self { start: start.cast(), len })
    }

    /// The address of a range.
    ///
    /// # Panics
    /// If the range is not within.
    fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset.checked_add(len).is_some_and(|end| end <= self.len), "within the mapping");
        // SAFETY: it is within.
        unsafe { self.start.add(offset) }
    }

    fn copy_out(&self, offset: usize, to: &mut [u8]) {
        // SAFETY: the range is within, and `to` is other memory.
        unsafe { ptr::copy_nonoverlapping(self.at(offset, to.len()), to.as_mut_ptr(), to.len()) }
    }

    fn copy_in(&self, offset: usize, from: &[u8]) {
        // SAFETY: the range is within, and `from` is other memory.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), self.at(offset, from.len()), from.len()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nothing points into it any more: its owner drops the ring first.
        let _ = unsafe { munmap(self.start.cast(), self.len) };
    }
}

/// The commands of a queue, and the memory that they and their results name.
pub(crate) struct QueueRing {
    // The order counts: the ring goes first, because through it the driver knows of the rest.
    ring: IoUring<squeue::Entry>,
    device: File,
    wake: Arc<OwnedFd>,
    numbering: Numbering,
    descriptions: Mapping,
    buffers: Mapping,
    /// Bytes of each request's buffer.
    room: usize,
}

/// The tag of the result that is no request.
const WAKE: u64 = u64::MAX;

/// A completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A command with this tag is done, with this result.
    Done(u16, i32),
    /// The awaited file can be read.
    Wake,
}

impl QueueRing {
    /// The ring of a device's only queue, with `depth` requests and `room` bytes for each.
    pub(crate) fn new(
        device: File,
        wake: Arc<OwnedFd>,
        numbering: Numbering,
        depth: u16,
        room: usize,
    ) -> io::Result<Self> {
        let pages = (usize::from(depth) * DESCRIPTION_BYTES).next_multiple_of(4096);
        let descriptions = Mapping::of(&device, pages)?;
        let buffers = Mapping::anonymous(usize::from(depth) * room)?;
        let ring = IoUring::new(u32::from(depth) + 1)?;
        Ok(Self { ring, device, wake, numbering, descriptions, buffers, room })
    }

    /// The driver's request with this tag.
    pub(crate) fn description(&self, tag: u16) -> Description {
        let mut bytes = [0; DESCRIPTION_BYTES];
        self.descriptions.copy_out(usize::from(tag) * DESCRIPTION_BYTES, &mut bytes);
        Description::read(&bytes)
    }

    /// The bytes of a write.
    pub(crate) fn written(&self, tag: u16, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len.min(self.room)];
        self.buffers.copy_out(usize::from(tag) * self.room, &mut bytes);
        bytes
    }

    /// Copies in the data of a read.
    pub(crate) fn lay_ready(&self, tag: u16, data: &[u8]) {
        let data = &data[..data.len().min(self.room)];
        self.buffers.copy_in(usize::from(tag) * self.room, data);
    }

    /// Gives the driver the result of a request, if there was one, and fetches the next for this
    /// tag.
    pub(crate) fn command(&mut self, command: Command, tag: u16, result: i32) -> io::Result<()> {
        let buffer = self.buffers.at(usize::from(tag) * self.room, self.room) as u64;
        let number = self.numbering.queue(command);
        let entry = opcode::UringCmd16::new(Fd(self.device.as_raw_fd()), number)
            .cmd(queue(tag, result, buffer))
            .build()
            .user_data(u64::from(tag));
        self.push(&entry)
    }

    /// Makes the next [`Event::Wake`] come when `wake` can be read.
    pub(crate) fn listen(&mut self) -> io::Result<()> {
        let readable = 1;
        let file = Fd(self.wake.as_raw_fd());
        self.push(&opcode::PollAdd::new(file, readable).build().user_data(WAKE))
    }

    /// Waits for completions.
    pub(crate) fn wait(&mut self) -> io::Result<Vec<Event>> {
        match self.ring.submit_and_wait(1) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => drop(result?),
        }
        let event = |done: cqueue::Entry| match done.user_data() {
            WAKE => Event::Wake,
            tag => Event::Done(tag as u16, done.result()),
        };
        Ok(self.ring.completion().map(event).collect())
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: a command names its buffer and open files. They belong to this value, exist until
        // the ring is dropped, and never move.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    struct Data<'c>(&'c Cell<bool>);

    impl Drop for Data<'_> {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }

    /// The result of a command, and whether its data had gone by then.
    fn outcome(steps: Vec<(Option<i32>, io::Result<()>)>) -> (Result<(), Option<i32>>, bool) {
        let (gone, mut steps) = (Cell::new(false), steps.into_iter());
        let done = until_done(Data(&gone), || {
            assert!(!gone.get(), "it is there while the command is at work");
            steps.next().expect("no more is asked for")
        });
        let before = gone.get();
        (done.map(drop).map_err(|error| error.raw_os_error()), before)
    }

    #[test]
    fn the_data_of_a_command_outlives_it() {
        let error = |code| Err(io::Error::from_raw_os_error(code));
        let interrupted = || (None, error(4));
        assert_eq!(
            outcome(vec![interrupted(), (None, Ok(())), (Some(0), Ok(()))]),
            (Ok(()), false)
        );
        // An error is a result too: the command is over.
        assert_eq!(outcome(vec![(Some(-17), Ok(()))]), (Err(Some(17)), true));
        assert_eq!(outcome(vec![(Some(0), error(16))]), (Ok(()), false));
        // Without a result it may be at work as long as there is a driver.
        for code in [11, 12, 16, 9] {
            assert_eq!(outcome(vec![interrupted(), (None, error(code))]), (Err(Some(code)), false));
        }
    }
}
