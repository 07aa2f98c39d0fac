//! The default memory of a tree.
//!
//! Every doubling saves a level of each access. A command that ends in seconds takes the volume's
//! default; a mount or a disk server, which stays, takes more where there is much.

use oblivio_volume::DEFAULT_MEMORY;

/// A server takes one part in this many of the memory, within bounds.
const SHARE: u64 = 16;
const MOST: usize = 2 << 30;

/// The budget of a mount or a disk server.
pub fn of_server() -> usize {
    share_of(there().min(limit()))
}

fn share_of(bytes: u64) -> usize {
    usize::try_from(bytes / SHARE).unwrap_or(MOST).clamp(DEFAULT_MEMORY, MOST)
}

/// The memory of this computer.
#[cfg(target_os = "linux")]
#[allow(clippy::useless_conversion, reason = "of 32 bits on some computers")]
pub fn there() -> u64 {
    let info = rustix::system::sysinfo();
    u64::from(info.mem_unit).saturating_mul(u64::from(info.totalram))
}

#[cfg(not(target_os = "linux"))]
pub fn there() -> u64 {
    0
}

/// The container's limit of memory.
fn limit() -> u64 {
    let limit = std::fs::read_to_string("/sys/fs/cgroup/memory.max");
    // "max", or no such file: no limit.
    limit.ok().and_then(|limit| limit.trim().parse().ok()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_takes_a_part_of_what_there_is() {
        assert_eq!(share_of(0), DEFAULT_MEMORY, "unknown, or little");
        assert_eq!(share_of(4 << 30), DEFAULT_MEMORY);
        assert_eq!(share_of(12 << 30), 768 << 20);
        assert_eq!(share_of(u64::MAX), MOST);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_computer_has_memory() {
        assert!((64 << 20..1 << 50).contains(&there()));
    }
}
