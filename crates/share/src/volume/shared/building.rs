//! What the scribe stores in pieces: tables and checkpoints.

use super::super::keeper::{Change, Keeper};
use super::super::limits::{BEYOND_QUOTA, MOST_PARTIAL};
use super::{Shared, lock};
use oblivio_store::share::{
    Checkpoint, MOST_PIECE_BYTES, MOST_READ_BYTES, Number, Object, Result, ScribeTerm, ShareError,
};

impl<K: Keeper> Shared<K> {
    pub(super) fn upload(
        &self,
        term: ScribeTerm,
        object: Object,
        offset: u64,
        piece: &[u8],
    ) -> Result<()> {
        if piece.len() > MOST_PIECE_BYTES {
            return Err(ShareError::invalid("the piece is too long"));
        }
        let _building = lock(&self.building);
        let state = self.admit(term)?;
        let (len, partial) = (state.index.objects.len(object), state.index.objects.partial(object));
        self.within(&state, BEYOND_QUOTA)?;
        drop(state);
        let end = offset.checked_add(piece.len() as u64).ok_or(ShareError::NoObject(object))?;
        if len.is_some_and(|len| end <= len) {
            let mut stored = vec![0; piece.len()];
            self.keeper.read(object, offset, &mut stored)?;
            let same = stored == piece;
            return if same { Ok(()) } else { Err(ShareError::invalid("another piece is here")) };
        }
        if partial != Some(offset) {
            return Err(ShareError::NoObject(object));
        }
        if len.is_none() && self.state().index.objects.partials() >= MOST_PARTIAL {
            return Err(ShareError::Busy);
        }
        self.keeper.write(object, offset, piece)?;
        self.state().index.objects.grow(object, piece.len() as u64);
        Ok(())
    }

    pub(super) fn finish(&self, term: ScribeTerm, object: Object, len: u64) -> Result<()> {
        let _building = lock(&self.building);
        let state = self.admit(term)?;
        let unit = match object {
            Object::Table(_) => u64::from(state.slot_bytes()?),
            Object::Checkpoint(_) => 1,
        };
        let (held, partial) =
            (state.index.objects.len(object), state.index.objects.partial(object));
        drop(state);
        if len == 0 || held != Some(len) || !len.is_multiple_of(unit) {
            return Err(ShareError::NoObject(object));
        }
        if partial.is_some() {
            self.keeper.finish(object)?;
            self.state().index.objects.finished(object);
        }
        Ok(())
    }

    pub(super) fn save(&self, term: ScribeTerm, at: Number, keep_from: Number) -> Result<()> {
        let _building = lock(&self.building);
        let state = self.admit(term)?;
        if state.catalog.checkpoint.is_some_and(|it| it.at == at) {
            return Ok(());
        }
        let object = Object::Checkpoint(at);
        let len = state.index.objects.len(object).unwrap_or(0);
        if !state.index.objects.is_finished(object) {
            return Err(ShareError::NoObject(object));
        }
        let (first, next) = (state.index.first(), state.index.next());
        drop(state);
        if at > next || keep_from > at || keep_from < first {
            return Err(ShareError::invalid("a checkpoint of records that are not here"));
        }
        self.sync_before(at)?;
        if !self.state().index.may_forget(keep_from) {
            return Err(ShareError::invalid("a batch without answers would go"));
        }
        let checkpoint = Checkpoint { at, len };
        let sum = self.keeper.sum(checkpoint)?;
        self.commit(&[Change::Checkpoint { checkpoint, first: keep_from, sum }])?;
        let others = {
            let mut state = self.state();
            state.index.forget(keep_from);
            state.index.objects.name_checkpoint(at)
        };
        others.into_iter().try_for_each(|object| self.keeper.delete(object))?;
        self.keeper.forget(keep_from, at)
    }

    /// The newest checkpoint, whole if any copy of it is.
    pub(super) fn checkpoint(&self) -> Result<Option<Checkpoint>> {
        let _building = lock(&self.building);
        let (checkpoint, sum) = {
            let state = self.state();
            (state.catalog.checkpoint, state.catalog.sum)
        };
        if let (Some(checkpoint), Some(sum)) = (checkpoint, sum) {
            self.keeper.mend(checkpoint, sum)?;
        }
        Ok(checkpoint)
    }

    pub(super) fn read_checkpoint(&self, at: Number, offset: u64, len: usize) -> Result<Vec<u8>> {
        let known = self.state().catalog.checkpoint.filter(|it| it.at == at);
        let object = Object::Checkpoint(at);
        let end = offset.checked_add(len as u64);
        let held = known.zip(end).is_some_and(|(known, end)| end <= known.len);
        if !held || len > MOST_READ_BYTES {
            return Err(ShareError::NoObject(object));
        }
        let mut bytes = vec![0; len];
        self.keeper.read(object, offset, &mut bytes)?;
        Ok(bytes)
    }
}
