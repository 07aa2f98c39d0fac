//! The engine's records as those of the port.

use oblivio_engine::pyramid::share as engine;
use oblivio_engine::pyramid::{TableHome, TableSpot};
use oblivio_store::share as port;

/// An ask's name at the server.
pub fn ask_id(session: engine::Session, seq: engine::Seq) -> port::AskId {
    port::AskId { session: port::ClientSession(session.0), seq: port::AskNumber(seq.0) }
}

/// An ask for the server.
pub fn ask(record: &engine::AskRecord) -> port::SealedAsk {
    port::SealedAsk { id: ask_id(record.session, record.seq), sealed: record.sealed.clone() }
}

/// An ask from the server.
pub fn ask_record(ask: port::SealedAsk) -> engine::AskRecord {
    let port::AskId { session, seq } = ask.id;
    let (session, seq) = (engine::Session(session.0), engine::Seq(seq.0));
    engine::AskRecord { session, seq, sealed: ask.sealed }
}

/// An answer for the server.
pub fn answer(record: engine::AnswerRecord) -> port::SealedAnswer {
    port::SealedAnswer { id: ask_id(record.session, record.seq), sealed: record.sealed }
}

/// An answer from the server.
pub fn answer_record(answer: port::SealedAnswer) -> engine::AnswerRecord {
    let port::AskId { session, seq } = answer.id;
    let (session, seq) = (engine::Session(session.0), engine::Seq(seq.0));
    engine::AnswerRecord { session, seq, sealed: answer.sealed }
}

/// A record of the history from the server.
pub fn stored(record: port::StoredEntry) -> engine::StoredRecord {
    let asks = record.asks.into_iter().map(ask_record).collect();
    engine::StoredRecord { sealed: record.sealed, asks }
}

/// Slots in their order; none if one is in a table that is not named.
pub fn spots(
    tables: &[(TableHome, engine::TableId)],
    spots: &[TableSpot],
) -> Option<Vec<port::ServerSpot>> {
    let one = |spot: &TableSpot| {
        let named = tables.iter().find(|(home, _)| *home == spot.home)?;
        Some(port::ServerSpot { table: table(named.1), slot: spot.slot.0 })
    };
    spots.iter().map(one).collect()
}

/// A table's name at the server.
pub fn table(table: engine::TableId) -> port::ServerTable {
    port::ServerTable(table.0)
}
