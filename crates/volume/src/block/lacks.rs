//! What a space has not, said in its implementation.

/// Answers parts of [`BlockSpace`](crate::BlockSpace) for a space that lacks them, within its
/// implementation.
///
/// - `resizing`: its size was fixed when it was made, and it does not know how much room there is.
/// - `deferring`: operations are carried out at once, and a removed block costs one.
/// - `absence`: every block may exist.
/// - `padding`: an operation shows what it needs.
/// - `idling`: it does nothing by itself.
/// - `ending`: a commit is all that its end needs.
/// - `readers`: each read takes its turn.
#[macro_export]
macro_rules! lacks {
    ($($what:ident),+ $(,)?) => { $($crate::lacks!(@ $what);)+ };
    (@ resizing) => {
        fn addressable_blocks(&self) -> u64 {
            self.capacity_blocks()
        }
        fn can_resize(&self) -> bool {
            false
        }
        fn set_capacity(&mut self, _: u64) -> $crate::Result<()> {
            let why = "the volume's size was fixed when it was made";
            Err($crate::Error::Invalid(why.into()))
        }
        fn room(&self) -> $crate::Result<Option<u64>> {
            Ok(None)
        }
    };
    (@ deferring) => {
        fn defer(&mut self, ops: Vec<oblivio_engine::BlockOp>) -> $crate::Result<()> {
            self.access(ops).map(drop)
        }
        fn discard(&mut self, _: &[u64]) -> $crate::Result<()> {
            Ok(())
        }
        fn erase(&mut self, ids: &[u64]) -> $crate::Result<()> {
            self.defer($crate::block::removals(ids))
        }
        fn erases_cheaply(&self) -> bool {
            false
        }
    };
    (@ absence) => {
        fn exists(&self, _: u64) -> bool {
            true
        }
        fn present(&self, ids: std::ops::Range<u64>) -> $crate::Result<Vec<bool>> {
            Ok(ids.map(|_| true).collect())
        }
    };
    (@ padding) => {
        fn end_operation(&mut self) -> $crate::Result<()> {
            Ok(())
        }
        fn pads(&self) -> bool {
            false
        }
        fn bring_up(&mut self, _: $crate::Least) -> $crate::Result<()> {
            Ok(())
        }
    };
    (@ idling) => {
        fn wants_commit(&self) -> bool {
            false
        }
        fn idle(&mut self) -> $crate::Result<Option<std::time::Duration>> {
            Ok(None)
        }
    };
    (@ ending) => {
        fn finish(&mut self) -> $crate::Result<()> {
            self.commit()
        }
        fn give_up(&mut self) {}
    };
    (@ readers) => {
        fn reader(&self) -> Option<std::sync::Arc<dyn $crate::BlockReader>> {
            None
        }
    };
}
