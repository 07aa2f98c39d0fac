//! What earlier sessions left: records to replay, and objects that nobody needs.

use super::ledger::WindowLedger;
use super::places::{Places, Span};
use super::policy::MOST_PENDING;
use super::records::{Left, parse_records};
use super::state::{Commit, Kept};
use crate::Result;
use crate::records::record::Record;
use crate::session::{COMMIT, History, Mark, SessionId};
use crate::trust::LogMark;
use oblivio_engine::Level;
use std::collections::BTreeSet;

/// Windows that a session may have begun beyond the last checkpoint that stands, but for the replay
/// of very many records: those of checkpoints on their way, one under way, and one ahead.
const MOST_LEFT: u64 = MOST_PENDING as u64 + 2;

impl WindowLedger {
    /// Notes which sessions stored objects after a commit that then became current for nobody.
    /// Gives the names of all that is not needed. Nothing is listed: they follow from the counters.
    pub(super) fn take_leftovers(
        &mut self,
        history: &History,
        commit: Option<&Commit>,
    ) -> Result<Vec<String>> {
        // A session's first entry stays: it names what was before.
        let records = history.records.iter().filter(|(mark, ..)| mark.index > 1);
        let mut names = Vec::new();
        for (mark, kind, _) in records {
            names.push(mark.session.entry(mark.index));
            names.extend((*kind == COMMIT).then(|| mark.session.copy(mark.index)));
        }
        let commits = history.commit.iter().map(|(mark, _)| mark.session);
        let sessions: BTreeSet<SessionId> =
            history.records.iter().map(|(mark, ..)| mark.session).chain(commits).collect();
        self.past.left = commit.map_or_else(Vec::new, |commit| commit.left.clone());
        for SessionId { number, random } in sessions {
            let (window, commit) = (self.places.done, self.commits.epoch + 1);
            self.past.left.push(Span { session: random, number, window, commit });
        }
        let deepest = self.engine.depth().0 + 1;
        for Span { session, window, commit, .. } in &self.past.left {
            let parts = *commit..commit + MOST_LEFT;
            for commit in parts {
                names.push(Places::part_of(*session, commit));
                names.push(Places::parity_of(*session, commit));
            }
            for window in *window..window + MOST_LEFT {
                let levels = (self.places.rule.pool_levels..=deepest).map(Level);
                names.extend(levels.map(|level| Places::object_of(*session, level, window)));
            }
        }
        if let (Some(commit), Some((mark, _))) = (commit, &history.commit) {
            self.past.kept = Kept { entry: 1, ..commit.kept };
            names.append(&mut self.undeleted(commit, mark)?);
        }
        Ok(names)
    }

    /// What checkpoints up to a commit replaced and perhaps did not delete.
    fn undeleted(&self, commit: &Commit, mark: &Mark) -> Result<Vec<String>> {
        let mut names = commit.entries_up_to(mark);
        let copies = commit.kept.entry.max(2)..mark.index;
        names.extend(copies.map(|at| mark.session.copy(at)));
        let first = commit.number + 1 - commit.parts.len() as u64;
        for number in commit.kept.part..first {
            names.push(self.places.part(number)?.0);
        }
        let stored = |number: &u64| commit.parities.iter().any(|of| of.last == *number);
        for number in (commit.kept.part..=commit.number).filter(|number| !stored(number)) {
            names.push(Places::parity_of(self.places.span_of(number)?.session, number));
        }
        for window in commit.kept.window..commit.windows {
            names.append(&mut self.places.before(self.engine.depth(), window)?);
        }
        Ok(names)
    }

    /// Checks the records against what this computer knows of them.
    pub(super) fn take_records(&mut self, history: &History) -> Result<Left> {
        let mut check = self.trust.log_check();
        let mut left = Vec::new();
        let (mut mark, mut newest) = (LogMark::default(), None);
        for ((at, ..), record) in history.records.iter().zip(parse_records(history)?) {
            self.log.records += 1;
            mark = LogMark { end: self.log.records, tag: at.tag };
            if let Some((act, record)) = record {
                if matches!(record.first(), Some(Record::Sync { .. })) {
                    check.sync();
                }
                self.trust.absorb(act);
                newest = Some(act);
                left.extend(record);
            }
            check.pass(mark);
        }
        check.finish(0, mark.end)?;
        // From here on nothing older passes for the newest.
        self.trust.begin(mark, newest)?;
        Ok(left)
    }
}
