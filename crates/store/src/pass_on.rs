//! Passes on the calls that a layer over a store does not handle.

/// In an `impl Store`: the named methods pass on to another store, as in
/// `pass_on!(self => self.inner; len list lock);`.
#[macro_export]
macro_rules! pass_on {
    ($this:ident => $inner:expr; $($method:ident)*) => {
        $($crate::pass_on!(@ $method $this $inner);)*
    };
    (@ read $this:ident $inner:expr) => {
        fn read(&$this, reads: &mut [$crate::ReadAt<'_>]) -> $crate::Result<()> {
            $crate::Store::read(&$inner, reads)
        }
    };
    (@ write $this:ident $inner:expr) => {
        fn write(&$this, writes: &[$crate::WriteAt<'_>]) -> $crate::Result<()> {
            $crate::Store::write(&$inner, writes)
        }
    };
    (@ write_durable $this:ident $inner:expr) => {
        fn write_durable(&$this, object: &str, offset: u64, data: &[u8]) -> $crate::Result<()> {
            $crate::Store::write_durable(&$inner, object, offset, data)
        }
    };
    (@ sync $this:ident $inner:expr) => {
        fn sync(&$this, objects: &[&str]) -> $crate::Result<()> {
            $crate::Store::sync(&$inner, objects)
        }
    };
    (@ len $this:ident $inner:expr) => {
        fn len(&$this, object: &str) -> $crate::Result<Option<u64>> {
            $crate::Store::len(&$inner, object)
        }
    };
    (@ put $this:ident $inner:expr) => {
        fn put(&$this, object: &str, data: &[u8], mode: $crate::PutMode) -> $crate::Result<()> {
            $crate::Store::put(&$inner, object, data, mode)
        }
    };
    (@ truncate $this:ident $inner:expr) => {
        fn truncate(&$this, object: &str, len: u64) -> $crate::Result<()> {
            $crate::Store::truncate(&$inner, object, len)
        }
    };
    (@ allocate $this:ident $inner:expr) => {
        fn allocate(&$this, object: &str, len: u64) -> $crate::Result<()> {
            $crate::Store::allocate(&$inner, object, len)
        }
    };
    (@ discard $this:ident $inner:expr) => {
        fn discard(&$this, ranges: &[(&str, u64, u64)]) -> $crate::Result<()> {
            $crate::Store::discard(&$inner, ranges)
        }
    };
    (@ free_bytes $this:ident $inner:expr) => {
        fn free_bytes(&$this) -> $crate::Result<Option<u64>> {
            $crate::Store::free_bytes(&$inner)
        }
    };
    (@ delete $this:ident $inner:expr) => {
        fn delete(&$this, objects: &[&str]) -> $crate::Result<()> {
            $crate::Store::delete(&$inner, objects)
        }
    };
    (@ list $this:ident $inner:expr) => {
        fn list(&$this) -> $crate::Result<Vec<(String, u64)>> {
            $crate::Store::list(&$inner)
        }
    };
    (@ lock $this:ident $inner:expr) => {
        fn lock(&$this) -> $crate::Result<()> {
            $crate::Store::lock(&$inner)
        }
    };
    (@ may_keep $this:ident $inner:expr) => {
        fn may_keep(&$this, bytes: usize) {
            $crate::Store::may_keep(&$inner, bytes);
        }
    };
    (@ may_round_up $this:ident $inner:expr) => {
        fn may_round_up(&$this, object: &str, align: usize) {
            $crate::Store::may_round_up(&$inner, object, align);
        }
    };
    (@ expect_reads $this:ident $inner:expr) => {
        fn expect_reads(&$this, ranges: &[(&str, u64, u64)]) {
            $crate::Store::expect_reads(&$inner, ranges);
        }
    };
}
