//! What volumes keep beside an engine's own objects, if it journals what it shows: a `journal` of
//! sealed records, the `writes` in them, sealed `state`s, and the `commit` that makes one current.

pub(crate) mod commit;
pub(crate) mod journal;
pub(crate) mod record;
pub(crate) mod state;
pub(crate) mod writes;
