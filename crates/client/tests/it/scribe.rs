//! What the client that is the scribe does for itself.

use super::{World, get, read, value, write};
use oblivio_share::MemoryShare;
use oblivio_store::share::{HistoryEntry, ShareCall, ShareReply};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Calls that matter here, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    Ask,
    /// A batch, and the number of its asks that the server did not have.
    Show(usize),
    Sums,
    Tell,
}

fn made(call: &ShareCall<'_>) -> Option<Made> {
    match call {
        ShareCall::Ask(_) => Some(Made::Ask),
        ShareCall::Append { entry: HistoryEntry::Show(show), .. } => {
            Some(Made::Show(show.own.len()))
        }
        ShareCall::Append { entry: HistoryEntry::Tell(_), .. } => Some(Made::Tell),
        ShareCall::Sums { .. } => Some(Made::Sums),
        _ => None,
    }
}

/// The batch takes the asks along, and its sums are all that the scribe waits for: one round trip,
/// as appending waits for no reply on a network. Answers never come back from the server here.
#[test]
fn the_scribes_own_asks_take_one_round_trip() {
    // Time stands still, so that no lease ends on a busy machine.
    let world = World::over(Arc::new(MemoryShare::new(Arc::new(|| Duration::ZERO))));
    let (client, line) = world.client();
    // From now on it is the scribe.
    assert!(client.carry_out(&[write(7, 42)]).unwrap()[0].done);
    let calls = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&calls);
    line.lie(move |call, reply| {
        noted.lock().unwrap().extend(made(call));
        if let ShareReply::Answers(answers) = reply {
            answers.clear();
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    for _ in 0..20 {
        assert_eq!(get(&client, 7), 42);
    }
    let answers = client.carry_out(&[read(7), write(8, 1)]).unwrap();
    assert_eq!(answers.iter().map(value).collect::<Vec<_>>(), [42, 0]);
    let mut calls = calls.lock().unwrap().clone();
    // The answer to the first ask may have come before the call that told it was over.
    let first = calls.iter().position(|call| *call != Made::Tell);
    calls.drain(..first.unwrap());
    let asks = calls.iter().filter(|call| **call == Made::Ask).count();
    assert_eq!(asks, 0, "none goes to the server by itself: {calls:?}");
    let own = calls.iter().map(|call| if let Made::Show(own) = call { *own } else { 0 });
    assert_eq!(own.sum::<usize>(), 22);
    let expected = [Made::Show(1), Made::Sums, Made::Tell];
    assert_eq!(calls[..60], expected.repeat(20), "one trip each, and none for the answer");
}
