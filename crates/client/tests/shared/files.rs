//! The file system over clients.

use super::{Line, World, clock, passphrase};
use oblivio_client::files::Files;
use oblivio_client::{NewShared, create};
use oblivio_crypto::{Entropy, KdfParams, OsEntropy};
use oblivio_privatefs::{Action, Ask, Compare, Name, Transactions};
use oblivio_privatefs::{Environment, Error, NewNode, Options, PrivateFs, ROOT, Timestamp};
use oblivio_store::share::{MemoryShare, Share};
use std::sync::Arc;

const NODE: NewNode = NewNode { mode: 0o644, uid: 1, gid: 1 };

fn environment() -> Environment {
    Environment {
        now: Box::new(|| Timestamp { seconds: 1, nanos: 0 }),
        random: Box::new(|| {
            let mut bytes = [0; 16];
            OsEntropy.fill(&mut bytes);
            bytes
        }),
    }
}

fn strict() -> Options {
    Options { strict: true, ..Options::default() }
}

fn world() -> World {
    let share: Arc<dyn Share> = Arc::new(MemoryShare::new(clock()));
    let new = NewShared { block_bytes: 1024, capacity_bytes: 1 << 20, kdf: KdfParams::TEST };
    let keyed = create(&*share, &new, &passphrase()).unwrap();
    World { line: Line::to(share), keyed }
}

fn mounted(world: &World) -> (Arc<Files>, PrivateFs) {
    let files = Arc::new(Files::new(world.client().0).unwrap());
    let fs = PrivateFs::new(Arc::clone(&files) as _, environment(), strict()).unwrap();
    fs.create_root(NewNode { mode: 0o755, uid: 1, gid: 1 }).unwrap();
    (files, fs)
}

#[test]
fn two_computers_use_one_directory() {
    let world = world();
    let ((one_files, one), (two_files, two)) = (mounted(&world), mounted(&world));
    let file = one.create(ROOT, b"letter", NODE).unwrap();
    one.open(file.id).unwrap();
    let text: Vec<u8> = (0..5000_u32).map(|at| at as u8).collect();
    one.write(file.id, 0, &text).unwrap();
    one.close(file.id).unwrap();
    let seen = two.lookup(ROOT, b"letter").unwrap();
    assert_eq!(two.read(seen.id, 0, 6000).unwrap(), text);
    assert!(matches!(two.create(ROOT, b"letter", NODE), Err(Error::Exists)));
    two.unlink(ROOT, b"letter").unwrap();
    assert!(matches!(one.lookup(ROOT, b"letter"), Err(Error::NotFound)));
    let findings = one.check().unwrap();
    assert!(findings.problems.is_empty(), "{findings:?}");
    one_files.close().unwrap();
    two_files.close().unwrap();
}

#[test]
fn whether_another_session_lives_is_known() {
    let world = world();
    let (one, two) = (mounted(&world).0, mounted(&world).0);
    let session = two.session();
    assert!(one.is_live(&session).unwrap() && one.is_live(&one.session()).unwrap());
    two.close().unwrap();
    assert!(!one.is_live(&session).unwrap());
    let (mut total, space) = (0, one.space().unwrap());
    total += space.total;
    assert!(total == 1024 && space.free < space.total, "{space:?}");
    one.close().unwrap();
}

#[test]
fn a_transaction_of_the_file_system_is_whole_or_absent() {
    let world = world();
    let (files, _) = mounted(&world);
    let name = |index| Name { owner: [9; 16], index };
    let write = |index, compare| Ask::change(name(index), Action::Write(vec![7; 8]), compare);
    let asks = [write(0, Compare::Absent), write(1, Compare::Exists)];
    assert!(files.carry_out(&asks).unwrap().iter().all(|answer| !answer.done));
    assert_eq!(files.carry_out(&[Ask::read(name(0))]).unwrap()[0].content, None);
    let asks = [write(0, Compare::Absent), write(1, Compare::Absent)];
    assert!(files.carry_out(&asks).unwrap().iter().all(|answer| answer.done));
    files.close().unwrap();
}
