//! What a request says when it fails, as an error of a store.
//!
//! The library's own errors carry addresses and headers, which may hold signatures. So nothing of
//! them is passed on but the kind, the status, the service's word for it, and what the connection
//! said.

use oblivio_store::StoreError;
use std::io;

/// A failed request.
#[derive(Debug)]
pub(super) enum Fault {
    /// It had no answer in time.
    TimedOut,
    /// It ended without an answer, as the store was closed.
    Ended,
    /// The service, or the way to it, refused it, as the library says.
    Refused(opendal::Error),
    /// The service refused it, as a driver of ours understood.
    Said(Said),
    /// There was no whole answer, and why, if that is known.
    Way(Option<String>),
}

/// What a driver of ours understood of a refusal.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) kind: Kind,
    pub(super) status: u16,
    /// The service's word for it. Only a plain one is shown.
    pub(super) word: String,
    /// The seconds that it asks to wait.
    pub(super) wait: Option<u64>,
}

impl Fault {
    /// A refusal that needs no more words than its kind has.
    pub(super) fn of(kind: Kind) -> Self {
        Self::Said(Said { kind, status: 0, word: String::new(), wait: None })
    }

    /// What the connection said. The error itself would show the address.
    pub(super) fn way(error: reqwest::Error) -> Self {
        Self::Way(cause_of(&error.without_url()))
    }

    /// The same, for another one who waits for this request.
    pub(super) fn again(&self) -> Self {
        match self {
            Self::TimedOut => Self::TimedOut,
            Self::Ended => Self::Ended,
            Self::Said(said) => Self::Said(said.clone()),
            Self::Way(cause) => Self::Way(cause.clone()),
            Self::Refused(error) => Self::Way(cause_of(error)),
        }
    }

    /// Whether the service asks to wait, and how many seconds, if it says so.
    pub(super) fn wait(&self) -> Option<Option<u64>> {
        match self {
            Self::Said(said) if said.kind == Kind::Io(io::ErrorKind::ResourceBusy) => {
                Some(said.wait)
            }
            Self::Refused(error) => {
                let seconds = retry_after(error);
                let limited = error.kind() == opendal::ErrorKind::RateLimited;
                match status_of(error) {
                    Some(429) => Some(seconds),
                    Some(503) if seconds.is_some() => Some(seconds),
                    _ => limited.then_some(seconds),
                }
            }
            _ => None,
        }
    }

    /// Whether the object is not there.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Said(said) if said.kind == Kind::Missing)
    }

    /// Whether the name is taken.
    pub(super) fn is_taken(&self) -> bool {
        matches!(self, Self::Said(said) if said.kind == Kind::Exists)
    }

    /// Whether the service refuses the token.
    pub(super) fn is_logged_out(&self) -> bool {
        matches!(self, Self::Said(said) if said.kind == Kind::LoggedOut)
    }
}

/// A failure that can be reported several times.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    kind: Kind,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Missing,
    Exists,
    /// The range is not there. The caller finds the length.
    Range,
    /// The service sent more than was asked for.
    TooMuch,
    Full,
    /// The token is not taken, or not any more.
    LoggedOut,
    /// Somebody has locked the object at the service.
    Locked,
    /// The folder that it would be in is not there.
    NoFolder,
    Io(io::ErrorKind),
}

impl Failure {
    pub(super) fn new(fault: &Fault) -> Self {
        match fault {
            Fault::TimedOut => Self::io(io::ErrorKind::TimedOut, "no answer in time"),
            Fault::Ended => Self::io(io::ErrorKind::Other, "the request was given up"),
            Fault::Refused(error) => Self::refused(error),
            Fault::Said(said) => Self::said(said),
            Fault::Way(cause) => {
                let kind = Kind::Io(way(cause.as_deref().unwrap_or_default()));
                Self { kind, text: because(kind, cause.as_deref()) }
            }
        }
    }

    fn said(said: &Said) -> Self {
        let mut text = reason(&said.word).unwrap_or_else(|| advice(said.kind)).to_owned();
        match (said.status, plain_word(&said.word)) {
            (0, _) => {}
            (status, Some(word)) => text += &format!(" (status {status}, {word})"),
            (status, None) => text += &format!(" (status {status})"),
        }
        Self { kind: said.kind, text }
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
        Self { kind: Kind::TooMuch, text: advice(Kind::TooMuch).to_owned() }
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
        match status {
            Some(300..400) => Self { kind, text: elsewhere(&format!("{error:?}")) },
            Some(status) => {
                let word = code_of(error.message()).unwrap_or_default().to_owned();
                Self::said(&Said { kind, status, word, wait: None })
            }
            None => Self { kind, text: because(kind, cause_of(error).as_deref()) },
        }
    }

    /// Whether the range goes beyond the object's end.
    pub(super) fn is_range(&self) -> bool {
        self.kind == Kind::Range
    }

    fn system(&self, kind: io::ErrorKind, object: &str) -> StoreError {
        StoreError::service(object, kind, self.text.clone())
    }

    /// As the error of a call about this object.
    pub(super) fn about(&self, object: &str) -> StoreError {
        match self.kind {
            Kind::Missing => StoreError::missing(object),
            Kind::Exists => StoreError::Exists { object: object.to_owned() },
            Kind::Full => StoreError::Full,
            Kind::Range => StoreError::out_of_range(object),
            Kind::TooMuch => self.system(io::ErrorKind::Unsupported, object),
            Kind::LoggedOut | Kind::Locked => self.system(io::ErrorKind::PermissionDenied, object),
            Kind::NoFolder => self.system(io::ErrorKind::InvalidInput, object),
            Kind::Io(kind) => self.system(kind, object),
        }
    }
}

fn because(kind: Kind, cause: Option<&str>) -> String {
    let advice = advice(kind);
    cause.map_or_else(|| advice.to_owned(), |cause| format!("{advice}: {cause}"))
}

fn kind_of(error: &opendal::Error, status: Option<u16>) -> Kind {
    use io::ErrorKind as Io;
    use opendal::ErrorKind as Theirs;
    let word = code_of(error.message()).unwrap_or_default();
    match (error.kind(), status) {
        _ if NO_BUCKET.contains(&word) => Kind::Io(Io::InvalidInput),
        _ if NO_ROOM.contains(&word) => Kind::Full,
        _ if reason(word).is_some() => Kind::Io(Io::PermissionDenied),
        (_, Some(300..400)) => Kind::Io(Io::InvalidInput),
        (_, Some(507)) => Kind::Full,
        (Theirs::NotFound, _) => Kind::Missing,
        (Theirs::ConditionNotMatch | Theirs::AlreadyExists, _) => Kind::Exists,
        (Theirs::RangeNotSatisfied, _) | (_, Some(416)) => Kind::Range,
        (Theirs::PermissionDenied, _) | (_, Some(401 | 403)) => Kind::Io(Io::PermissionDenied),
        // Somebody locked it, or the folder above is gone: it stays so until somebody does
        // something.
        (_, Some(423)) => Kind::Locked,
        (_, Some(409)) if is_webdav(error) => Kind::NoFolder,
        (Theirs::RateLimited, _) | (_, Some(408 | 409 | 425 | 429)) => Kind::Io(Io::ResourceBusy),
        (Theirs::Unsupported, _) | (_, Some(405 | 501 | 505)) => Kind::Io(Io::Unsupported),
        (Theirs::ConfigInvalid, _) => Kind::Io(Io::InvalidInput),
        (_, Some(500..)) => Kind::Io(Io::ConnectionReset),
        (_, Some(300..)) => Kind::Io(Io::InvalidInput),
        _ if error.message().contains("credential") => Kind::Io(Io::PermissionDenied),
        _ => Kind::Io(way(&cause_of(error).unwrap_or_default())),
    }
}

/// The library has the service in its text only, as it has the status.
fn is_webdav(error: &opendal::Error) -> bool {
    format!("{error:?}").contains("service: webdav")
}

/// Why there was no answer at all. A wrong certificate stays wrong, and so does a server that does
/// not speak TLS; so do wrong credentials that were found before anything was sent.
fn way(cause: &str) -> io::ErrorKind {
    let says = |words: &[&str]| words.iter().any(|word| cause.contains(word));
    if says(&["certificate", "Host key verification failed", "InvalidContentType"]) {
        io::ErrorKind::InvalidData
    } else if says(&["Permission denied", "signing credential"]) {
        io::ErrorKind::PermissionDenied
    } else {
        io::ErrorKind::ConnectionReset
    }
}

/// What S3, Google and Azure say of a place that is not there, and of one that is full.
const NO_BUCKET: [&str; 2] = ["NoSuchBucket", "ContainerNotFound"];
const NO_ROOM: [&str; 3] = ["QuotaExceeded", "InsufficientCapacity", "XMinioStorageFull"];

/// What a refusal means, by the word that the service has for it.
fn reason(word: &str) -> Option<&'static str> {
    Some(match word {
        "ExpiredToken" | "TokenRefreshRequired" => "the session token has expired: get a new one",
        "InvalidToken" => "the service does not take the session token: get a new one",
        "RequestTimeTooSkewed" | "RequestExpired" => "this computer's clock is wrong: set it",
        "InvalidAccessKeyId" => "the service does not know the access key: check its id",
        "SignatureDoesNotMatch" | "AuthenticationFailed" => "the secret key is wrong: check it",
        "AccessDenied" | "AuthorizationPermissionMismatch" | "AuthorizationFailure" => {
            "this key may not do that: a volume needs one that reads, writes, lists and deletes"
        }
        "NoSuchBucket" | "ContainerNotFound" => "there is no such bucket: make it first",
        _ => return None,
    })
}

/// Whether the service has a word for its refusal.
pub(super) fn has_word(error: &opendal::Error) -> bool {
    code_of(error.message()).is_some_and(|word| !word.is_empty())
}

fn advice(kind: Kind) -> &'static str {
    use io::ErrorKind as Io;
    match kind {
        Kind::Missing => "it is not there",
        Kind::Exists => "it exists already",
        Kind::Range => "the range is not there",
        Kind::TooMuch => "the service ignores ranges: it sent more than was asked for",
        Kind::Full => "no space left",
        Kind::LoggedOut => "the service does not take the token, or not any more: get a new one",
        Kind::Locked => "somebody has locked it at the service: unlock it there",
        Kind::NoFolder => "the folder is not there, at the service: make it, or check the URL",
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

/// Whether the service answered that it will not do this, and is not asking to wait.
pub(super) fn was_refused(error: &opendal::Error) -> bool {
    status_of(error).is_some_and(|status| (400..500).contains(&status) && status != 429)
}

/// The seconds of a `Retry-After`. The library has that in its text only, too.
fn retry_after(error: &opendal::Error) -> Option<u64> {
    let text = format!("{error:?}");
    let (_, rest) = text.split_once("\"retry-after\": \"")?;
    rest.split('"').next()?.parse().ok()
}

/// Where a service sends us that is not there, from the library's text of its answer. Only a host
/// and a region are shown, which are no secrets.
fn elsewhere(text: &str) -> String {
    let header = |name: &str| {
        let (_, rest) = text.split_once(&format!("\"{name}\": \""))?;
        rest.split('"').next()
    };
    let named = |c: char| c.is_ascii_alphanumeric() || "-.:[]".contains(c);
    let clean = |it: &&str| (1..=120).contains(&it.len()) && it.chars().all(named);
    let host = header("location").and_then(|url| url.split_once("://"));
    let host = host.and_then(|(_, rest)| rest.split(['/', '?', '#']).next());
    let host = host.map(|it| it.rsplit('@').next().unwrap_or(it)).filter(clean);
    match (header("x-amz-bucket-region").filter(clean), host) {
        (Some(region), _) => format!("the bucket is in the region {region}: say region={region}"),
        (None, Some(host)) => format!(
            "the service sends us to {host}, and we do not follow: if it is right, name it in the URL"
        ),
        (None, None) => {
            "the service sends us elsewhere, and we do not follow: check the URL".into()
        }
    }
}

/// The service's own word, such as `AccessDenied`.
fn code_of(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("code: \"").or_else(|| message.split_once("<Code>"))?;
    rest.split(['"', '<']).next()
}

/// A word of a few letters, such as `path/not_found`. A secret has digits, or is longer.
fn plain_word(word: &str) -> Option<&str> {
    let plain = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'/');
    ((1..=40).contains(&word.len()) && word.bytes().all(plain)).then_some(word)
}

/// What the connection said, from the innermost error on.
fn cause_of(error: &dyn std::error::Error) -> Option<String> {
    let mut source = error.source()?;
    while let Some(inner) = source.source() {
        source = inner;
    }
    let text = source.to_string();
    let line: String = text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    // An address in it could carry a signature.
    let line = match line.contains("InvalidContentType") {
        true => "it does not speak TLS (InvalidContentType)".to_owned(),
        false => line,
    };
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
            (answered(Theirs::Unexpected, 409), true),
            (answered(Theirs::Unexpected, 423), false),
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
    fn refusals_are_told_apart_in_words() {
        let refused = |kind, status: u16, word: &str, more: &str| {
            let parts = format!("Parts {{ status: {status}, headers: {{{more}}}, body: () }}");
            let error = opendal::Error::new(kind, format!("S3Error {{ code: \"{word}\" }}"));
            Failure::new(&Fault::Refused(error.with_context("response", parts))).about("a")
        };
        for (kind, status, word, advice) in [
            (Theirs::Unexpected, 400, "ExpiredToken", "expired"),
            (Theirs::PermissionDenied, 403, "RequestTimeTooSkewed", "clock"),
            (Theirs::PermissionDenied, 403, "InvalidAccessKeyId", "check its id"),
            (Theirs::PermissionDenied, 403, "SignatureDoesNotMatch", "secret key is wrong"),
            (Theirs::PermissionDenied, 403, "AccessDenied", "reads, writes, lists and deletes"),
            (Theirs::NotFound, 404, "NoSuchBucket", "no such bucket"),
        ] {
            let error = refused(kind, status, word, "");
            assert!(!error.may_pass() && error.to_string().contains(advice), "{word}: {error}");
        }
        assert!(matches!(refused(Theirs::Unexpected, 403, "QuotaExceeded", ""), StoreError::Full));
        let there = "\"location\": \"https://other.example:8443/b?sig=SECRET\"";
        let error = refused(Theirs::Unexpected, 307, "", there);
        assert!(!error.may_pass() && error.to_string().contains("other.example:8443"), "{error}");
        assert!(!error.to_string().contains("SECRET"));
        let region = "\"x-amz-bucket-region\": \"eu-west-1\"";
        let error = refused(Theirs::Unexpected, 301, "PermanentRedirect", region);
        assert!(error.to_string().contains("region=eu-west-1"), "{error}");
    }

    #[test]
    fn a_conflict_at_a_webdav_server_is_a_missing_folder() {
        let parts = "Parts { status: 409, version: HTTP/1.1 }";
        let error = opendal::Error::new(Theirs::Unexpected, "").with_context("response", parts);
        let error = error.with_context("service", "webdav");
        let error = Failure::new(&Fault::Refused(error)).about("a");
        assert!(!error.may_pass() && error.to_string().contains("folder"), "{error}");
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
        let plain = said("received corrupt message of type InvalidContentType");
        assert!(!plain.may_pass() && plain.to_string().contains("does not speak TLS"), "{plain}");
        assert!(!said("Permission denied (publickey).").may_pass());
        assert!(!said("at https://host/?sig=x").to_string().contains("sig"));
    }
}
