//! Runs every seed, and every input that once crashed a target, as an ordinary test.
//! `OBLIVIO_WRITE_SEEDS=1` writes the seeds anew.
#![allow(clippy::disallowed_methods, reason = "tests")]

use oblivio_crypto::Attempt;
use oblivio_crypto::{KdfParams, KeySlots, MasterKey, Passphrase, SeededEntropy, Tag, VolumeId};
use oblivio_engine::Action;
use oblivio_engine::pyramid::share::fuzzing as share;
use oblivio_engine::pyramid::share::{
    Answer, Ask, AskRefusal, Compare, Head, Outcome, Seq, Session,
};
use oblivio_engine::pyramid::{
    AskEvent, AskedBlock, Effect, Left, Merged, Name, Operation, RoundIntent, Seed, Settle,
    TableHome,
};
use oblivio_store::partition::Existing;
use oblivio_store::{
    Held, MemoryStore, Objects, PartitionPlace, PartitionStore, PutMode, ReadAt, Slots,
};
use oblivio_testkit::blocks::MemoryBlocks;
use oblivio_volume::fs::FileSystem;
use oblivio_volume::fuzzing::{self, Key};
use oblivio_volume::{CreateOptions, OpenOptions, Volume};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Target = (&'static str, fn(&[u8]), fn() -> Vec<Vec<u8>>);

const TARGETS: [Target; 22] = [
    ("header", oblivio_fuzz::header, header_seeds),
    ("key_slots", oblivio_fuzz::key_slots, slot_seeds),
    ("commit", oblivio_fuzz::commit, commit_seeds),
    ("journal", oblivio_fuzz::journal, journal_seeds),
    ("bucket", oblivio_fuzz::bucket, bucket_seeds),
    ("engine_state", oblivio_fuzz::engine_state, engine_state_seeds),
    ("volume_state", oblivio_fuzz::volume_state, volume_state_seeds),
    ("trace", oblivio_fuzz::trace, trace_seeds),
    ("fs_root", oblivio_fuzz::fs_root, fs_root_seeds),
    ("partition_table", oblivio_fuzz::partition_table, partition_seeds),
    ("nbd", oblivio_fuzz::nbd, nbd_seeds),
    ("quantum", oblivio_fuzz::quantum, quantum_seeds),
    ("map_node", oblivio_fuzz::map_node, map_node_seeds),
    ("sequential_state", oblivio_fuzz::sequential_state, sequential_state_seeds),
    ("sequential_times", oblivio_fuzz::sequential_times, sequential_times_seeds),
    ("watch", oblivio_fuzz::watch, watch_seeds),
    ("share_frame", oblivio_fuzz::share_frame, share_frame_seeds),
    ("share_ask", oblivio_fuzz::share_ask, share_ask_seeds),
    ("share_answer", oblivio_fuzz::share_answer, share_answer_seeds),
    ("share_notice", oblivio_fuzz::share_notice, share_notice_seeds),
    ("share_record", oblivio_fuzz::share_record, share_record_seeds),
    ("share_state", oblivio_fuzz::share_state, share_state_seeds),
];

/// Each target has its program, which is built with libFuzzer only.
#[test]
fn every_target_is_a_program() {
    let programs = fs::read_dir(here("fuzz_targets", "")).expect("readable").count();
    assert_eq!(programs, TARGETS.len());
    let manifest = fs::read_to_string(here("", "Cargo.toml")).expect("readable");
    for (name, ..) in TARGETS {
        let file = format!("fuzz_targets/{name}.rs");
        let program = fs::read_to_string(here("", &file)).expect("readable");
        assert!(program.contains(&format!("oblivio_fuzz::{name}(data)")), "{file}");
        assert!(manifest.contains(&format!("path = \"{file}\"")), "{file}");
    }
}

fn here(folder: &str, target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(target)
}

fn inputs(folder: &str, target: &str) -> Vec<Vec<u8>> {
    let Ok(entries) = fs::read_dir(here(folder, target)) else { return Vec::new() };
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("readable")).collect()
}

fn write_seeds(target: &str, seeds: &[Vec<u8>]) {
    fs::create_dir_all(here("seeds", target)).expect("writable");
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(here("seeds", target).join(number.to_string()), seed).expect("writable");
    }
}

#[test]
fn seeds_and_past_crashes_pass() {
    let write = std::env::var_os("OBLIVIO_WRITE_SEEDS").is_some();
    for (name, target, seeds) in TARGETS {
        if write {
            write_seeds(name, &seeds());
        }
        let seeds = inputs("seeds", name);
        assert!(!seeds.is_empty(), "{name} has seeds");
        seeds.iter().chain(&inputs("regressions", name)).for_each(|input| target(input));
    }
}

/// An object of a new volume's store.
fn stored(object: &str) -> Vec<u8> {
    let store = Arc::new(MemoryStore::new());
    let create = CreateOptions { block_bytes: 64, capacity_bytes: 8192, kdf: KdfParams::TEST };
    Volume::create(store.clone(), &Passphrase::new("seed"), create, OpenOptions::default())
        .expect("an empty store");
    let mut bytes = vec![0; store.len(object).expect("memory").expect("there") as usize];
    store.read(&mut [ReadAt { object, offset: 0, buf: &mut bytes }]).expect("memory");
    bytes
}

fn header_seeds() -> Vec<Vec<u8>> {
    vec![stored("header")]
}

fn slot_seeds() -> Vec<Vec<u8>> {
    let mut entropy = SeededEntropy::new(1);
    let (master, mut slots) = (MasterKey::generate(&mut entropy), KeySlots::new());
    let mut seeds = vec![slots.to_bytes().to_vec()];
    for passphrase in ["seed", "another"] {
        let passphrase = Passphrase::new(passphrase);
        slots
            .add(&master, VolumeId([7; 16]), &passphrase, KdfParams::TEST, &mut entropy)
            .expect("there is room");
        seeds.push(slots.to_bytes().to_vec());
    }
    seeds
}

fn tagged(tag: u8, rest: &[u8]) -> Vec<u8> {
    [&[tag], rest].concat()
}

fn commit_seeds() -> Vec<Vec<u8>> {
    let (even, odd) = (fuzzing::commit_plain(6), fuzzing::commit_plain(7));
    vec![
        tagged(0, &even),
        tagged(1, &fuzzing::commit_object(Key(1), [&even, &odd])),
        tagged(2, &[&even[..], &odd].concat()),
        tagged(2, &[&even[..], &odd, &[1, 0, 2, 3, 4]].concat()),
    ]
}

fn journal_seeds() -> Vec<Vec<u8>> {
    let plain: Vec<u8> = [1u64, 9, 2, 5, 6].iter().flat_map(|word| word.to_le_bytes()).collect();
    let three: Vec<u8> = (0..3).flat_map(|_| [1, 2, 3, 4, 5, 6, 7, 8, 200, 2]).collect();
    vec![
        tagged(0, &plain),
        tagged(1, &fuzzing::journal_of(Key(1), &plain)),
        tagged(2, &plain),
        [&[3, 3], &three[..]].concat(),
        [&[3, 3], &three[..], &[20, 30, 1, 9]].concat(),
        [&[4, 3], &three[..], &[3], &three[..], &[0, 1]].concat(),
        [&[4, 3], &three[..], &[3], &three[..], &[1, 0, 0, 1, 1, 0]].concat(),
    ]
}

/// Slots of plausible blocks: id, label, and zeros for the rest.
fn bucket_seeds() -> Vec<Vec<u8>> {
    let slots: Vec<u8> =
        (0..4u64).flat_map(|id| [id, id << 60]).flat_map(u64::to_le_bytes).collect();
    let mut seeds = Vec::new();
    for choice in 0..16 {
        let plain = [&slots[..], &[choice; 256]].concat();
        seeds.push([&[choice, 2], &plain[..], &plain, &plain, &[1, 2, 130, 195]].concat());
    }
    seeds
}

fn engine_state_seeds() -> Vec<Vec<u8>> {
    let choices = (0..128u8).step_by(5);
    let edited = [72, 0, 1, 9, 30, 1, 2, 3];
    let plain = choices.clone().map(|choice| vec![choice, 0, 0, 1, 2, 130, 195]);
    let edited = choices.map(|choice| [&[choice, 8, 0], &edited[..], &[1, 2, 130]].concat());
    plain.chain(edited).collect()
}

fn volume_state_seeds() -> Vec<Vec<u8>> {
    let words = [0u16, 1032, 1040, 1044, 1300, 1308, 1316, 1324, 1332, 1340, 1356, 1500];
    let edit = |at: u16, part: u8| [&[part + 3][..], &at.to_le_bytes(), &[1, 255]].concat();
    let edits = words.into_iter().flat_map(|at| [edit(at, 0), edit(at, 128)]);
    [vec![3], vec![131]].into_iter().chain(edits).collect()
}

fn trace_seeds() -> Vec<Vec<u8>> {
    let header = "{\"format\":\"oblivio-trace\",\"version\":4}\n";
    let begin = concat!(
        "{\"session\":{}}\n{\"volume\":{\"id\":\"01\",\"engine\":\"tree\"}}\n",
        "{\"call\":{\"act\":\"may_round_up\",\"on\":[[\"slab\",512,[0]]]}}\n",
        "{\"said\":{\"kind\":\"rule\",\"depth\":3,\"rule\":{\"blocks\":16,\"slots\":4,\"leaf_slots\":4,",
        "\"floor\":3,\"floor_slots\":4,\"cached\":1,\"bucket_bytes\":500,\"slot_bytes\":100,\"turn\":0,",
        "\"flush_at\":9,\"stored\":[[1,3]],\"places\":[0,512,1024]}}}\n",
    );
    let round = |leaf: u32| {
        format!(
            "{{\"call\":{{\"act\":\"write\",\"on\":[[\"journal\",69632,[0]]]}}}}\n\
             {{\"call\":{{\"act\":\"sync\",\"on\":[[\"journal\",0,[0]]]}}}}\n\
             {{\"call\":{{\"act\":\"read\",\"on\":[[\"slab\",500,[0,512]]]}}}}\n\
             {{\"said\":{{\"leaves\":[{leaf}],\"depth\":3}}}}\n{{\"failed\":2}}\n"
        )
    };
    let many: String = (0..40).map(|n| round(n * 5 % 8)).collect();
    let one = format!("{header}{begin}{}", round(1));
    vec![header.into(), one.clone().into(), format!("{one}{many}{one}").into()]
}

fn fs_root_seeds() -> Vec<Vec<u8>> {
    let blocks = MemoryBlocks::new(4096, 1 << 12, 1 << 16);
    let fs = FileSystem::format(blocks.boxed()).expect("there is room");
    let root = fs.into_blocks().expect("sound").root().to_vec();
    let edit = |at: u8| vec![1, at, 0, 1, 255];
    [tagged(0, &root), vec![1]].into_iter().chain([8, 10, 12, 16, 19, 32, 40].map(edit)).collect()
}

/// The newer table of a store with one object of each kind.
fn partition_seeds() -> Vec<Vec<u8>> {
    let path = std::env::temp_dir().join(format!("oblivio-seed-{}", std::process::id()));
    let places = [
        PartitionPlace::new("header", 1144),
        PartitionPlace::new("log", 1 << 20),
        PartitionPlace::fixed("disk", 5000),
    ];
    let store = PartitionStore::create(&path, &places, Existing::Overwrite).expect("a file");
    store.put("header", &[1; 1144], PutMode::Replace).expect("room");
    store.allocate("disk", 5000).expect("room");
    let bytes = fs::read(&path).expect("readable");
    fs::remove_file(&path).expect("removable");
    vec![bytes[4096..8192].to_vec()]
}

/// Negotiations of typical clients, with and without TLS, and requests of every kind.
fn nbd_seeds() -> Vec<Vec<u8>> {
    use oblivio_fuzz::choice::{BRIEF, READ_ONLY, STRUCTURED, TLS, TRANSMISSION};
    let option = |kind: u32, data: &[u8]| {
        let len = data.len() as u32;
        [b"IHAVEOPT", &kind.to_be_bytes()[..], &len.to_be_bytes(), data].concat()
    };
    let request = |flags: u16, command: u16, offset: u64, len: u32| {
        let (flags, command) = (flags.to_be_bytes(), command.to_be_bytes());
        let (offset, len) = (offset.to_be_bytes(), len.to_be_bytes());
        [&0x2560_9513u32.to_be_bytes()[..], &flags, &command, &[0; 8], &offset, &len].concat()
    };
    // The empty name and `base:allocation`; the empty name and four kinds of information.
    let context = [&[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 15][..], b"base:allocation"].concat();
    let about = [0, 0, 0, 0, 0, 4, 0, 0, 0, 1, 0, 2, 0, 3];
    let modern = [option(8, &[]), option(9, &context), option(10, &context), option(6, &about)];
    let modern = [modern.concat(), option(3, &[]), option(77, b"what"), option(7, &about)].concat();
    let read = request(0, 0, 5, 5000);
    let write = [request(1, 1, 3, 10), b"0123456789".to_vec()].concat();
    let rest = [request(0, 3, 0, 0), request(0, 7, 0, 1 << 20), request(0, 2, 0, 0)].concat();
    let all = [read, write, rest].concat();
    let flags = [0, 0, 0, 3];
    let named = [&[READ_ONLY, 0, 0, 0, 1][..], &option(1, &[]), &all].concat();
    let secure = [&[TLS][..], &flags, &option(3, &[]), &option(5, &[]), &modern, &all].concat();
    // In brief: reads, writes, trims, zeroes of all kinds, and requests beyond the end.
    let kinds = [[0, 0], [0, 1], [1, 1], [0, 3], [0, 4], [0, 6], [2, 6], [18, 6], [0, 7], [8, 7]];
    let places = [[0, 0, 0, 0, 16, 0], [1, 2, 3, 8, 0, 0], [15, 255, 255, 0, 0, 2]];
    let brief = kinds.iter().flat_map(|kind| places.iter().map(move |at| [&kind[..], at].concat()));
    let brief = brief.collect::<Vec<_>>().concat();
    vec![
        [&[0][..], &flags, &modern, &all].concat(),
        named,
        secure,
        [&[TLS][..], &flags, &option(7, &about), &option(2, &[])].concat(),
        [&[TRANSMISSION][..], &all].concat(),
        [&[TRANSMISSION | STRUCTURED][..], &all].concat(),
        [&[TRANSMISSION | BRIEF][..], &brief].concat(),
        [&[TRANSMISSION | BRIEF | STRUCTURED][..], &brief].concat(),
        [&[TRANSMISSION | BRIEF | STRUCTURED | READ_ONLY][..], &brief].concat(),
        [&[TRANSMISSION][..], &[9; 28]].concat(),
    ]
}

fn quantum_seeds() -> Vec<Vec<u8>> {
    use oblivio_volume::fuzzing::sequential::{All, BLOCK_BYTES, Said, quantum_of};
    let entries = vec![Said::Write(3, vec![7; BLOCK_BYTES]), Said::Discard(4), Said::Padding(500)];
    let all = All { first_write: 9, durable: 2, root: Some(b"root".to_vec()), entries };
    let entry = |kind: u8| [&[kind][..], &u64::from(kind).to_le_bytes()].concat();
    let three = [&[3][..], &entry(0), &entry(1), &entry(2)].concat();
    let log = [&[4][..], &three.repeat(4)].concat();
    vec![
        tagged(0, &quantum_of(&all)),
        tagged(1, &three),
        [&[1][..], &three, &[32, 0, 1, 9]].concat(),
        tagged(3, &log),
        // The second quantum's first bytes, and the last one's.
        [&[3][..], &log, &[0, 16, 1, 9]].concat(),
        [&[3][..], &log, &[0, 48, 1, 9]].concat(),
        [&[2][..], &log, &log, &[0, 1]].concat(),
        [&[2][..], &log, &log, &[1, 1, 0, 0, 0]].concat(),
    ]
}

/// Leaves and inner nodes of blocks in order, some discarded, and a fake.
fn map_node_seeds() -> Vec<Vec<u8>> {
    let line = |word: u64| [&word.to_le_bytes()[..], &[word as u8; 16]].concat();
    let lines = [3, 5 | 1 << 63, 9, u64::MAX].map(line).concat();
    let leaf = [&[4; 24][..], &lines, &[0; 40]].concat();
    let asked = |leaf: u8, block: u64| [&[4 << 1 | leaf][..], &block.to_le_bytes()].concat();
    let leaves =
        [0, 3, 5, 7, 9, 10, u64::MAX].map(|block| [asked(1, block), leaf.clone()].concat());
    let inner = [3, 7, u64::MAX >> 1].map(|block| [asked(0, block), lines.clone()].concat());
    leaves.into_iter().chain(inner).collect()
}

/// All parts of all volumes, unchanged and with a byte changed at various places.
fn sequential_state_seeds() -> Vec<Vec<u8>> {
    let places = [0u16, 8, 16, 24, 40, 48, 56, 88, 96, 1120, 1128, 1192, 1200, 1208, 1250, 1400];
    let edit = |at: u16, part: u8| [&[part | 28][..], &at.to_le_bytes(), &[1, 255]].concat();
    let edits = places.into_iter().flat_map(|at| [edit(at, 0), edit(at, 2)]);
    let times = [0u16, 1, 7, 20, 60].map(|at| edit(at, 1));
    [vec![28], vec![29], vec![30]].into_iter().chain(times).chain(edits).collect()
}

fn sequential_times_seeds() -> Vec<Vec<u8>> {
    let now = |choice: u8, now: u64| [&[choice][..], &now.to_le_bytes()].concat();
    let codes: Vec<u8> =
        [0u16, 1, 2, 3, 900, u16::MAX].iter().flat_map(|it| it.to_le_bytes()).collect();
    let places = [(0, 0), (0, 5), (0, 70_000), (1, 1 << 33), (1, u64::MAX)];
    places.map(|(choice, at)| [now(choice, at), codes.clone()].concat()).to_vec()
}

/// Feeds of typical commands, and requests of typical browsers.
fn watch_seeds() -> Vec<Vec<u8>> {
    let events = [
        r#"{"kind":"hello","version":2,"command":"put","pid":7}"#,
        r#"{"kind":"facts","block_bytes":1,"holds":"files","engine":"tree","bucket_bytes":2,"size_class_bytes":9,"depth":3}"#,
        r#"{"kind":"facts","block_bytes":1,"holds":"disk","engine":"sequential","capacity_bytes":4,"parts":[{"name":"log","bytes":9}]}"#,
        r#"{"kind":"shown","at":1,"depth":9,"paths":1,"reads":3,"writes":1,"bytes_read":9,"bytes_written":9,"places_read":[1,2],"places_written":[3]}"#,
        r#"{"kind":"written","at":1,"writes":2,"bytes":9,"places":[[0,4096],[1,1]],"flushes":null}"#,
        r#"{"kind":"ordinary","at":5,"what":"read","file":1,"size":2,"offset":3,"len":4}"#,
        r#"{"kind":"dropped","count":9}"#,
    ];
    let raw = |event: &&str| [&(event.len() as u32).to_le_bytes()[..], event.as_bytes()].concat();
    let brief = |event: &&str| [&(event.len() as u16).to_le_bytes()[..], event.as_bytes()].concat();
    let token = "0123456789abcdef0123456789abcdef";
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:4000\r\nA: b\r\n\r\n");
    let requests =
        ["/".into(), format!("/{token}/"), format!("/{token}/events"), format!("/{token}")];
    let mut seeds = vec![tagged(0, &events.iter().flat_map(raw).collect::<Vec<_>>())];
    seeds.extend(events.iter().map(|event| tagged(1, &brief(event))));
    seeds.push(tagged(1, &events.iter().flat_map(brief).collect::<Vec<_>>()));
    seeds.extend(requests.map(|path: String| tagged(2, get(&path).as_bytes())));
    seeds
}

/// Frames of every kind, as they come and as parts.
fn share_frame_seeds() -> Vec<Vec<u8>> {
    let seeds = oblivio_share::fuzzing::seeds();
    let part = |frame: &Vec<u8>| {
        let head = usize::from(frame[13]);
        let (head, body) = frame[17..].split_at_checked(head)?;
        let (head_len, body_len) = (u8::try_from(head.len()).ok()?, u8::try_from(body.len()).ok()?);
        Some([&[1, frame[4], head_len, body_len], head, body].concat())
    };
    let parts: Vec<Vec<u8>> = seeds.iter().filter_map(part).collect();
    seeds.iter().map(|frame| tagged(0, frame)).chain(parts).collect()
}

fn share_asks() -> Vec<Ask> {
    let name = Name { owner: [3; 16], index: 9 };
    let of = |action, and_read| Ask::new(name, Operation { action, and_read });
    vec![
        of(Action::Read, true),
        of(Action::Remove, false),
        of(Action::Write(vec![7; 64]), true),
        of(Action::Patch { offset: 5, bytes: vec![1; 9] }, false),
        of(Action::Patches(vec![(1, vec![2; 3]), (60, vec![4])]), false),
        of(Action::Read, false).only_if(Compare::Bytes(8, vec![6; 20])),
        of(Action::Write(Vec::new()), false).only_if(Compare::Absent),
        Ask::forget(name),
        Ask::end_of(Session(5)),
    ]
}

fn share_ask_seeds() -> Vec<Vec<u8>> {
    let asks = share_asks();
    asks.iter()
        .map(|ask| {
            share::ask_bytes(ask, share::TransactionPart::ALONE, Head::default()).expect("it fits")
        })
        .collect()
}

fn share_notice_seeds() -> Vec<Vec<u8>> {
    let head = Head { number: 9, tag: Tag([2; 16]) };
    let asks = share_asks();
    [0, 1, asks.len()].map(|count| share::notice_bytes(head, 7, &asks[..count])).into()
}

fn share_answer_seeds() -> Vec<Vec<u8>> {
    let answer = |done, refusal, content| Outcome {
        answer: Answer { done, content },
        refusal,
        live_blocks: 77,
    };
    let answers = [
        answer(true, None, None),
        answer(true, None, Some(vec![1; 64])),
        answer(false, None, Some(vec![2; 64])),
        answer(false, Some(AskRefusal::Full), None),
        answer(false, Some(AskRefusal::Gone), None),
    ];
    let head = (Head::default(), Tag::default());
    answers.iter().map(|answer| share::answer_bytes(answer, head)).collect()
}

fn share_record_seeds() -> Vec<Vec<u8>> {
    let name = |index| Name { owner: [1; 16], index };
    let asks = [Effect::Keeps, Effect::Creates, Effect::Forgets];
    let asks = (0..).map(name).zip(asks).collect();
    let left = vec![Left::Absent, Left::Block(vec![8; 64]), Left::Forgot, Left::Lost];
    let merged = Merged {
        home: TableHome(3),
        attempt: Attempt([4; 16]),
        left: vec![Some(vec![5; 64]), None],
        asked: vec![AskedBlock::Elsewhere, AskedBlock::Block(vec![6; 64]), AskedBlock::Lost],
    };
    let events = [
        AskEvent::Intent(RoundIntent { seed: Seed([2; 32]), asks }),
        AskEvent::Settle(Settle(left)),
        AskEvent::Merged(merged),
    ];
    let whose = [(Session(1), Seq(0)), (Session(2), Seq(5)), (Session(1), Seq(1))];
    events.iter().map(|event| share::record_bytes(event, &whose).expect("it fits")).collect()
}

/// Both states, unchanged and with a byte changed at various places.
fn share_state_seeds() -> Vec<Vec<u8>> {
    let at = |which: u8, place: usize, edit: &[u8]| {
        [&[which][..], &(place as u16).to_le_bytes(), edit].concat()
    };
    let mut seeds = vec![at(0, 0, &[]), at(1, 0, &[]), at(1, 100, &[0, 0, 0])];
    for (which, state) in (0..).zip(oblivio_fuzz::states()) {
        let places = (0..200).step_by(8).chain((200..state.len()).step_by(977));
        seeds.extend(places.map(|place| at(which, place, &[0, 0, 1, 0xff])));
    }
    seeds
}
