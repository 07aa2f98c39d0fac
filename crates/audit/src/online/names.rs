//! The names of objects in an online store.

/// What a name says.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Name {
    /// The buckets of a level that a window rewrote.
    Buckets { session: String, level: u32, window: u64 },
    /// A part of the memory.
    Part { session: String, number: u64 },
    /// The parity of the parts of a group, up to that of a commit.
    Parity { session: String, number: u64 },
    /// The second copy of a session's entry.
    Copy { session: String, index: u64 },
    /// A session's entry.
    Entry { session: String, index: u64 },
    /// A session's pointer to a commit.
    Pointer { session: String, nth: u64 },
    /// Where others ask a session for its volume.
    Want { session: String },
    /// A session's claim to its number.
    Claim { number: u64 },
    /// The second copy of a claim.
    ClaimCopy { number: u64 },
    /// Where the search for the newest session begins.
    Hint,
    /// The header.
    Header,
    /// None of them.
    Other,
}

/// A number in exactly this number of lower hex digits.
fn hex(text: &str, digits: usize) -> Option<u64> {
    let plain = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let fits = text.len() == digits && text.bytes().all(plain);
    fits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

fn session(text: &str) -> Option<String> {
    hex(text, 16).map(|_| text.to_owned())
}

impl Name {
    /// Parses a name.
    pub(super) fn of(name: &str) -> Self {
        Self::parse(name).unwrap_or(Self::Other)
    }

    fn parse(name: &str) -> Option<Self> {
        if ["header", "header-2"].contains(&name) {
            return Some(Self::Header);
        }
        if name == "n-newest" {
            return Some(Self::Hint);
        }
        Some(match name.split('-').collect::<Vec<_>>()[..] {
            ["b", by, level, window] => Self::Buckets {
                session: session(by)?,
                level: hex(level, 2)? as u32,
                window: hex(window, 12)?,
            },
            ["p", by, number] => Self::Part { session: session(by)?, number: hex(number, 12)? },
            ["r", by, number] => Self::Parity { session: session(by)?, number: hex(number, 12)? },
            ["d", by, index] => Self::Copy { session: session(by)?, index: hex(index, 8)? },
            ["e", by, index] => Self::Entry { session: session(by)?, index: hex(index, 8)? },
            ["h", by, nth] => Self::Pointer { session: session(by)?, nth: hex(nth, 8)? },
            ["w", by] => Self::Want { session: session(by)? },
            ["t", number] => Self::ClaimCopy { number: hex(number, 12)? },
            ["t", number, by] => {
                session(by)?;
                Self::ClaimCopy { number: hex(number, 12)? }
            }
            ["s", number] => Self::Claim { number: hex(number, 12)? },
            ["s", number, by] => {
                session(by)?;
                Self::Claim { number: hex(number, 12)? }
            }
            _ => return None,
        })
    }

    /// The session that stored it.
    pub(super) fn session(&self) -> Option<&str> {
        match self {
            Self::Buckets { session, .. }
            | Self::Part { session, .. }
            | Self::Parity { session, .. }
            | Self::Copy { session, .. }
            | Self::Entry { session, .. }
            | Self::Pointer { session, .. } => Some(session),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_strictly() {
        let by = "00000000000000ab";
        let buckets = Name::Buckets { session: by.into(), level: 17, window: 3 };
        assert_eq!(Name::of(&format!("b-{by}-11-000000000003")), buckets);
        assert_eq!(Name::of("s-000000000005"), Name::Claim { number: 5 });
        assert_eq!(Name::of(&format!("s-000000000005-{by}")), Name::Claim { number: 5 });
        for other in ["", "b", "b-1-2-3", "e-00000000000000AB-00000001", "header-3", "s-5", "x-1"] {
            assert_eq!(Name::of(other), Name::Other, "{other}");
        }
    }
}
