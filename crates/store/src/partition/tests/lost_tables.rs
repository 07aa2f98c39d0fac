//! One copy of the table of contents is lost.

use super::{Disk, content, layout, new, write};
use crate::partition::objects::Objects;
use crate::partition::table::{self, BLOCK};
use crate::{PutMode, Result};

/// Either copy of the table is damaged or cannot be read: the other one counts, and the next sync
/// makes both whole, whatever the crash before.
#[test]
fn a_lost_copy_of_the_table_is_made_again() -> Result<()> {
    let (disk, objects) = new();
    objects.put("header", b"one", PutMode::Replace)?;
    write(&objects, "disk", 0, &[1; 5000])?;
    objects.sync(&["disk"])?;
    let before = content(&objects);
    objects.put("spare", b"last", PutMode::Replace)?;
    let after = content(&objects);
    drop(objects);
    let whole = disk.range(0, layout().size as usize);
    for copy in [0, BLOCK] {
        for unreadable in [false, true] {
            let harmed = || {
                let harmed = Disk::holding(&whole);
                if unreadable {
                    *harmed.bad.lock().expect("lock") = Some(copy);
                } else {
                    harmed.store.write_at(&[7; 512], copy + 1024).expect("write");
                    harmed.store.sync().expect("sync");
                }
                harmed
            };
            let disk = harmed();
            let objects = Objects::open(disk.clone()).expect("the other copy");
            let found = content(&objects);
            assert!([&before, &after].contains(&&found), "copy {copy}");
            assert_eq!(found["header"], b"one");
            objects.sync(&["disk"])?;
            assert!(content(&objects) == found);
            drop(objects);
            for copy in [0, BLOCK] {
                assert!(table::decode(&disk.range(copy, BLOCK as usize)).is_some(), "{copy}");
            }
            assert!(content(&Objects::open(disk).expect("whole")) == found);
            // A crash in the middle of that.
            for at in 0..2 {
                let disk = harmed();
                let start = disk.store.operations();
                let objects = Objects::open(disk.clone()).expect("the other copy");
                disk.store.crash_after(start + at);
                drop(objects.sync(&["disk"]));
                for seed in 0..20 {
                    let left = Disk::holding(&disk.store.survivors(seed));
                    // What could not be read perhaps can be, after all.
                    let found = content(&Objects::open(left).expect("a whole one"));
                    assert!([&before, &after].contains(&&found), "copy {copy}, {at}");
                }
            }
        }
    }
    Ok(())
}
