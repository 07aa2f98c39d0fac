//! Calls to Linux that no library has: the unsafe code of this crate.
#![allow(unsafe_code)]

use std::fs::File;

/// Starts the system's write-out of a range, without waiting: a later sync has less to do. That
/// sync reports any error.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn begin_to_write_out(file: &File, offset: u64, len: u64) {
    use std::os::fd::AsRawFd;
    if let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) {
        // SAFETY: the call takes only numbers, and the borrow keeps the file open.
        unsafe {
            libc::sync_file_range(file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE)
        };
    }
}

/// Makes the calling thread preempt no other: it waits for a free processor or its turn, and gets
/// as much time as before. Best effort. It does nothing if the process already has a chosen
/// scheduling policy.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn does_not_interrupt() {
    let priority: libc::c_int = 0;
    // SAFETY: 0 is the calling thread. The system reads one number (`struct sched_param`) of the
    // last argument, which lives until the call returns. A direct call, because musl's functions
    // refuse.
    unsafe {
        if libc::syscall(libc::SYS_sched_getscheduler, 0) == libc::c_long::from(libc::SCHED_OTHER) {
            libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_BATCH, &raw const priority);
        }
    }
}

/// Lets the allocator give memory back to the system: two pools for all threads, and large pieces
/// apart. With its defaults a process keeps the most that each of its threads ever needed. For
/// processes with many threads that move little; called before they start.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn give_memory_back() {
    const PIECE: libc::c_int = 128 << 10;
    // SAFETY: the calls take only numbers. An allocator that refuses them goes on as before.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
        libc::mallopt(libc::M_MMAP_THRESHOLD, PIECE);
        libc::mallopt(libc::M_TRIM_THRESHOLD, PIECE);
    }
}

/// Other allocators decide themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_memory_back() {}

/// Other systems start when they like.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn begin_to_write_out(_file: &File, _offset: u64, _len: u64) {}

/// Other systems decide themselves.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn does_not_interrupt() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn a_thread_that_does_not_interrupt_keeps_its_priority() {
        let policy = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("Linux tells");
            let after_name = stat.rsplit(')').next().expect("a name").to_owned();
            let fields: Vec<&str> = after_name.split_whitespace().collect();
            // From proc(5): the nice value is field 19, the policy field 41; these fields begin
            // with the third.
            (fields[16].to_owned(), fields[38].to_owned())
        };
        std::thread::spawn(move || {
            let (nice, before) = policy();
            super::does_not_interrupt();
            // SCHED_BATCH, unless the tests run under another policy.
            let after = if before == "0" { "3".to_owned() } else { before };
            assert_eq!(policy(), (nice, after));
        })
        .join()
        .expect("it is set");
    }
}
