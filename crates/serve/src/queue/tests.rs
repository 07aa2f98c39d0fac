//! Who gets which requests, and when they are given up.

use super::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Refused;

impl Refusal for Refused {
    const STALLED: Self = Refused;

    fn is_failure(_: &Error) -> bool {
        true
    }
}

/// Requests are their own weight; those of 0 are for the server.
fn queue() -> RequestQueue<u64, (), Refused> {
    RequestQueue::new(Duration::from_secs(3600), Pulse::default())
}

fn weigh(op: &u64) -> Option<u64> {
    (*op > 0).then_some(*op)
}

fn ops(requests: Option<Vec<Request<u64, (), Refused>>>) -> Option<Vec<u64>> {
    requests.map(|requests| requests.iter().map(|request| request.op).collect())
}

#[test]
fn what_waits_beside_is_shared_out_by_number_and_weight() {
    let queue = queue();
    let push = |op| queue.push(op, Box::new(|_| ()));
    // No thread serves these yet.
    push(9);
    queue.serve_beside(weigh);
    [1, 0, 1, 1, 1, 50, 60, 1].into_iter().for_each(push);
    let Taken::Requests(served) = queue.take(Instant::now()) else { panic!("two wait") };
    assert_eq!(ops(Some(served)), Some(vec![9, 0]));
    queue.close();
    let shares = std::iter::from_fn(|| ops(queue.take_beside(3, 10)));
    let expected: [&[u64]; 5] = [&[1, 1, 1], &[1], &[50], &[60], &[1]];
    assert_eq!(shares.collect::<Vec<_>>(), expected, "and what is heavy alone");
    assert!(matches!(queue.take(Instant::now()), Taken::Closed));
}

#[test]
fn what_waits_is_given_up_when_nothing_finished_for_the_limit() {
    const LIMIT: Duration = Duration::from_secs(3600);
    const MS: Duration = Duration::from_millis(1);
    let queue = queue();
    let begin = Instant::now();
    let answers = [0, 0].map(|op| {
        let (tell, told) = std::sync::mpsc::channel();
        queue.push(op, Box::new(move |answer| tell.send(answer).expect("heard")));
        told
    });
    let stalls = AtomicU64::new(0);
    let look = |at| {
        let note = |_| {
            stalls.fetch_add(1, Ordering::Relaxed);
        };
        let next = queue.look(queue.lock(), at, &note).1;
        (next, answers.iter().filter_map(|it| it.try_recv().ok()).collect::<Vec<_>>())
    };
    let waits = |(next, answered): (Next, Vec<_>)| {
        assert!(matches!(next, Next::In(left) if left <= LIMIT) && answered.is_empty());
    };
    waits(look(begin + LIMIT - MS));
    // The store gives a sign of life: from now on it has as long again.
    queue.pulse.fetch_add(1, Ordering::Relaxed);
    waits(look(begin + LIMIT - MS));
    waits(look(begin + 2 * LIMIT - 2 * MS));
    assert_eq!(stalls.load(Ordering::Relaxed), 0);
    let given_up = look(begin + 2 * LIMIT - MS);
    assert_eq!(given_up, (Next::Nothing, vec![Err(Refused); 2]));
    assert_eq!(stalls.load(Ordering::Relaxed), 1, "a stall is told of once");
    assert!(queue.progressed() && !queue.progressed(), "and its end");
}

#[test]
fn the_clock_wakes_up_for_what_comes_after_a_long_silence() {
    let queue = RequestQueue::<u64, (), Refused>::new(Duration::from_millis(4), Pulse::default());
    std::thread::scope(|scope| {
        scope.spawn(|| queue.watch(|_| ()));
        for _ in 0..3 {
            while !queue.lock().asleep {
                std::thread::yield_now();
            }
            let (tell, told) = std::sync::mpsc::channel();
            queue.push(0, Box::new(move |answer| tell.send(answer).expect("heard")));
            assert_eq!(told.recv(), Ok(Err(Refused)));
        }
        queue.kill();
    });
}

#[test]
fn threads_that_wait_beside_hear_of_the_end() {
    for kill in [false, true] {
        let queue = queue();
        queue.serve_beside(weigh);
        let (answered, refused) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..3).map(|_| scope.spawn(|| ops(queue.take_beside(3, 10)))).collect();
            if kill {
                queue.kill();
                queue.push(1, Box::new(move |answer| answered.send(answer).expect("heard")));
            } else {
                queue.close();
                drop(answered);
            }
            for thread in threads {
                assert_eq!(thread.join().expect("no panic"), None);
            }
        });
        assert_eq!(refused.recv().ok(), kill.then_some(Err(Refused)));
    }
}
