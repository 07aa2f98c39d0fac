//! The driver's commands as bytes.

use crate::{DEPTH, MOST_BYTES};
use std::io;

/// Commands to `/dev/ublk-control`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    Add = 4,
    Delete = 5,
    Start = 6,
    Stop = 7,
    SetParameters = 8,
}

/// Commands to a device's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Fetch = 0x20,
    CommitAndFetch = 0x21,
}

/// Bytes of a command to the control device.
pub(crate) const CONTROL_BYTES: usize = 32;
/// Bytes of a new device's description, sent and returned.
pub(crate) const INFO_BYTES: usize = 64;
/// Bytes of the parameters.
pub(crate) const PARAMETER_BYTES: usize = 60;
/// Bytes of a request's description in the shared memory.
pub(crate) const DESCRIPTION_BYTES: usize = 24;

/// The kernel's unit of length.
const SECTOR: u64 = 512;
/// Limit of a discard, and of a range of zeros: 1 GiB.
const MOST_SECTORS: u32 = 1 << 21;

/// The numbering of commands: as ioctls (from Linux 6.4 on), or plain before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbering {
    Ioctl,
    Plain,
}

impl Numbering {
    pub(crate) fn control(self, command: Control) -> u32 {
        self.number(command as u32, CONTROL_BYTES as u32)
    }

    pub(crate) fn queue(self, command: Command) -> u32 {
        self.number(command as u32, 16)
    }

    fn number(self, command: u32, bytes: u32) -> u32 {
        match self {
            // Both directions, this many bytes, type `u`.
            Self::Ioctl => 3 << 30 | bytes << 16 | u32::from(b'u') << 8 | command,
            Self::Plain => command,
        }
    }
}

/// A command to the control device, without the address of its data.
pub(crate) fn control(device: u32, len: usize, value: u64) -> [u8; CONTROL_BYTES] {
    let mut bytes = [0; CONTROL_BYTES];
    put(&mut bytes, 0, &device.to_ne_bytes());
    // No queue.
    put(&mut bytes, 4, &u16::MAX.to_ne_bytes());
    put(&mut bytes, 6, &(len as u16).to_ne_bytes());
    put(&mut bytes, 16, &value.to_ne_bytes());
    bytes
}

/// Offset of the address.
pub(crate) const CONTROL_ADDRESS: usize = 8;

/// A command to the only queue.
pub(crate) fn queue(tag: u16, result: i32, address: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    put(&mut bytes, 2, &tag.to_ne_bytes());
    put(&mut bytes, 4, &result.to_ne_bytes());
    put(&mut bytes, 8, &address.to_ne_bytes());
    bytes
}

/// The description of a device to add; the kernel picks its number.
pub(crate) fn info() -> [u8; INFO_BYTES] {
    let mut bytes = [0; INFO_BYTES];
    put(&mut bytes, 0, &1_u16.to_ne_bytes());
    put(&mut bytes, 2, &DEPTH.to_ne_bytes());
    put(&mut bytes, 8, &MOST_BYTES.to_ne_bytes());
    put(&mut bytes, 12, &u32::MAX.to_ne_bytes());
    bytes
}

/// The number and the depth that the kernel gave a device.
pub(crate) fn told(info: &[u8; INFO_BYTES]) -> (u32, u16) {
    (u32::from_ne_bytes(four(info, 12)), u16::from_ne_bytes([info[2], info[3]]))
}

/// The properties of a device that its users see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceParameters {
    /// Size in bytes, a multiple of the logical block.
    pub size: u64,
    /// The smallest read or write in bytes: 512 to 4,096, a power of two.
    pub logical_block: u32,
    /// The best size of reads and writes in bytes: a power of two, at least the logical block.
    pub best_block: u32,
    /// Whether writes are refused.
    pub read_only: bool,
}

impl DeviceParameters {
    /// The driver's form of the parameters.
    ///
    /// # Errors
    /// `InvalidInput` when they are invalid.
    pub(crate) fn bytes(&self) -> io::Result<[u8; PARAMETER_BYTES]> {
        let Self { size, logical_block, best_block, read_only } = *self;
        let fits = (512..=4096).contains(&logical_block)
            && logical_block.is_power_of_two()
            && best_block.is_power_of_two()
            && (logical_block..=1 << 30).contains(&best_block)
            && size > 0
            && size % u64::from(logical_block) == 0;
        if !fits {
            let text =
                "a disk's size is a multiple of its logical block, and blocks are powers of two";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let mut bytes = [0; PARAMETER_BYTES];
        // The length of the whole, and its parts: those on reads and writes and on discards are
        // set.
        put(&mut bytes, 0, &(PARAMETER_BYTES as u32).to_ne_bytes());
        put(&mut bytes, 4, &3_u32.to_ne_bytes());
        // Writes are durable after a flush, or at once on request.
        let (cache, fua) = (1 << 2, 1 << 3);
        put(&mut bytes, 8, &(u32::from(read_only) | cache | fua).to_ne_bytes());
        let (logical, best) = (logical_block.ilog2() as u8, best_block.ilog2() as u8);
        put(&mut bytes, 12, &[logical, best, best, best]);
        put(&mut bytes, 16, &(MOST_BYTES / SECTOR as u32).to_ne_bytes());
        put(&mut bytes, 24, &(size / SECTOR).to_ne_bytes());
        put(&mut bytes, 44, &best_block.to_ne_bytes());
        put(&mut bytes, 48, &MOST_SECTORS.to_ne_bytes());
        put(&mut bytes, 52, &MOST_SECTORS.to_ne_bytes());
        put(&mut bytes, 56, &1_u16.to_ne_bytes());
        Ok(bytes)
    }
}

/// The content of a request's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) op: u8,
    /// The write must be durable when it is answered.
    pub(crate) durable: bool,
    /// The zeros must stay allocated.
    pub(crate) no_unmap: bool,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

impl Description {
    pub(crate) fn read(bytes: &[u8; DESCRIPTION_BYTES]) -> Self {
        let flags = u32::from_ne_bytes(four(bytes, 0));
        let sectors = u32::from_ne_bytes(four(bytes, 4));
        let [low, high] = [8, 12].map(|at| four(bytes, at));
        let start = [low, high].concat().try_into().map_or(0, u64::from_ne_bytes);
        Self {
            op: flags as u8,
            durable: flags & 1 << 13 != 0,
            no_unmap: flags & 1 << 15 != 0,
            offset: start.saturating_mul(SECTOR),
            len: u64::from(sectors) * SECTOR,
        }
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn four(bytes: &[u8], at: usize) -> [u8; 4] {
    [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers from the kernel's header.
    #[test]
    fn commands_have_the_kernels_numbers() {
        assert_eq!(Numbering::Plain.control(Control::Add), 4);
        assert_eq!(Numbering::Ioctl.control(Control::Add), 0xc020_7504);
        assert_eq!(Numbering::Ioctl.control(Control::SetParameters), 0xc020_7508);
        assert_eq!(Numbering::Ioctl.queue(Command::Fetch), 0xc010_7520);
        assert_eq!(Numbering::Plain.queue(Command::CommitAndFetch), 0x21);
    }

    #[test]
    fn parameters_are_checked() {
        let good = DeviceParameters {
            size: 1 << 30,
            logical_block: 4096,
            best_block: 16384,
            read_only: true,
        };
        let bytes = good.bytes().expect("sound");
        assert_eq!(bytes[..8], [60, 0, 0, 0, 3, 0, 0, 0]);
        assert_eq!(bytes[8..16], [13, 0, 0, 0, 12, 14, 14, 14]);
        assert_eq!(u64::from_ne_bytes(bytes[24..32].try_into().expect("8")), 1 << 21);
        for bad in [
            DeviceParameters { size: 0, ..good },
            DeviceParameters { size: 4097, ..good },
            DeviceParameters { logical_block: 256, ..good },
            DeviceParameters { logical_block: 8192, ..good },
            DeviceParameters { best_block: 2048, ..good },
            DeviceParameters { best_block: 5000, ..good },
        ] {
            assert!(bad.bytes().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_description_is_read() {
        let mut bytes = [0; DESCRIPTION_BYTES];
        put(&mut bytes, 0, &(5_u32 | 1 << 13 | 1 << 15).to_ne_bytes());
        put(&mut bytes, 4, &8_u32.to_ne_bytes());
        put(&mut bytes, 8, &(1_u64 << 33).to_ne_bytes());
        let read = Description::read(&bytes);
        let expected =
            Description { op: 5, durable: true, no_unmap: true, offset: 1 << 42, len: 4096 };
        assert_eq!(read, expected);
    }
}
