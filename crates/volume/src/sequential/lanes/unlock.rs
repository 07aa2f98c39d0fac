//! Finding out which lanes a passphrase opens.
//!
//! Everybody's passphrase is tried on all slots in front of all states of all lanes, whatever else
//! it opens. So the time tells nothing.

use super::form::LaneForm;
use crate::Result;
use crate::header::Header;
use crate::sequential::header::layout;
use oblivio_crypto::{
    LANE_SLOTS_BYTES, LaneKey, LanePlace, LaneSecrets, MasterKey, Passphrase, Randomness, VolumeId,
};
use oblivio_store::{AnyStore, ReadAt};

/// The keys of a lane that a passphrase opened.
pub struct LaneMaster {
    /// Which one, counted from 0.
    pub(crate) lane: u8,
    /// Its master key.
    pub(crate) master: MasterKey,
    /// Those of the volume and of the lanes before it.
    pub(crate) before: Vec<MasterKey>,
}

impl LaneMaster {
    /// Fresh keys of a lane beside a volume with this key.
    pub(super) fn generate(lane: u8, before: Vec<MasterKey>, randomness: &Randomness) -> Self {
        Self { lane, master: MasterKey::generate(&mut randomness.clone()), before }
    }

    /// The volume's own key.
    pub(crate) fn volume(&self) -> Option<&MasterKey> {
        self.before.first()
    }
}

/// The lanes of a volume that a passphrase opens. None where their states cannot be read: the
/// volume goes on without them.
///
/// # Errors
/// Those of the stretching.
pub fn unlock(
    store: &AnyStore,
    header: &Header,
    passphrase: &Passphrase,
) -> Result<Vec<LaneMaster>> {
    let Some(form) = LaneForm::of(&layout(&header.parameters()))? else { return Ok(Vec::new()) };
    let Some(kdf) = form.parameters.guessing() else { return Ok(Vec::new()) };
    let volume = header.volume();
    let key = LaneKey::stretch(kdf, passphrase, volume).map_err(super::closed)?;
    let (mut found, objects) = (Vec::new(), form.parameters.objects());
    for (lane, of) in (0..).zip(objects) {
        let newest = newest_of(store, (of.state, &form), |slots, place| {
            key.open(slots, &LanePlace { volume, lane, place })
        });
        let Some(secrets) = newest else { continue };
        found.extend(opened(lane, secrets));
    }
    // The later one's passphrase has brought the earlier ones' keys.
    found.sort_by_key(|it: &LaneMaster| it.lane);
    found.dedup_by_key(|it| it.lane);
    Ok(found)
}

/// A lane that was opened, and those before it.
fn opened(lane: u8, secrets: LaneSecrets) -> Vec<LaneMaster> {
    let LaneSecrets { master, before, .. } = secrets;
    let mut lanes = Vec::new();
    for (at, key) in before.iter().enumerate().skip(1) {
        let before = before[..at].iter().map(MasterKey::duplicate).collect();
        lanes.push(LaneMaster { lane: at as u8 - 1, master: key.duplicate(), before });
    }
    lanes.push(LaneMaster { lane, master, before });
    lanes
}

/// What opens in front of the newest of a lane's states.
fn newest_of(
    store: &AnyStore,
    (object, form): (&str, &LaneForm),
    open: impl Fn(&[u8; LANE_SLOTS_BYTES], u64) -> Option<LaneSecrets>,
) -> Option<LaneSecrets> {
    let mut fronts = vec![[0; LANE_SLOTS_BYTES]; usize::try_from(form.states).ok()?];
    let at = |place: usize| place as u64 * form.state_bytes();
    let read = |(place, buf): (usize, &mut [u8; LANE_SLOTS_BYTES])| {
        let mut read = [ReadAt { object, offset: at(place), buf }];
        store.objects().read(&mut read).is_ok()
    };
    if !fronts.iter_mut().enumerate().all(read) {
        return None;
    }
    let opened = (0..).zip(&fronts).filter_map(|(place, slots)| open(slots, place));
    opened.max_by_key(|secrets| secrets.number)
}

/// Stretches a passphrase for a lane of this form; none if such lanes are never open.
pub(super) fn lane_key(
    form: &LaneForm,
    passphrase: &Passphrase,
    volume: VolumeId,
) -> Result<Option<LaneKey>> {
    let Some(kdf) = form.parameters.guessing() else { return Ok(None) };
    LaneKey::stretch(kdf, passphrase, volume).map(Some).map_err(super::closed)
}
