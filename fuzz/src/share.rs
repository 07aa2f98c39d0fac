//! Records of a shared volume, as they are under their seals.

use crate::input::Input;
use oblivio_engine::pyramid::share::fuzzing;
use std::sync::OnceLock;

/// A client's ask: refused, or the same when it is written and read again.
pub fn share_ask(data: &[u8]) {
    let Some((ask, part, head)) = fuzzing::ask(data) else { return };
    // It may be of a volume with larger blocks.
    if let Ok(bytes) = fuzzing::ask_bytes(&ask, part, head) {
        assert_eq!(fuzzing::ask(&bytes), Some((ask, part, head)));
    }
}

/// An answer: refused, or the same when it is written and read again.
pub fn share_answer(data: &[u8]) {
    let Some((answer, head)) = fuzzing::answer(data) else { return };
    let bytes = fuzzing::answer_bytes(&answer, head);
    if bytes.len() >= data.len() {
        let again = fuzzing::answer(&bytes).expect("it was written");
        assert_eq!(
            (again.0.answer.done, again.0.refusal, again.1),
            (answer.answer.done, answer.refusal, head)
        );
    }
}

/// A notice of a batch: refused, or of one length for as many asks, some of which changed
/// something.
pub fn share_notice(data: &[u8]) {
    let Some((_, before, changes)) = fuzzing::notice(data) else { return };
    let asks = (data.len() - fuzzing::NOTICE_BYTES) / fuzzing::NOTICE_BYTES_EACH;
    assert_eq!(data.len(), fuzzing::NOTICE_BYTES + asks * fuzzing::NOTICE_BYTES_EACH);
    assert!(changes.len() <= asks, "{} of {asks} after {before}", changes.len());
}

/// An event of the history: refused, or the same when it is written and read again.
pub fn share_record(data: &[u8]) {
    let Some((event, asks)) = fuzzing::record(data) else { return };
    let bytes = fuzzing::record_bytes(&event, &asks).expect("it was read");
    assert_eq!(bytes.len(), data.len(), "its length says nothing else");
    assert_eq!(fuzzing::record(&bytes), Some((event, asks)));
}

/// States of scribes, shared by the whole process.
pub fn states() -> &'static [Vec<u8>; 2] {
    static STATES: OnceLock<[Vec<u8>; 2]> = OnceLock::new();
    STATES.get_or_init(|| [5, 90].map(|asks| fuzzing::state(asks).expect("an honest server")))
}

/// A state of a scribe that was changed: refused, or the same when it is written and read again.
pub fn share_state(data: &[u8]) {
    let mut input = Input(data);
    let mut state = states()[usize::from(input.byte() % 2)].clone();
    // Where the patches count from.
    let skip = usize::from(input.u16()) % state.len();
    let mut tail = state.split_off(skip);
    let changed = input.patch(&mut tail);
    state.append(&mut tail);
    match fuzzing::restore(&state) {
        Ok(again) => {
            assert!(changed || again == state, "it is written as it was read");
            assert_eq!(fuzzing::restore(&again).expect("it was written"), again);
        }
        Err(error) => assert!(changed, "a sound state is refused: {error}"),
    }
}
