//! A pointer to a store is a store: layers and callers accept `Arc<dyn Store>`, `Box<dyn Store>`
//! and references.

use crate::{Store, pass_on};
use std::sync::Arc;

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<S: Store + ?Sized> Store for $pointer {
            pass_on!(self => **self; read write write_durable sync len put truncate allocate discard);
            pass_on!(self => **self; free_bytes delete list lock may_keep may_round_up expect_reads);
        }
    )*};
}

forward!(Arc<S>, Box<S>, &S);
