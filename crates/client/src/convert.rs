//! The engine's records as those of the port.

use oblivio_engine::pyramid::share as engine;
use oblivio_engine::pyramid::{Home, Spot};
use oblivio_store::share as port;

/// An ask's name at the server.
pub fn ask_id(session: engine::Session, seq: engine::Seq) -> port::AskId {
    port::AskId { session: port::Session(session.0), seq: port::Seq(seq.0) }
}

/// An ask for the server.
pub fn ask(record: &engine::AskRecord) -> port::Ask {
    port::Ask { id: ask_id(record.session, record.seq), sealed: record.sealed.clone() }
}

/// An ask from the server.
pub fn ask_record(ask: port::Ask) -> engine::AskRecord {
    let port::AskId { session, seq } = ask.id;
    let (session, seq) = (engine::Session(session.0), engine::Seq(seq.0));
    engine::AskRecord { session, seq, sealed: ask.sealed }
}

/// An answer for the server.
pub fn answer(record: engine::AnswerRecord) -> port::Answer {
    port::Answer { id: ask_id(record.session, record.seq), sealed: record.sealed }
}

/// An answer from the server.
pub fn answer_record(answer: port::Answer) -> engine::AnswerRecord {
    let port::AskId { session, seq } = answer.id;
    let (session, seq) = (engine::Session(session.0), engine::Seq(seq.0));
    engine::AnswerRecord { session, seq, sealed: answer.sealed }
}

/// A record of the history from the server.
pub fn stored(record: port::Stored) -> engine::Stored {
    let asks = record.asks.into_iter().map(ask_record).collect();
    engine::Stored { sealed: record.sealed, asks }
}

/// Slots in their order; none if one is in a table that is not named.
pub fn spots(tables: &[(Home, engine::TableId)], spots: &[Spot]) -> Option<Vec<port::Spot>> {
    let one = |spot: &Spot| {
        let named = tables.iter().find(|(home, _)| *home == spot.home)?;
        Some(port::Spot { table: table(named.1), slot: spot.slot.0 })
    };
    spots.iter().map(one).collect()
}

/// A table's name at the server.
pub fn table(table: engine::TableId) -> port::TableId {
    port::TableId(table.0)
}
