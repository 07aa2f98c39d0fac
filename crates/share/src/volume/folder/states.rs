//! The second copy of the clients' newest state: a file in the server's folder, also if the first
//! one is in a store somewhere else. The catalog has the sum of both.

use super::errors::{damaged, is_gone};
use super::files::{Files, name};
use super::healed::Healed;
use super::paired::SECOND;
use super::tables::Stored;
use blake3::Hasher;
use oblivio_store::share::{Checkpoint, Object, Result, ShareError};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that are copied at once.
const PIECE: usize = 1 << 20;

/// The second copies.
pub(super) struct States {
    files: Files,
    /// Those of states that nothing names.
    unneeded: Vec<Object>,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    /// What came of states so far, for their sums: neither copy has to be believed.
    came: BTreeMap<Object, (u64, Hasher)>,
    /// The state whose copy here is known to be whole.
    whole: Option<Object>,
}

/// A state, and the sum of both of its copies, if it is known.
#[derive(Clone, Copy)]
pub(super) struct State {
    pub named: Checkpoint,
    pub sum: Option<[u8; 32]>,
}

impl State {
    fn object(&self) -> Object {
        Object::Checkpoint(self.named.at)
    }
}

/// Which copies of a state are whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub first: bool,
    pub second: bool,
}

/// Something that has pieces of objects.
trait Pieces {
    fn read(&self, object: Object, offset: u64, into: &mut [u8]) -> Result<()>;
    fn write(&self, object: Object, offset: u64, piece: &[u8]) -> Result<()>;
    fn finish(&self, object: Object) -> Result<()>;
}

impl Pieces for Files {
    fn read(&self, object: Object, offset: u64, into: &mut [u8]) -> Result<()> {
        self.read(object, offset, into)
    }

    fn write(&self, object: Object, offset: u64, piece: &[u8]) -> Result<()> {
        self.write(object, offset, piece)
    }

    fn finish(&self, object: Object) -> Result<()> {
        self.finish(object)
    }
}

impl Pieces for Stored {
    fn read(&self, object: Object, offset: u64, into: &mut [u8]) -> Result<()> {
        self.read(object, offset, into)
    }

    fn write(&self, object: Object, offset: u64, piece: &[u8]) -> Result<()> {
        self.write(object, offset, piece)
    }

    fn finish(&self, object: Object) -> Result<()> {
        self.finish(object)
    }
}

/// The sum of an object of this length, each piece of which is passed on as well.
fn sum_of(
    from: &dyn Pieces,
    object: Object,
    len: u64,
    mut pass: impl FnMut(u64, &[u8]),
) -> Result<[u8; 32]> {
    let (mut piece, mut hasher) = (vec![0; PIECE], Hasher::new());
    for at in (0..len).step_by(PIECE) {
        let piece = &mut piece[..(len - at).min(PIECE as u64) as usize];
        from.read(object, at, piece)?;
        hasher.update(piece);
        pass(at, piece);
    }
    Ok(*hasher.finalize().as_bytes())
}

/// Makes a copy anew from another one, if that has the right sum. False if it has not; within, why
/// the copy could not be written.
fn copy(
    state: State,
    sum: [u8; 32],
    from: &dyn Pieces,
    to: &dyn Pieces,
) -> Result<(bool, Result<()>)> {
    let object = state.object();
    let mut written = Ok(());
    let found = sum_of(from, object, state.named.len, |at, piece| {
        if written.is_ok() {
            written = to.write(object, at, piece);
        }
    });
    let is_right = found? == sum;
    Ok((is_right, written.and_then(|()| if is_right { to.finish(object) } else { Ok(()) })))
}

impl States {
    /// Opens the copies in a folder. Those of states that are not among `objects` go with
    /// [`Self::clean`].
    pub fn open(dir: &Path, objects: impl Fn(Object) -> bool) -> Result<Self> {
        let (files, found) = Files::open(dir)?;
        let unneeded = found.into_keys().filter(|object| !objects(*object)).collect();
        Ok(Self { files, unneeded, inside: Mutex::default() })
    }

    /// All was checked: what nothing names goes.
    pub fn clean(&self) -> Result<()> {
        self.files.clean()?;
        self.unneeded.iter().try_for_each(|object| self.files.delete(*object))
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what came of a state, once its first copy has it.
    pub fn write(&self, object: Object, offset: u64, piece: &[u8]) -> Result<()> {
        self.files.write(object, offset, piece)?;
        let mut inside = self.inside();
        if offset == 0 {
            inside.came.insert(object, (0, Hasher::new()));
        }
        if let Some((len, hasher)) = inside.came.get_mut(&object).filter(|it| it.0 == offset) {
            *len += piece.len() as u64;
            hasher.update(piece);
        }
        Ok(())
    }

    pub fn finish(&self, object: Object) -> Result<()> {
        self.files.finish(object)
    }

    /// Reads a part of the copy here, if it is known to be whole.
    pub fn read(&self, object: Object, offset: u64, into: &mut [u8]) -> Result<()> {
        match self.inside().whole == Some(object) {
            true => self.files.read(object, offset, into),
            false => Err(ShareError::NoObject(object)),
        }
    }

    pub fn delete(&self, object: Object) -> Result<()> {
        {
            let mut inside = self.inside();
            inside.came.remove(&object);
            inside.whole.take_if(|whole| *whole == object);
        }
        self.files.delete(object)
    }

    /// The sum of a state that was just stored, both of whose copies have it now. It is that of
    /// what came, or of both copies, and never of one that the other one contradicts.
    pub fn sum(&self, first: &Stored, named: Checkpoint) -> Result<[u8; 32]> {
        let object = Object::Checkpoint(named.at);
        let came = self.inside().came.remove(&object).filter(|came| came.0 == named.len);
        let sum = match came {
            Some((_, hasher)) => *hasher.finalize().as_bytes(),
            // It was stored before the server's start.
            None => {
                let one = sum_of(first, object, named.len, |_, _| {}).map(Some);
                let one =
                    one.or_else(|error| if is_gone(&error) { Ok(None) } else { Err(error) })?;
                match (one, self.files.sum(object, named.len)) {
                    (Some(one), Some(two)) if one != two => {
                        return Err(damaged("the two copies of a state differ: store it again"));
                    }
                    (one, two) => one.or(two).ok_or(ShareError::NoObject(object))?,
                }
            }
        };
        let state = State { named, sum: Some(sum) };
        let whole = self.look(first, true, state)?;
        let _ = self.repair(first, state, whole);
        match whole.first || whole.second {
            true => Ok(sum),
            false => Err(damaged("neither copy of a state is what came")),
        }
    }

    /// Which copies of a state are whole. A first copy that is somewhere else, and there by its
    /// parts, is read only if the second one is not whole.
    pub fn look(&self, first: &Stored, is_there: bool, state: State) -> Result<Whole> {
        let (object, len) = (state.object(), state.named.len);
        let whole = match (state.sum, first) {
            (None, _) => Whole { first: is_there, second: false },
            (Some(sum), Stored::Here(files)) => Whole {
                first: files.sum(object, len) == Some(sum),
                second: self.files.sum(object, len) == Some(sum),
            },
            (Some(sum), Stored::Elsewhere(..)) => {
                let second = self.files.sum(object, len) == Some(sum);
                let read = is_there && !second && !first.is_lacking();
                let found = read.then(|| sum_of(first, object, len, |_, _| {}));
                let first = match found {
                    None => is_there,
                    Some(Ok(found)) => found == sum,
                    Some(Err(error)) if is_gone(&error) => false,
                    Some(Err(error)) => return Err(error),
                };
                Whole { first, second }
            }
        };
        self.inside().whole = whole.second.then_some(object);
        Ok(whole)
    }

    /// Makes a copy that is not whole again from the other one. What was damaged, if anything.
    pub fn repair(&self, first: &Stored, state: State, whole: Whole) -> Option<Healed> {
        let (object, sum) = (state.object(), state.sum?);
        let here: &dyn Pieces = &self.files;
        let first: &dyn Pieces = first;
        let (from, to, folder) = match (whole.first, whole.second) {
            (false, true) => (here, first, "tables".to_owned()),
            (true, false) => (first, here, format!("{SECOND}/states")),
            _ => return None,
        };
        let made = copy(state, sum, from, to).and_then(|(is_right, made)| match is_right {
            true => made,
            false => Err(damaged("the other copy is not what it was")),
        });
        if !whole.second && made.is_ok() {
            self.inside().whole = Some(object);
        }
        Some(Healed::new(format!("{folder}/{}", name(object)), made))
    }
}
