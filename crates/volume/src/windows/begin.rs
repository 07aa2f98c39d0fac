//! How a session on a volume begins: from which commit, as which computer.

use super::header::way;
use super::pending::stands;
use super::records::parse_records;
use super::state::Commit;
use crate::session::{self, History, SearchStart, Vault, Who};
use crate::trust::Trust;
use crate::{Error, Opening, Result};
use oblivio_crypto::{Sealer, digest};
use oblivio_store::Objects;
use std::sync::Arc;

/// A smaller disk cache has no room for entries.
const LEAST_CACHE: u64 = 1 << 20;

/// A volume about to be opened on whole objects.
pub(super) type WindowOpening<'a> = Opening<'a, Arc<dyn Objects>>;

/// The commit that a history begins with, once this computer's knowledge agrees.
pub(super) fn base_of(history: &History, trust: &mut Trust, new: bool) -> Result<Option<Commit>> {
    let commit = history.commit.as_ref().map(|(_, payload)| (Commit::parse(payload), payload));
    let (commit, payload) = match (commit, new) {
        (None, true) => return Ok(None),
        (Some((commit, payload)), false) => (commit?, payload),
        (None, false) => return Err(Error::Tampered("there is no commit".into())),
        (Some(_), true) => return Err(Error::Exists("a volume".into())),
    };
    // Acts after a checkpoint that this computer never knew to stand lead on from it.
    let mut table = commit.table.clone();
    let acts = parse_records(history)?;
    acts.iter().flatten().for_each(|(act, _)| table.absorb(*act, commit.number + 1));
    trust.judge_commit(commit.number, digest(payload), Some(table))?;
    Ok(Some(commit))
}

/// The session to begin on a volume.
pub(super) fn session_of(
    opening: &WindowOpening<'_>,
    trust: &Trust,
    new: bool,
) -> session::SessionOpening {
    let WindowOpening { store, header, master, options, .. } = opening;
    let volume = header.volume();
    let randomness = Box::new(options.environment.randomness.clone());
    let before = trust.session_before();
    let start = before.map(|(hint, ended)| SearchStart::own(hint, ended)).unwrap_or_default();
    session::SessionOpening {
        store: Arc::clone(store),
        way: way(&header.parameters()),
        vault: Vault::new(volume, Sealer::new(master.entry_root(volume), randomness)),
        environment: options.environment.clone(),
        who: Who {
            computer: trust.machine().unwrap_or(trust.known().computer),
            host: options.host.clone(),
        },
        was: trust.machine().unwrap_or(trust.was()),
        start,
        cache: options
            .cache
            .as_ref()
            .filter(|it| it.bytes >= LEAST_CACHE)
            .map(|it| Arc::clone(&it.store)),
        // Before a volume is made, there may be claims to another one that never was.
        accept_gaps: new || options.accept_rollback,
        stands,
        on_wait: None,
        planted: session::Planted::default(),
    }
}
