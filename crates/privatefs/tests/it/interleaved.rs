//! Two clients, with each transaction of one between any two of the other.

use super::common::work::{ATOMIC, Work, seen, stage};
use super::common::{BLOCK, assert_sound, client};
use oblivio_privatefs::testing::Memory;
use oblivio_testkit::campaign::scaled;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex};

/// What both operations answered, and what there is afterwards.
type Outcome = (String, String, BTreeMap<String, String>);

/// Lets one client at a time go on, for one transaction.
struct Turns {
    state: Mutex<State>,
    woken: Condvar,
}

struct State {
    order: u32,
    running: Option<usize>,
    ended: [bool; 2],
}

impl Turns {
    fn wait(&self, who: usize) {
        let mut state = self.state.lock().unwrap();
        if state.running == Some(who) {
            state.running = None;
            self.woken.notify_all();
        }
        loop {
            let turn = (state.order & 1) as usize;
            if state.running.is_none() && (turn == who || state.ended[1 - who]) {
                state.running = Some(who);
                state.order >>= 1;
                return;
            }
            state = self.woken.wait(state).unwrap();
        }
    }

    fn end(&self, who: usize) {
        let mut state = self.state.lock().unwrap();
        state.ended[who] = true;
        if state.running == Some(who) {
            state.running = None;
        }
        self.woken.notify_all();
    }
}

fn word(result: oblivio_privatefs::Result<()>) -> String {
    match result {
        Ok(()) => "done".into(),
        Err(error) => format!("{error}"),
    }
}

fn serial(first: Work, second: Work) -> (String, String, BTreeMap<String, String>) {
    let memory = Memory::new(BLOCK);
    let at = stage(&memory);
    let (a, b) = (client(&memory, 1, false), client(&memory, 2, false));
    let results = (word(first(&a.fs, at)), word(second(&b.fs, at)));
    (results.0, results.1, seen(&client(&memory, 3, false).fs))
}

fn interleaved(first: Work, second: Work, order: u32) -> (Outcome, u32) {
    let memory = Memory::new(BLOCK);
    let at = stage(&memory);
    let state = State { order, running: None, ended: [false; 2] };
    let turns = Arc::new(Turns { state: Mutex::new(state), woken: Condvar::new() });
    let clients = [client(&memory, 1, false), client(&memory, 2, false)];
    // Both know everything, so that what they know is outdated when the other one is faster.
    clients.iter().for_each(|by| drop(seen(&by.fs)));
    for (who, by) in clients.iter().enumerate() {
        let turns = Arc::clone(&turns);
        by.line.before_each(Box::new(move || turns.wait(who)));
    }
    let results: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = [first, second]
            .into_iter()
            .enumerate()
            .map(|(who, work)| {
                let (fs, turns) = (&clients[who].fs, &turns);
                scope.spawn(move || {
                    let result = word(work(fs, at));
                    turns.end(who);
                    result
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let left = turns.state.lock().unwrap().order;
    assert_sound(&memory, 4);
    let seen = seen(&client(&memory, 3, false).fs);
    ((results[0].clone(), results[1].clone(), seen), left)
}

#[test]
fn any_two_operations_are_as_if_one_came_first() {
    let mut outcomes = 0;
    for (a, (first_name, first)) in ATOMIC.iter().enumerate() {
        for (second_name, second) in &ATOMIC[a..] {
            let ab = serial(*first, *second);
            let (second_alone, first_then, after) = serial(*second, *first);
            let ba = (first_then, second_alone, after);
            let mut found = BTreeSet::new();
            // Spread over all: a number that is odd goes through each of the 64 once.
            for order in (0..scaled(16).min(64)).map(|it| it as u32 * 37 % 64) {
                let (outcome, _) = interleaved(*first, *second, order);
                assert!(
                    outcome == ab || outcome == ba,
                    "{first_name} | {second_name} in order {order:b}: {outcome:?}\n{ab:?}\n{ba:?}"
                );
                found.insert(outcome == ab);
            }
            outcomes += found.len();
        }
    }
    // In many pairs both orders come about and differ.
    assert!(outcomes > 200, "{outcomes}");
}
