//! Finding out which lanes a passphrase opens.
//!
//! Everybody's passphrase is tried on all slots in front of all states of all lanes, whatever else
//! it opens. So the time tells nothing.

use super::form::LaneForm;
use crate::header::Header;
use crate::lane::LaneMaster;
use crate::sequential::header::{check, layout};
use crate::{Error, Result};
use oblivio_crypto::{
    LANE_SLOTS_BYTES, LaneKey, LanePlace, LaneSecrets, MasterKey, Passphrase, VolumeId,
};
use oblivio_store::{AnyStore, Held, ReadAt};

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
    let parameters = header.parameters();
    // Nothing of the header is authenticated yet.
    if check(&parameters).is_err() {
        return Ok(Vec::new());
    }
    let Some(form) = LaneForm::of(&layout(&parameters))? else { return Ok(Vec::new()) };
    let volume = header.volume();
    let key = lane_key(&form, passphrase, volume)?;
    let mut found = Vec::new();
    for lane in 0..form.parameters.count {
        let newest = newest_of(&*store.objects(), &form, (volume, lane), &key);
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

/// What a passphrase opens in front of the newest of a lane's states.
pub(in crate::sequential) fn newest_of<S: Held + ?Sized>(
    store: &S,
    form: &LaneForm,
    (volume, lane): (VolumeId, u8),
    key: &LaneKey,
) -> Option<LaneSecrets> {
    let object = form.parameters.objects()[usize::from(lane)].state;
    // A header may promise more states than there are.
    let there = store.len(object).ok().flatten().unwrap_or(0) / form.state_bytes();
    let mut newest = None::<LaneSecrets>;
    for place in 0..form.states.min(there) {
        let mut slots = [0; LANE_SLOTS_BYTES];
        let (offset, buf) = (place * form.state_bytes(), &mut slots[..]);
        // A place that cannot be read costs its state alone.
        let read = store.read(&mut [ReadAt { object, offset, buf }]);
        let at = LanePlace { volume, lane, place };
        let opened = read.ok().and_then(|()| key.open(&slots, &at));
        newest = match (newest, opened) {
            (Some(newest), Some(opened)) if newest.number > opened.number => Some(newest),
            (newest, opened) => opened.or(newest),
        };
    }
    newest
}

/// Stretches a passphrase for a lane of this form.
pub(in crate::sequential) fn lane_key(
    form: &LaneForm,
    passphrase: &Passphrase,
    volume: VolumeId,
) -> Result<LaneKey> {
    LaneKey::stretch(form.parameters.guessing(), passphrase, volume).map_err(Error::sealing)
}
