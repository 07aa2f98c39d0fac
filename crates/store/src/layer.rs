//! [`Layer`]: a store that changes the calls of the store below.
//!
//! A call is a value, so a layer is one function: it looks at a call, passes it on or not, and
//! looks at the answer. A new method of a port passes through all layers by itself. A layer has the
//! ports that the store below has.

use crate::ports::{
    Held, Hint, Lease, Log, Objects, PutMode, Slots, Store, StoreAnswer, StoreCall,
    allocate_in_parts,
};
use crate::{Capabilities, ReadAt, Result, WriteAt};
use std::sync::Arc;

impl StoreAnswer {
    fn number(self) -> Option<u64> {
        if let Self::Number(number) = self { number } else { None }
    }

    fn numbers(self) -> Vec<Option<u64>> {
        if let Self::Numbers(numbers) = self { numbers } else { Vec::new() }
    }

    fn objects(self) -> Vec<(String, u64)> {
        if let Self::Objects(objects) = self { objects } else { Vec::new() }
    }
}

impl StoreCall<'_, '_> {
    /// Makes a call of several parts to `store` part by part: a durable write as a write and a
    /// sync, an allocation by writing and extending. `None` for any other call. A layer that judges
    /// each part passes itself.
    pub fn in_parts<S: Slots + ?Sized>(&self, store: &S) -> Option<Result<StoreAnswer>> {
        let done = match self {
            Self::WriteDurable(it) => store.write(&[*it]).and_then(|()| store.sync(&[it.object])),
            Self::Allocate(object, len) => allocate_in_parts(store, object, *len),
            _ => return None,
        };
        Some(done.map(StoreAnswer::from))
    }

    /// Hands over each range that the call is about: object, offset, length. The length is that of
    /// the bytes, for a truncation or an allocation that of the object, for [`Hint::RoundUp`] the
    /// multiple. A call about no object has one range without a name.
    pub fn ranges(&self, each: &mut dyn FnMut(&str, u64, u64)) {
        match self {
            Self::Read(reads) => {
                reads.iter().for_each(|it| each(it.object, it.offset, it.buf.len() as u64));
            }
            Self::Write(writes) => {
                writes.iter().for_each(|it| each(it.object, it.offset, it.data.len() as u64));
            }
            Self::WriteDurable(it) => each(it.object, it.offset, it.data.len() as u64),
            Self::Put(object, data, _) => each(object, 0, data.len() as u64),
            Self::Begin(objects) => {
                objects.iter().for_each(|(object, data)| each(object, 0, data.len() as u64));
            }
            Self::Truncate(object, len) | Self::Allocate(object, len) => each(object, 0, *len),
            Self::Discard(ranges) => ranges.iter().for_each(|it| each(it.0, it.1, it.2)),
            Self::Hint(Hint::Reads(ranges)) => {
                ranges.iter().for_each(|it| each(it.0, it.1, it.2));
            }
            Self::Sync(objects)
            | Self::Settle(objects)
            | Self::Delete(objects)
            | Self::Lens(objects) => {
                objects.iter().for_each(|object| each(object, 0, 0));
            }
            Self::Len(object) | Self::ListUnder(object) => {
                each(object, 0, 0);
            }
            Self::Hint(Hint::Keep(bytes)) => each("", 0, *bytes as u64),
            Self::Hint(Hint::RoundUp { object, align }) => each(object, 0, *align as u64),
            Self::List | Self::FreeBytes | Self::Lock => each("", 0, 0),
            Self::Hint(Hint::BeforeRepeat(_)) => {}
        }
    }

    /// Bytes that the call sends to the store.
    #[must_use]
    pub fn bytes_up(&self) -> u64 {
        match self {
            Self::Write(writes) => writes.iter().map(|write| write.data.len() as u64).sum(),
            Self::WriteDurable(write) => write.data.len() as u64,
            Self::Put(_, data, _) => data.len() as u64,
            Self::Begin(objects) => objects.iter().map(|it| it.1.len() as u64).sum(),
            _ => 0,
        }
    }

    /// Bytes of objects that the call asks of the store.
    #[must_use]
    pub fn bytes_down(&self) -> u64 {
        match self {
            Self::Read(reads) => reads.iter().map(|read| read.buf.len() as u64).sum(),
            _ => 0,
        }
    }
}

/// A layer over a store. It has the ports of that store.
pub trait Layer: Send + Sync {
    /// The store below.
    type Below: Objects + ?Sized;

    /// The store below.
    fn below(&self) -> &Self::Below;

    /// What it can do: mostly what the store below can.
    fn can(&self) -> Capabilities {
        self.below().capabilities()
    }

    /// Answers a call, mostly by making it to the store below.
    ///
    /// # Errors
    /// Those of the store below, and the layer's own.
    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer>;
}

impl<L: Layer + ?Sized> Held for L {
    fn capabilities(&self) -> Capabilities {
        self.can()
    }

    fn read(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        self.call(&mut StoreCall::Read(reads)).map(drop)
    }

    fn len(&self, object: &str) -> Result<Option<u64>> {
        self.call(&mut StoreCall::Len(object)).map(StoreAnswer::number)
    }

    fn lens(&self, objects: &[&str]) -> Result<Vec<Option<u64>>> {
        self.call(&mut StoreCall::Lens(objects)).map(StoreAnswer::numbers)
    }

    fn list(&self) -> Result<Vec<(String, u64)>> {
        self.call(&mut StoreCall::List).map(StoreAnswer::objects)
    }

    fn list_under(&self, prefix: &str) -> Result<Vec<(String, u64)>> {
        self.call(&mut StoreCall::ListUnder(prefix)).map(StoreAnswer::objects)
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        self.call(&mut StoreCall::FreeBytes).map(StoreAnswer::number)
    }

    fn hint(&self, hint: Hint<'_>) {
        // A hint that fails is a hint ignored.
        let _ = self.call(&mut StoreCall::Hint(hint));
    }
}

impl<L: Layer<Below: Store> + ?Sized> Log for L {
    fn write_durable(&self, object: &str, offset: u64, data: &[u8]) -> Result<()> {
        self.call(&mut StoreCall::WriteDurable(WriteAt::new(object, offset, data))).map(drop)
    }

    fn truncate(&self, object: &str, len: u64) -> Result<()> {
        self.call(&mut StoreCall::Truncate(object, len)).map(drop)
    }
}

impl<L: Layer<Below: Store> + ?Sized> Slots for L {
    fn write(&self, writes: &[WriteAt<'_>]) -> Result<()> {
        self.call(&mut StoreCall::Write(writes)).map(drop)
    }

    fn sync(&self, objects: &[&str]) -> Result<()> {
        self.call(&mut StoreCall::Sync(objects)).map(drop)
    }

    fn allocate(&self, object: &str, len: u64) -> Result<()> {
        self.call(&mut StoreCall::Allocate(object, len)).map(drop)
    }

    fn discard(&self, ranges: &[(&str, u64, u64)]) -> Result<()> {
        self.call(&mut StoreCall::Discard(ranges)).map(drop)
    }
}

impl<L: Layer + ?Sized> Objects for L {
    fn put(&self, object: &str, data: &[u8], mode: PutMode) -> Result<()> {
        self.call(&mut StoreCall::Put(object, data, mode)).map(drop)
    }

    fn begin(&self, objects: &[(&str, &[u8])]) -> Result<()> {
        self.call(&mut StoreCall::Begin(objects)).map(drop)
    }

    fn settle(&self, objects: &[&str]) -> Result<()> {
        self.call(&mut StoreCall::Settle(objects)).map(drop)
    }

    fn delete(&self, objects: &[&str]) -> Result<()> {
        self.call(&mut StoreCall::Delete(objects)).map(drop)
    }

    fn answer(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        self.call(call)
    }
}

impl<L: Layer<Below: Store> + ?Sized> Lease for L {
    fn lock(&self) -> Result<()> {
        self.call(&mut StoreCall::Lock).map(drop)
    }
}

/// A pointer to a store is a layer that changes nothing: callers and layers accept it.
macro_rules! pointer {
    ($($pointer:ty),*) => {$(
        impl<S: Objects + ?Sized> Layer for $pointer {
            type Below = S;

            fn below(&self) -> &S {
                self
            }

            fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
                call.on(&**self)
            }
        }
    )*};
}

pointer!(Arc<S>, Box<S>, &S);
