//! Sessions, and the names of their objects.
//!
//! Every name follows from a session and a counter, so none is ever looked for in a list, but for
//! claims in a store that lists instead of creating exclusively. No name is ever stored twice with
//! different bytes, but for the hint: where the search for the newest session begins.

/// The largest number of a session: twelve hex digits.
pub const MOST_NUMBER: u64 = (1 << 48) - 1;
/// The largest number of an entry or a commit: eight hex digits.
pub const MOST_INDEX: u64 = (1 << 32) - 1;
/// How the names of claims begin, and those of their second copies.
pub const CLAIMS: &str = "s-";
pub const CLAIM_COPIES: &str = "t-";
/// The hint.
pub const HINT: &str = "n-newest";

/// A session. Its number orders it among the others, its random part makes its objects its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId {
    /// From 1 on.
    pub number: u64,
    /// Drawn for each attempt to begin.
    pub random: u64,
}

impl SessionId {
    /// Its claim, where several sessions may claim one number.
    pub fn claim(self) -> String {
        format!("{}-{:016x}", claim(self.number), self.random)
    }

    /// The second copy of its claim, where several sessions may claim one number.
    pub fn claim_copy(self) -> String {
        format!("{}-{:016x}", claim_copy(self.number), self.random)
    }

    /// An entry.
    pub fn entry(self, index: u64) -> String {
        format!("e-{:016x}-{index:08x}", self.random)
    }

    /// The second copy of an entry.
    pub fn copy(self, index: u64) -> String {
        format!("d-{:016x}-{index:08x}", self.random)
    }

    /// Where somebody asks this session for the volume.
    pub fn want(self) -> String {
        format!("w-{:016x}", self.random)
    }

    /// The pointer to a commit.
    pub fn pointer(self, commit: u64) -> String {
        format!("h-{:016x}-{commit:08x}", self.random)
    }
}

/// The claim to a number, where the store creates exclusively; the beginning of all claims to it
/// where not.
pub fn claim(number: u64) -> String {
    format!("{CLAIMS}{number:012x}")
}

/// The second copy of the claim to a number, as [`claim`].
pub fn claim_copy(number: u64) -> String {
    format!("{CLAIM_COPIES}{number:012x}")
}

/// The session of a claim in a list, or of a second copy; `None` for any other name.
pub fn parse_claim(name: &str) -> Option<SessionId> {
    let (number, random) = stem_of_claim(name)?.split_once('-')?;
    let id = SessionId { number: hex(number, 12)?, random: hex(random, 16)? };
    (id.number > 0).then_some(id)
}

/// What follows in the name of a claim, or of a second copy of one.
fn stem_of_claim(name: &str) -> Option<&str> {
    name.strip_prefix(CLAIMS).or_else(|| name.strip_prefix(CLAIM_COPIES))
}

/// Whether a name begins as that of a claim, or is that of the hint: what a volume always keeps.
pub fn stays(name: &str) -> bool {
    stem_of_claim(name).is_some() || name == HINT
}

/// Whether a name is that of an object which a session stores, and which may be deleted once
/// nothing needs it. Claims never are.
pub fn is_object(name: &str) -> bool {
    let (Some(kind), Some(session)) = (name.get(..2), name.get(2..18)) else { return false };
    let plain = matches!(kind, "b-" | "d-" | "e-" | "h-" | "p-" | "r-" | "w-");
    plain && hex(session, 16).is_some() && matches!(name.as_bytes().get(18), None | Some(b'-'))
}

/// Whether a session of a volume may have given an object its name: nobody else gives such names.
pub fn is_of_session(name: &str) -> bool {
    let claims = || stem_of_claim(name).is_some_and(|number| hex(number, 12).is_some());
    is_object(name) || claims() || parse_claim(name).is_some() || name == HINT
}

/// A number in exactly `digits` lower hex digits.
pub fn hex(text: &str, digits: usize) -> Option<u64> {
    let plain = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let fits = text.len() == digits && text.bytes().all(plain);
    fits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_store::check_name;

    #[test]
    fn names_are_valid_and_pinned() {
        let id = SessionId { number: 0xabc, random: 0x1234 };
        let names = [
            (claim(1), "s-000000000001"),
            (id.claim(), "s-000000000abc-0000000000001234"),
            (id.claim_copy(), "t-000000000abc-0000000000001234"),
            (id.entry(17), "e-0000000000001234-00000011"),
            (id.copy(17), "d-0000000000001234-00000011"),
            (id.pointer(2), "h-0000000000001234-00000002"),
            (id.want(), "w-0000000000001234"),
        ];
        for (name, expected) in names {
            assert_eq!(name, expected);
            assert!(check_name(&name).is_ok());
        }
        let largest = SessionId { number: MOST_NUMBER, random: u64::MAX };
        assert_eq!(largest.claim().len(), 2 + 12 + 1 + 16);
        assert_eq!(largest.entry(MOST_INDEX).len(), 2 + 16 + 1 + 8);
    }

    #[test]
    fn claims_and_strangers_are_no_objects_to_delete() {
        let id = SessionId { number: 5, random: 0xfeed };
        for name in [id.entry(3), id.pointer(4), id.want(), "b-000000000000feed-0c-01".into()] {
            assert!(is_object(&name), "{name}");
        }
        for name in [&id.claim(), &claim(5), "header", "b-letter", "x-000000000000feed-0", "", "b-"]
        {
            assert!(!is_object(name), "{name}");
        }
        for name in [id.entry(3), id.pointer(4), id.want(), id.claim(), claim(5)] {
            assert!(is_of_session(&name), "{name}");
        }
        for name in ["header", "b-letter", "s-5", "s-letter", "e-letter-000000000", "letter.txt"] {
            assert!(!is_of_session(name), "{name}");
        }
    }

    #[test]
    fn only_claims_parse() {
        let id = SessionId { number: 5, random: 0xfeed };
        assert_eq!(parse_claim(&id.claim()), Some(id));
        for other in [
            "",
            "s-",
            "s-000000000005",
            "s-000000000005-",
            "s-000000000000-000000000000feed",
            "s-000000000005-000000000000FEED",
            "s-00000000005-000000000000feed",
            "s-000000000005-00000000000feed",
            "s-000000000005-000000000000feed-",
            "s-+00000000005-000000000000feed",
            "s-000000000005-+00000000000feed",
            "e-000000000005-000000000000feed",
            "s-\u{e9}0000000005-000000000000feed",
        ] {
            assert_eq!(parse_claim(other), None, "{other}");
        }
    }
}
