//! The circuit and the model, on few requests. `just hardware cosim` has many.

use super::attacks::{self, ATTACKS};
use super::bench::{Bench, missing};
use super::cosim::compare;
use super::scheme::{requests, scheme};
use super::timing;
use oblivio_engine::tree::MapFormat;

#[test]
fn the_circuit_does_what_the_model_does() {
    if let Some(tool) = missing() {
        eprintln!("skipped: {tool} is not installed");
        return;
    }
    for (name, depth, channels) in [("PIC_X32", 10, 1), ("PC_X32", 10, 8)] {
        let mut shape = scheme(name, depth, 16).expect("a name of the paper");
        if name == "PIC_X32" {
            // So that groups roll over.
            shape.map = MapFormat::Compressed { individual_bits: 6 };
        }
        let bench = Bench::build(&shape, channels, 18).expect("it builds");
        let asks = requests(&shape, 1000, 1);
        let outcome = compare(&bench, shape, &asks, 4, 1).expect(name);
        eprintln!("{name}: {outcome:?}");
        assert_eq!((outcome.answered, outcome.failed), (1000, false));
        assert!(outcome.paths > 1100, "{outcome:?}");
        assert_eq!(outcome.roll_overs > 2, name == "PIC_X32", "{outcome:?}");
    }
}

#[test]
fn a_memory_that_was_tampered_with_ends_the_port_as_in_the_model() {
    if let Some(tool) = missing() {
        eprintln!("skipped: {tool} is not installed");
        return;
    }
    // To build a circuit takes half a minute: this one first does what the model does when nobody
    // touches it.
    let bench = attacks::builds().expect("it builds");
    let outcome = compare(&bench, attacks::small(), &requests(&attacks::small(), 1000, 1), 4, 1)
        .expect("PI_X8");
    assert_eq!((outcome.answered, outcome.failed), (1000, false), "{outcome:?}");
    assert!(outcome.paths > 1100, "{outcome:?}");
    for attack in ATTACKS {
        let ended = (0..10).filter(|&seed| attacks::one(&bench, attack, seed).expect("equal"));
        assert!(ended.count() > 0, "{attack:?} is never found");
    }
}

#[test]
fn commands_come_in_the_same_cycles_whatever_is_asked() {
    if let Some(tool) = missing() {
        eprintln!("skipped: {tool} is not installed");
        return;
    }
    let [(name, shape, channels), _] = timing::shapes();
    let bench = Bench::build(&shape, channels, 16).expect("it builds");
    for seed in 0..3 {
        assert!(timing::pair(&bench, &shape, seed).expect(name) > 1000);
    }
    let (shape, channels) = timing::paced();
    let bench = Bench::build(&shape, channels, 16).expect("it builds");
    for seed in 0..3 {
        assert!(timing::paced_pair(&bench, &shape, seed).expect("a pace") > 1000);
    }
}
