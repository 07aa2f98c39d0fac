//! Real sessions of a volume with a fault: a store that drops the journal, a volume that misreports
//! what it shows.

use crate::recorder::Recorder;
use oblivio_audit::observer::{TraceObserver, compare_where, judge_records};
use oblivio_audit::record::RecordedSession;
use oblivio_audit::trace::TraceRequest;
use oblivio_audit::{AuditVerdict, Report};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::{Log, MemoryStore};
use oblivio_volume::{BlockSpace, CreateOptions, OpenOptions, Shown, ShownKind, Volume};
use std::sync::Arc;

const BLOCKS: u64 = 1024;
const READS: u64 = 447;

fn passphrase() -> Passphrase {
    Passphrase::new("sessions")
}

fn op(id: u64, action: Action) -> BlockOp {
    BlockOp { id: BlockId(id), action }
}

/// The store of a volume whose blocks were all written.
fn written() -> MemoryStore {
    let store = Arc::new(MemoryStore::new());
    let create =
        CreateOptions { block_bytes: 512, capacity_bytes: BLOCKS * 512, kdf: KdfParams::TEST };
    let open = OpenOptions { memory_bytes: 64 << 10, ..OpenOptions::default() };
    let mut volume =
        Volume::create(Arc::clone(&store) as _, &passphrase(), create, open).expect("empty");
    volume.reserve(BLOCKS).expect("room");
    let write = |id| op(id, Action::Write(vec![1; 8]));
    volume.access((0..BLOCKS).map(write).collect()).expect("room");
    volume.finish().expect("memory");
    store.snapshot()
}

/// Reads blocks one by one from `first` on in a session that breaks off; `lie` alters what the
/// volume reports.
fn read(disk: &MemoryStore, first: u64, recorder: &Recorder, lie: fn(&mut Shown)) -> MemoryStore {
    let store = Arc::new(disk.snapshot());
    recorder.begin(RecordedSession::default());
    let mut tell = recorder.callback();
    let on_shown = move |shown: &Shown| {
        let mut said = shown.clone();
        lie(&mut said);
        tell(&said);
    };
    let open = OpenOptions {
        memory_bytes: 64 << 10,
        on_shown: Some(Box::new(on_shown)),
        ..OpenOptions::default()
    };
    let over = Arc::new(recorder.over(Arc::clone(&store)));
    let mut volume = Volume::open(over, &passphrase(), open).expect("a volume");
    for id in first..first + READS {
        volume.access(vec![op(id, Action::Read)]).expect("memory");
    }
    drop(volume);
    store.snapshot()
}

fn truth(_: &mut Shown) {}

fn sight(work: impl FnOnce(&Recorder)) -> TraceObserver {
    let recorder = Recorder::in_memory();
    work(&recorder);
    recorder.take()
}

fn finds(report: &Report, name: &str) -> bool {
    assert_eq!(report.verdict, AuditVerdict::Leak, "{report}");
    report.finding(name).is_some_and(|finding| !finding.passed)
}

#[test]
fn a_session_that_repeats_the_one_before_is_told_from_one_that_does_not() {
    let disk = written();
    let mut broken = None;
    let first = sight(|recorder| broken = Some(read(&disk, 0, recorder, truth)));
    let broken = broken.expect("it was read");
    assert_eq!(judge_records(&first, 1e-6).verdict, AuditVerdict::Pass);
    // The store drops what the volume would show again.
    broken.truncate("journal", 0).expect("memory");
    let next = |from| sight(|recorder| drop(read(&broken, from, recorder, truth)));
    let (same, other) = (next(0), next(READS));
    for alone in [&same, &other] {
        assert_eq!(judge_records(alone, 1e-6).verdict, AuditVerdict::Pass);
    }
    assert!(finds(&compare_where(&first, &same, 1e-6), "repeats across sessions"));
    let report = compare_where(&first, &other, 1e-6);
    assert_eq!(report.verdict, AuditVerdict::Pass, "{report}");
    // Together the sessions show that nothing was shown again, whichever file was read.
    for from in [0, READS] {
        let together = sight(|recorder| {
            read(&disk, 0, recorder, truth);
            read(&broken, from, recorder, truth);
        });
        assert!(finds(&judge_records(&together, 1e-6), "shown again after a crash"));
    }
}

#[test]
fn a_session_that_broke_off_is_shown_again_and_that_is_no_leak() {
    let disk = written();
    let together = sight(|recorder| {
        let broken = read(&disk, 0, recorder, truth);
        read(&broken, 100, recorder, truth);
    });
    let report = judge_records(&together, 1e-6);
    assert_eq!(report.verdict, AuditVerdict::Pass, "{report}");
    // Chance is judged from the first path on that was not shown before.
    let rounds = |requests: &[TraceRequest]| {
        let leaves = requests.iter().map(|request| request.leaves.clone());
        leaves.filter(|leaves| !leaves.is_empty()).collect::<Vec<_>>()
    };
    let [first, second] = [&together.sessions[0], &together.sessions[1]];
    let (shown, again) =
        (rounds(&first.trace.requests), rounds(&second.trace.requests[..second.confirmed]));
    assert!(again.len() as u64 >= READS);
    assert!(shown.ends_with(&again), "all of them, and nothing else");
}

#[test]
fn a_volume_that_lies_about_a_path_is_found() {
    let disk = written();
    let lies: [fn(&mut Shown); 3] = [
        // The volume reports one path in many as another.
        |shown| {
            if shown.kind == ShownKind::Batch && shown.leaves[0] % 50 == 7 {
                shown.leaves[0] ^= 1 << (shown.depth - 1);
            }
        },
        // The volume leaves out a path that was read.
        |shown| {
            if shown.kind == ShownKind::Batch && shown.leaves[0] % 50 == 7 {
                shown.leaves.remove(0);
            }
        },
        // The volume reports another table of places.
        |shown| {
            if let Some(rule) = &mut shown.rule
                && rule.places.len() > 200
            {
                rule.places.swap(150, 151);
            }
        },
    ];
    for lie in lies {
        let lied = sight(|recorder| drop(read(&disk, 0, recorder, lie)));
        assert!(finds(&judge_records(&lied, 1e-6), "places at the store"));
    }
}
