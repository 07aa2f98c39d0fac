//! [`AnyStore`]: a store of either kind, as somebody has it who does not know yet which port the
//! volume in it needs.

use crate::{Layer, Objects, Result, Store, StoreAnswer, StoreCall, StoreError};
use std::sync::Arc;

/// A store of either kind. As a layer it has the port that both have.
#[derive(Clone)]
pub enum AnyStore {
    /// It has whole objects only.
    Objects(Arc<dyn Objects>),
    /// It also writes over.
    Over(Arc<dyn Store>),
}

impl AnyStore {
    /// Its objects.
    #[must_use]
    pub fn objects(&self) -> Arc<dyn Objects> {
        match self {
            Self::Objects(store) => Arc::clone(store),
            Self::Over(store) => Arc::clone(store) as Arc<dyn Objects>,
        }
    }

    /// The store, if it writes over.
    ///
    /// # Errors
    /// `Io` for one that has whole objects only.
    pub fn over(&self) -> Result<Arc<dyn Store>> {
        match self {
            Self::Objects(_) => Err(StoreError::refused("", "the store has whole objects only")),
            Self::Over(store) => Ok(Arc::clone(store)),
        }
    }

    /// Takes the right to write. It is granted where the store has whole objects only: there the
    /// sessions of a volume keep each other out.
    ///
    /// # Errors
    /// As [`Lease::lock`](crate::Lease::lock).
    pub fn lock(&self) -> Result<()> {
        self.answer(&mut StoreCall::Lock).map(drop)
    }
}

impl Layer for AnyStore {
    type Below = dyn Objects;

    fn below(&self) -> &Self::Below {
        match self {
            Self::Objects(store) => &**store,
            Self::Over(store) => &**store,
        }
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        call.on(self.below())
    }
}

impl From<Arc<dyn Objects>> for AnyStore {
    fn from(store: Arc<dyn Objects>) -> Self {
        Self::Objects(store)
    }
}

impl From<Arc<dyn Store>> for AnyStore {
    fn from(store: Arc<dyn Store>) -> Self {
        Self::Over(store)
    }
}

impl<S: Store + 'static> From<Arc<S>> for AnyStore {
    fn from(store: Arc<S>) -> Self {
        Self::Over(store)
    }
}

/// Puts the same layer over a store of either kind: `layered!(store, below => Layer::new(below))`.
#[macro_export]
macro_rules! layered {
    ($store:expr, $below:ident => $layer:expr) => {
        match $store {
            $crate::AnyStore::Objects($below) => {
                $crate::AnyStore::Objects(::std::sync::Arc::new($layer))
            }
            $crate::AnyStore::Over($below) => $crate::AnyStore::Over(::std::sync::Arc::new($layer)),
        }
    };
}
