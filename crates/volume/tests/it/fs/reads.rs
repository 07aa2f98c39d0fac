//! Many reads at once.

use super::*;

#[test]
fn many_reads_make_one_access_with_each_block_once() {
    let (disk, fs) = fresh(4_000);
    let mut handles = Vec::new();
    for i in 0..20u8 {
        let (_, handle) = open_new(&fs, &format!("f{i}"));
        fs.write(handle, 0, &vec![i; 3 * 4_096 + 500]).unwrap();
        handles.push(handle);
    }
    let fs = {
        let blocks = fs.into_blocks().unwrap();
        FileSystem::open(blocks).unwrap()
    };
    let inos = fs.read_dir(ROOT_INO, None, 100).unwrap();
    let open = inos.iter().map(|entry| fs.open_file(entry.ino).unwrap());
    let handles: Vec<Handle> = open.collect();
    let firsts: Vec<u8> = handles.iter().map(|&h| fs.read(h, 0, 1).unwrap()[0]).collect();
    let before = disk.counts();
    let mut requests: Vec<_> = handles.iter().map(|&handle| (handle, 4_096, 8_192)).collect();
    requests.extend(handles.iter().map(|&handle| (handle, 5_000, 3_000)));
    requests.push((handles[0], 1 << 40, 10));
    let answers = read_many(&fs, &requests);
    let after = disk.counts();
    assert_eq!((after.0 - before.0, after.1 - before.1), (1, 40));
    for (i, first) in firsts.into_iter().enumerate() {
        assert_eq!(answers[i].as_ref().unwrap(), &vec![first; 8_192]);
        assert_eq!(answers[20 + i].as_ref().unwrap(), &vec![first; 3_000]);
    }
    assert_eq!(answers[40].as_ref().unwrap(), &Vec::<u8>::new());
    assert!(read_many(&fs, &[]).is_empty());
}

#[test]
fn a_request_that_fails_leaves_the_others_alone() {
    let (disk, fs) = fresh(2_000);
    let (_, closed) = open_new(&fs, "closed");
    fs.close(closed).unwrap();
    let (_, handle) = open_new(&fs, "f");
    fs.write(handle, 0, &[4; 9_000]).unwrap();
    let (_, hole) = open_new(&fs, "hole");
    fs.allocate(hole, 0, 4_096, false).unwrap();
    fs.commit().unwrap();
    let requests = [(closed, 0, 5), (handle, 0, 5), (hole, 0, 5)];
    let answers = read_many(&fs, &requests);
    assert!(matches!(answers[0], Err(Error::Invalid(_))));
    assert_eq!(answers[1].as_ref().unwrap(), &[4; 5]);
    disk.fail_after(Some(0));
    let answers = read_many(&fs, &[(handle, 4_096, 4_096), (hole, 0, 5), (handle, 4_096, 9)]);
    assert!(matches!(answers[0], Err(Error::Store(_))));
    assert_eq!(answers[1].as_ref().unwrap(), &[0; 5], "needs no block");
    assert!(answers[2].is_err());
    disk.fail_after(None);
    assert_eq!(fs.read(handle, 4_096, 9).unwrap(), [4; 9]);
}
