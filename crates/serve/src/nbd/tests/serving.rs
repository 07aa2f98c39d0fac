//! Requests that wait together: batches, commits and order.

use super::super::request::{DiskAnswer, DiskOp, DiskQueue};
use super::super::wire::Errno;
use super::{BLOCK, DiskServer, SIZE, disk, queue, settings};
use oblivio_volume::ShownKind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

/// Queues a request; the answer comes through the channel.
pub fn ask(queue: &DiskQueue, op: DiskOp) -> Receiver<Result<DiskAnswer, Errno>> {
    let (tell, answer) = channel();
    queue.push(op, Box::new(move |result| drop(tell.send(result))));
    answer
}

pub fn write(offset: u64, data: &[u8], durable: bool) -> DiskOp {
    DiskOp::Write { offset, data: data.to_vec(), durable }
}

pub fn done(answer: &Receiver<Result<DiskAnswer, Errno>>) -> DiskAnswer {
    answer.recv().expect("an answer").expect("a good one")
}

#[test]
fn what_waits_together_is_served_together() {
    let (disk, shown) = disk();
    let queue = queue();
    let block = BLOCK as u64;
    let written = ask(&queue, write(0, &[1; 4 * BLOCK], false));
    // Sixteen reads that share four blocks, from any number of connections.
    let reads: Vec<_> = (0..16)
        .map(|part| ask(&queue, DiskOp::Read { offset: part * block / 4, len: BLOCK as u32 / 4 }))
        .collect();
    let flushes: Vec<_> = (0..3).map(|_| ask(&queue, DiskOp::Flush)).collect();
    let durable = ask(&queue, write(9 * block, &[2; 9], true));
    queue.close();
    DiskServer::new(disk, Arc::clone(&queue), settings()).run().expect("memory");
    assert_eq!(done(&written), DiskAnswer::Done);
    for read in reads {
        assert_eq!(
            done(&read),
            DiskAnswer::Data(vec![1; BLOCK / 4]),
            "a read sees what came before"
        );
    }
    flushes.iter().chain([&durable]).for_each(|answer| assert_eq!(done(answer), DiskAnswer::Done));
    let shown = shown.lock().expect("alone");
    // The end of the session has batches and a commit of its own, after these.
    let first = shown.iter().find(|one| one.kind == ShownKind::Batch).expect("a batch");
    assert_eq!(first.leaves.len() - first.scheduled, 4, "each block once");
    let records = shown.iter().filter(|one| one.kind == ShownKind::Sync).count();
    assert_eq!(records, 1, "one record for everybody");
}

#[test]
fn long_zeros_leave_others_their_turn() {
    let (disk, _) = disk();
    let queue = queue();
    // The whole disk, which is more than one step.
    let len = SIZE as u32;
    let zeroes = |durable| DiskOp::Zeroes { offset: 0, len, stay: true, only_fast: false, durable };
    let all = ask(&queue, write(0, &vec![7; SIZE as usize], false));
    let zeroed = ask(&queue, zeroes(true));
    let status = ask(&queue, DiskOp::Status { offset: 0, len, one: false });
    queue.close();
    DiskServer::new(disk, Arc::clone(&queue), settings()).run().expect("memory");
    assert_eq!((done(&all), done(&zeroed)), (DiskAnswer::Done, DiskAnswer::Done));
    let DiskAnswer::Extents(extents) = done(&status) else { panic!("extents") };
    assert!(extents.len() == 1 && extents[0].exists && extents[0].len == SIZE, "{extents:?}");
}

#[test]
fn after_the_end_everybody_is_told() {
    let (disk, _) = disk();
    let queue = queue();
    queue.kill();
    let late = ask(&queue, DiskOp::Flush);
    assert_eq!(late.recv().expect("an answer"), Err(Errno::Io));
    DiskServer::new(disk, queue, settings()).run().expect("memory");
}
