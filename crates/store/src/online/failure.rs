//! What a request says when it fails, as an error of a store.
//!
//! The library's own errors carry addresses and headers, which may hold signatures. So nothing of
//! them is passed on but the kind, the status, the service's word for it, and what the connection
//! said.

use crate::StoreError;
use std::error::Error as _;
use std::io;

/// A failed request.
#[derive(Debug)]
pub(super) enum Fault {
    /// It had no answer in time.
    TimedOut,
    /// It ended without an answer, as the store was closed.
    Ended,
    /// The service, or the way to it, refused it.
    Refused(opendal::Error),
}

/// A failure that can be reported several times.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    kind: Kind,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Missing,
    Exists,
    /// The range is not there. The caller finds the length.
    Range,
    Full,
    Io(io::ErrorKind),
}

impl Failure {
    pub(super) fn new(fault: &Fault) -> Self {
        match fault {
            Fault::TimedOut => Self::io(io::ErrorKind::TimedOut, "no answer in time"),
            Fault::Ended => Self::io(io::ErrorKind::Other, "the request was given up"),
            Fault::Refused(error) => Self::refused(error),
        }
    }

    /// An answer that was cut short. The next may be whole.
    pub(super) fn cut() -> Self {
        Self::io(io::ErrorKind::UnexpectedEof, "the answer was cut short")
    }

    /// An answer shorter than the range.
    pub(super) fn beyond() -> Self {
        Self { kind: Kind::Range, text: advice(Kind::Range).to_owned() }
    }

    /// The service sent more than was asked for.
    pub(super) fn no_ranges() -> Self {
        let why = "the service ignores ranges: it sent more than was asked for";
        Self::io(io::ErrorKind::Unsupported, why)
    }

    fn io(kind: io::ErrorKind, text: &str) -> Self {
        Self { kind: Kind::Io(kind), text: text.to_owned() }
    }

    fn refused(error: &opendal::Error) -> Self {
        // The library compares lengths before we can.
        match error.message() {
            "reader got too little data" => return Self::beyond(),
            "reader got too much data" => return Self::no_ranges(),
            _ => {}
        }
        let status = status_of(error);
        let kind = kind_of(error, status);
        let mut text = advice(kind).to_owned();
        if let Some(status) = status {
            text += &format!(" (status {status}");
            if let Some(code) = code_of(error.message()) {
                text += &format!(", {code}");
            }
            text.push(')');
        } else if let Some(cause) = cause_of(error) {
            text += &format!(": {cause}");
        }
        Self { kind, text }
    }

    /// Whether the object is not there.
    pub(super) fn is_missing(&self) -> bool {
        self.kind == Kind::Missing
    }

    /// Whether the range goes beyond the object's end.
    pub(super) fn is_range(&self) -> bool {
        self.kind == Kind::Range
    }

    /// As the error of a call about this object.
    pub(super) fn about(&self, object: &str) -> StoreError {
        match self.kind {
            Kind::Missing => StoreError::missing(object),
            Kind::Exists => StoreError::Exists { object: object.to_owned() },
            Kind::Full => StoreError::Full,
            Kind::Range => StoreError::out_of_range(object),
            Kind::Io(kind) => {
                let source = io::Error::new(kind, self.text.clone());
                StoreError::Io { object: object.to_owned(), source }
            }
        }
    }
}

fn kind_of(error: &opendal::Error, status: Option<u16>) -> Kind {
    use io::ErrorKind as Io;
    use opendal::ErrorKind as Theirs;
    match (error.kind(), status) {
        (_, Some(507)) => Kind::Full,
        (Theirs::NotFound, _) => Kind::Missing,
        (Theirs::ConditionNotMatch | Theirs::AlreadyExists, _) => Kind::Exists,
        (Theirs::RangeNotSatisfied, _) | (_, Some(416)) => Kind::Range,
        (Theirs::PermissionDenied, _) | (_, Some(401 | 403)) => Kind::Io(Io::PermissionDenied),
        (Theirs::RateLimited, _) | (_, Some(408 | 409 | 423 | 425 | 429)) => {
            Kind::Io(Io::ResourceBusy)
        }
        (Theirs::Unsupported, _) | (_, Some(405 | 501 | 505)) => Kind::Io(Io::Unsupported),
        (Theirs::ConfigInvalid, _) => Kind::Io(Io::InvalidInput),
        (_, Some(500..)) => Kind::Io(Io::ConnectionReset),
        (_, Some(400..)) => Kind::Io(Io::InvalidInput),
        _ => Kind::Io(way(error)),
    }
}

/// Why there was no answer at all. A wrong certificate stays wrong; so do wrong credentials that
/// were found before anything was sent.
fn way(error: &opendal::Error) -> io::ErrorKind {
    let cause = cause_of(error).unwrap_or_default();
    let says = |words: &[&str]| words.iter().any(|word| cause.contains(word));
    if says(&["certificate", "Host key verification failed"]) {
        io::ErrorKind::InvalidData
    } else if says(&["Permission denied"]) || error.message().contains("credential") {
        io::ErrorKind::PermissionDenied
    } else {
        io::ErrorKind::ConnectionReset
    }
}

fn advice(kind: Kind) -> &'static str {
    use io::ErrorKind as Io;
    match kind {
        Kind::Missing => "it is not there",
        Kind::Exists => "it exists already",
        Kind::Range => "the range is not there",
        Kind::Full => "no space left",
        Kind::Io(Io::PermissionDenied) => "the service refused access: check the credentials",
        Kind::Io(Io::ResourceBusy) => "the service is busy and asks to wait",
        Kind::Io(Io::Unsupported) => "the service cannot do this",
        Kind::Io(Io::InvalidInput) => "the service refused the request: check bucket and region",
        Kind::Io(Io::InvalidData) => "the server is not the one it says it is",
        Kind::Io(_) => "the service failed or cannot be reached",
    }
}

/// The status of the answer, if there was one. The library has it in its text only.
fn status_of(error: &opendal::Error) -> Option<u16> {
    let text = format!("{error:?}");
    let (_, rest) = text.split_once("Parts { status: ")?;
    rest.get(..3)?.parse().ok()
}

/// The service's own word, such as `AccessDenied`. It is letters only, so it holds no secret.
fn code_of(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("code: \"").or_else(|| message.split_once("<Code>"))?;
    let code = rest.split(['"', '<']).next()?;
    let plain = (1..=40).contains(&code.len()) && code.bytes().all(|it| it.is_ascii_alphabetic());
    plain.then_some(code)
}

/// What the connection said, from the innermost error on.
fn cause_of(error: &opendal::Error) -> Option<String> {
    let mut source = error.source()?;
    while let Some(inner) = source.source() {
        source = inner;
    }
    let text = source.to_string();
    let line: String = text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    // An address in it could carry a signature.
    let plain = !line.contains("://") && !line.is_empty();
    plain.then(|| line.chars().take(160).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use opendal::ErrorKind as Theirs;

    fn answered(kind: Theirs, status: u16) -> StoreError {
        let error = opendal::Error::new(kind, "<Code>SomeWord</Code> key=AKIASECRET")
            .with_context("uri", "https://host/b/a?sig=SECRET")
            .with_context("response", format!("Parts {{ status: {status}, version: HTTP/1.1 }}"));
        Failure::new(&Fault::Refused(error)).about("a")
    }

    #[test]
    fn only_what_may_pass_is_worth_another_attempt() {
        let table = [
            (answered(Theirs::Unexpected, 500), true),
            (answered(Theirs::Unexpected, 503), true),
            (answered(Theirs::RateLimited, 429), true),
            (answered(Theirs::Unexpected, 429), true),
            (answered(Theirs::Unexpected, 408), true),
            (answered(Theirs::Unexpected, 507), true),
            (answered(Theirs::PermissionDenied, 403), false),
            (answered(Theirs::Unexpected, 401), false),
            (answered(Theirs::NotFound, 404), false),
            (answered(Theirs::ConfigInvalid, 404), false),
            (answered(Theirs::ConditionNotMatch, 412), false),
            (answered(Theirs::Unexpected, 400), false),
            (answered(Theirs::Unexpected, 501), false),
            (Failure::new(&Fault::TimedOut).about("a"), true),
            (Failure::cut().about("a"), true),
        ];
        for (error, may_pass) in table {
            assert_eq!(error.may_pass(), may_pass, "{error:?}");
            let text = format!("{error} {error:?}");
            assert!(!text.contains("SECRET") && !text.contains("://"), "{text}");
        }
        let text = answered(Theirs::PermissionDenied, 403).to_string();
        assert!(text.contains("status 403, SomeWord"), "{text}");
    }

    #[test]
    fn without_an_answer_the_cause_decides() {
        let said = |why: &str| {
            let source = io::Error::other(why.to_owned());
            let error = opendal::Error::new(Theirs::Unexpected, "send http request");
            Failure::new(&Fault::Refused(error.set_source(source))).about("a")
        };
        assert!(said("Connection refused").may_pass());
        assert!(!said("invalid peer certificate: UnknownIssuer").may_pass());
        assert!(!said("Permission denied (publickey).").may_pass());
        assert!(!said("at https://host/?sig=x").to_string().contains("sig"));
    }
}
