//! Reports to a listener what the store saw, and by which public rule.

use super::header::way;
use super::volume::WindowVolume;
use crate::core::rule_of;
use crate::options::{Rule, Shown, ShownKind, WindowRule};
use crate::session::ClaimMode;
use oblivio_engine::Level;

impl WindowVolume {
    /// Reports the public rule of the next requests: as a session begins, and after each change of
    /// size.
    pub(super) fn report_now(&mut self) {
        if self.options.on_shown.is_some() {
            let rule = Some(self.rule());
            self.report(Shown { kind: ShownKind::Rule, rule, ..Shown::default() });
        }
    }

    /// Reports the paths of the batch that was carried out, or again carried out.
    pub(super) fn report_batch(&mut self, again: bool) {
        let leaves = std::mem::take(&mut self.ledger.places.shown);
        self.report(Shown { kind: ShownKind::Batch, leaves, sweep: again, ..Shown::default() });
    }

    /// Reports a window, which came when its accesses were made or ahead of that.
    pub(super) fn report_window(&mut self, ahead: bool) {
        let scheduled = self.ledger.places.rule.turns() as usize;
        let kind = ShownKind::Maintenance;
        self.report(Shown { kind, scheduled, sweep: ahead, ..Shown::default() });
    }

    /// Reports that something was synced, in this number of entries.
    pub(super) fn report_sync(&mut self, entries: u64) {
        let writes = u32::try_from(entries).unwrap_or(u32::MAX);
        self.report(Shown { kind: ShownKind::Sync, writes, ..Shown::default() });
    }

    fn report(&mut self, shown: Shown) {
        let depth = self.ledger.engine.depth().0;
        if let Some(report) = &mut self.options.on_shown {
            report(&Shown { depth, ..shown });
        }
    }

    fn rule(&self) -> Rule {
        let engine = &self.ledger.engine;
        Rule { windows: Some(self.window_rule()), ..rule_of(engine) }
    }

    fn window_rule(&self) -> WindowRule {
        let (ledger, engine, rule) = (&self.ledger, &self.ledger.engine, self.ledger.places.rule);
        let cached = |level: &u32| ledger.cache.as_ref().is_some_and(|it| it.keeps(Level(*level)));
        let shapes = engine.shapes().all().iter();
        WindowRule {
            session: ledger.session.id().number,
            every: rule.every,
            log_turns: rule.log_turns,
            pool_levels: rule.pool_levels,
            exclusive: way(&ledger.limit.parameters()) == ClaimMode::Create,
            uncached: (rule.pool_levels..64).find(|level| !cached(level)).unwrap_or(64),
            windows: ledger.places.done,
            left: engine.accesses_to_window().unwrap_or(0),
            commits: ledger.epoch(),
            kept: rule.kept(engine.config().blocks_per_bucket),
            shapes: shapes.map(|(at, it)| (*at, it.depth.0, it.leaf_slots as u32)).collect(),
        }
    }
}
