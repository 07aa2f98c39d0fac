//! The greeting and the options.

use super::super::wire::{OPTION_MAGIC, export, info, option as opt, reply};
use super::{Agreed, BLOCK, PLAIN, SIZE, STRUCTURED, Said, option, replies, talk};
use std::io::ErrorKind;

/// The client's flags: fixed newstyle, no zeros.
const FLAGS: [u8; 4] = [0, 0, 0, 3];
const GREETING: usize = 18;

/// The data of an information request: the name, then the kinds.
fn about(name: &[u8], kinds: &[u16]) -> Vec<u8> {
    let mut out = (name.len() as u32).to_be_bytes().to_vec();
    out.extend_from_slice(name);
    out.extend_from_slice(&(kinds.len() as u16).to_be_bytes());
    kinds.iter().for_each(|kind| out.extend_from_slice(&kind.to_be_bytes()));
    out
}

fn contexts(name: &[u8], queries: &[&str]) -> Vec<u8> {
    let mut out = (name.len() as u32).to_be_bytes().to_vec();
    out.extend_from_slice(name);
    out.extend_from_slice(&(queries.len() as u32).to_be_bytes());
    for query in queries {
        out.extend_from_slice(&(query.len() as u32).to_be_bytes());
        out.extend_from_slice(query.as_bytes());
    }
    out
}

/// The replies to these options, and the agreement at the end.
fn agree(options: &[Vec<u8>]) -> (Vec<Said>, Option<Agreed>) {
    let (said, ended) = talk(&[&FLAGS[..], &options.concat()].concat());
    (replies(&said[GREETING..]), ended.expect("a client that behaves"))
}

#[test]
fn a_modern_client_gets_everything() {
    let (said, agreed) = agree(&[
        option(opt::STRUCTURED_REPLY, &[]),
        option(opt::LIST, &[]),
        option(opt::LIST_META_CONTEXT, &contexts(b"", &["base:"])),
        option(opt::SET_META_CONTEXT, &contexts(b"", &["x-none:at-all", "base:allocation"])),
        option(opt::INFO, &about(b"", &[info::BLOCK_SIZE, 99, info::BLOCK_SIZE])),
        option(opt::GO, &about(b"", &[info::DESCRIPTION])),
    ]);
    assert_eq!(agreed, Some(STRUCTURED));
    let kinds: Vec<_> = said.iter().map(|(option, kind, _)| (*option, *kind)).collect();
    let wanted = [
        (opt::STRUCTURED_REPLY, vec![]),
        (opt::LIST, vec![reply::SERVER]),
        (opt::LIST_META_CONTEXT, vec![reply::META_CONTEXT]),
        (opt::SET_META_CONTEXT, vec![reply::META_CONTEXT]),
        (opt::INFO, vec![reply::INFO, reply::INFO]),
        (opt::GO, vec![reply::INFO, reply::INFO]),
    ];
    let wanted: Vec<_> = wanted
        .iter()
        .flat_map(|(option, kinds)| {
            kinds.iter().chain(&[reply::ACK]).map(move |kind| (*option, *kind))
        })
        .collect();
    assert_eq!(kinds, wanted);
    let context = [&[0, 0, 0, 1][..], b"base:allocation"].concat();
    assert_eq!(said[5].2, context);
    // Export information: type, size, flags.
    let data = &said[7].2;
    assert_eq!(data[..10], [&[0, 0][..], &SIZE.to_be_bytes()].concat());
    let flags = u16::from_be_bytes([data[10], data[11]]);
    let some = export::SEND_DF | export::CAN_MULTI_CONN | export::SEND_FUA | export::SEND_TRIM;
    assert_eq!(flags & some, some);
    assert_eq!(flags & export::READ_ONLY, 0);
    let sizes = [1u32, BLOCK as u32, 32 << 20].map(u32::to_be_bytes).concat();
    assert_eq!(said[8].2, [&[0, 3][..], &sizes].concat());
}

#[test]
fn the_greeting_and_the_oldest_way_to_choose() {
    for (flags, len) in [([0, 0, 0, 1], 10 + 124), ([0, 0, 0, 3], 10)] {
        let (said, ended) = talk(&[&flags[..], &option(opt::EXPORT_NAME, &[])].concat());
        assert_eq!(ended.expect("a choice"), Some(PLAIN));
        assert_eq!(said[..8], *b"NBDMAGIC");
        assert_eq!(said[8..GREETING], [&OPTION_MAGIC.to_be_bytes()[..], &[0, 3]].concat());
        assert_eq!(said.len(), GREETING + len, "with zeros or without");
        assert_eq!(said[GREETING..GREETING + 8], SIZE.to_be_bytes());
        let flags = u16::from_be_bytes([said[GREETING + 8], said[GREETING + 9]]);
        assert_eq!(flags & export::SEND_DF, 0, "there is nothing to fragment");
    }
}

#[test]
fn mistakes_are_told_and_the_talk_goes_on() {
    let cases = [
        (option(opt::LIST, b"x"), reply::ERR_INVALID),
        (option(opt::STRUCTURED_REPLY, b"x"), reply::ERR_INVALID),
        (option(5, &[]), reply::ERR_UNSUP),
        (option(77, b"what"), reply::ERR_UNSUP),
        (option(opt::INFO, &about(b"other", &[])), reply::ERR_UNKNOWN),
        (option(opt::GO, &about(b"other", &[])), reply::ERR_UNKNOWN),
        (option(opt::GO, &[]), reply::ERR_INVALID),
        (option(opt::GO, &[0xff; 6]), reply::ERR_INVALID),
        (option(opt::GO, &about(b"", &[1])[..7]), reply::ERR_INVALID),
        (option(opt::GO, &[about(b"", &[]), vec![0]].concat()), reply::ERR_INVALID),
        // Before structured replies there are no contexts.
        (option(opt::SET_META_CONTEXT, &contexts(b"", &["base:allocation"])), reply::ERR_INVALID),
        (option(opt::LIST_META_CONTEXT, &[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]), reply::ERR_INVALID),
    ];
    for (wrong, kind) in cases {
        let (said, agreed) = agree(&[wrong.clone(), option(opt::GO, &about(b"", &[]))]);
        assert_eq!(agreed, Some(PLAIN), "{wrong:?}");
        assert_eq!(said.len(), 3, "{wrong:?}");
        assert_eq!(said[0].1, kind, "{wrong:?}");
    }
}

#[test]
fn the_last_choice_of_contexts_counts() {
    let set = |queries: &[&str]| option(opt::SET_META_CONTEXT, &contexts(b"", queries));
    let structured = option(opt::STRUCTURED_REPLY, &[]);
    let go = option(opt::GO, &about(b"", &[]));
    let last = |second: Vec<u8>| {
        let all = [structured.clone(), set(&["base:allocation"]), second, go.clone()];
        agree(&all).1.expect("a choice").allocation
    };
    assert!(last(set(&["base:allocation", "base:"])));
    // A list, also one that selects nothing, and a mistake replace the earlier choice.
    assert!(!last(set(&[])));
    assert!(!last(set(&["base:"])));
    assert!(!last(option(opt::SET_META_CONTEXT, &contexts(b"other", &["base:allocation"]))));
    assert!(!last(option(opt::SET_META_CONTEXT, b"?")));
    // Listing changes nothing.
    assert!(last(option(opt::LIST_META_CONTEXT, &contexts(b"", &[]))));
}

#[test]
fn who_leaves_or_talks_nonsense_is_let_go() {
    let (_, ended) = talk(&[&FLAGS[..], &option(opt::ABORT, b"bye")].concat());
    assert_eq!(ended.expect("good order"), None);
    let nonsense = [
        [&[0, 0, 0, 7][..], &option(opt::GO, &about(b"", &[]))].concat(),
        [&[0, 0, 0, 0][..], &option(opt::EXPORT_NAME, &[])].concat(),
        [&FLAGS[..], &option(opt::EXPORT_NAME, b"other")].concat(),
        [&FLAGS[..], &[1; 16]].concat(),
        // Four gigabytes are announced; no memory is reserved for them.
        [&FLAGS[..], &OPTION_MAGIC.to_be_bytes(), &[0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff]].concat(),
        [&FLAGS[..], &option(77, &[]).repeat(300)].concat(),
    ];
    for said in nonsense {
        let (_, ended) = talk(&said);
        assert_eq!(ended.expect_err("nonsense").kind(), ErrorKind::InvalidData, "{said:?}");
    }
    for cut in 0..20 {
        let whole = [&FLAGS[..], &option(opt::GO, &about(b"", &[]))].concat();
        let (_, ended) = talk(&whole[..cut]);
        assert_eq!(ended.expect_err("cut short").kind(), ErrorKind::UnexpectedEof, "{cut}");
    }
}
