//! The first tokens of an account: the user logs on in a browser, which comes back to this computer
//! with a code, and the code is exchanged for tokens.
//!
//! The code is good for nobody else. It belongs to a random verifier that never leaves this process
//! but for the exchange (PKCE, RFC 7636); the browser gets a hash of it only. The state keeps out
//! who else on this computer might send a code. The client's id is the user's own registration with
//! the service, so there is no secret of ours that everybody had.

use super::super::failure::Fault;
use super::super::open::connections;
use super::super::runtime::Runtime;
use super::super::secrets::StoreSecret;
use super::super::url::{OnlinePlace, Service};
use super::client::refused_to_give;
use super::connect::{addresses_at, client, log_on_at};
use super::http::{escaped, once};
use super::tokens::{Stored, USUAL, form, now};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Deserialize;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use zeroize::Zeroizing;

/// The longest request of a browser, and how long it may take.
const MOST: usize = 16 << 10;
const A_REQUEST: Duration = Duration::from_secs(10);

/// The program that asks for tokens, as it is registered with the service.
#[derive(Debug)]
pub struct Registration {
    /// Its id.
    pub id: String,
    /// Its secret, where the service wants one of programs that cannot keep it.
    pub secret: Option<StoreSecret>,
}

/// What shows that a code was asked for here.
#[derive(Debug)]
pub struct Proof {
    verifier: StoreSecret,
    challenge: String,
    state: StoreSecret,
}

impl Proof {
    /// From random bytes, and the hash that the services know as S256.
    #[must_use]
    pub fn new(random: &[u8; 48], sha256: impl Fn(&[u8]) -> [u8; 32]) -> Self {
        let (verifier, state) = random.split_at(32);
        let verifier = StoreSecret::new(URL_SAFE_NO_PAD.encode(verifier));
        let challenge = URL_SAFE_NO_PAD.encode(sha256(verifier.reveal().as_bytes()));
        Self { verifier, challenge, state: StoreSecret::new(URL_SAFE_NO_PAD.encode(state)) }
    }
}

/// Why nobody is logged on.
#[derive(Debug, thiserror::Error)]
pub enum LogOnError {
    /// The place is wrong, or nothing can be sent.
    #[error("{0}")]
    Setup(&'static str),
    /// The port is taken.
    #[error("port {0} of this computer cannot be listened on: {1}")]
    Port(u16, io::ErrorKind),
    /// Nobody came back from the service.
    #[error("nobody came back from the log-on page in time")]
    TimedOut,
    /// The service, or the user at its page, said no.
    #[error("the service refuses it ({0})")]
    Refused(String),
    /// The service did not answer.
    #[error("the service does not answer: {0}")]
    NoAnswer(String),
    /// There is no refresh token in the answer.
    #[error("the service gave no refresh token, so the log-on would end within hours")]
    NoRefresh,
}

/// A log-on that has begun: it listens for the browser.
pub struct LogOn {
    listener: TcpListener,
    address: String,
    redirect: String,
    tokens: String,
    scope: &'static str,
    client: Registration,
    proof: Proof,
}

impl fmt::Debug for LogOn {
    // The address holds the state.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("LogOn").field("redirect", &self.redirect).finish_non_exhaustive()
    }
}

/// What the service sends for a code.
#[derive(Deserialize)]
struct Given {
    access_token: String,
    refresh_token: Option<String>,
    expires_in: Option<u64>,
}

impl LogOn {
    /// Begins to listen. With port 0 the system chooses one.
    ///
    /// # Errors
    /// The port is taken, or the place is no account.
    pub fn begin(
        place: &OnlinePlace,
        client: Registration,
        proof: Proof,
        port: u16,
    ) -> Result<Self, LogOnError> {
        if !place.service.is_account() {
            return Err(LogOnError::Setup("only dropbox, gdrive and onedrive have a log-on"));
        }
        let at = addresses_at(place).map_err(LogOnError::Setup)?;
        let failed = |error: io::Error| LogOnError::Port(port, error.kind());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let redirect = match place.service {
            // Its pages take no other address without encryption.
            Service::OneDrive => format!("http://localhost:{port}"),
            _ => format!("http://127.0.0.1:{port}/"),
        };
        let [page, tokens, scope] = log_on_at(place.service);
        // What makes each service give a token that can be renewed.
        let offline = match place.service {
            Service::Dropbox => "&token_access_type=offline",
            Service::GDrive => "&access_type=offline&prompt=consent",
            _ => "",
        };
        let address = format!(
            "{}?response_type=code&client_id={}&redirect_uri={}&scope={}&state={}\
             &code_challenge={}&code_challenge_method=S256{offline}",
            at(page),
            escaped(&client.id),
            escaped(&redirect),
            escaped(scope),
            proof.state.reveal(),
            proof.challenge,
        );
        Ok(Self { listener, address, redirect, tokens: at(tokens), scope, client, proof })
    }

    /// The page at which the user logs on. It is for the user's browser alone.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The address at which the browser comes back, as it is registered with the service.
    #[must_use]
    pub fn redirect(&self) -> &str {
        &self.redirect
    }

    /// Waits for the browser, and gives the tokens as they are stored.
    ///
    /// # Errors
    /// Nobody came in time; the service says no, or does not answer.
    pub fn finish(self, runtime: &Runtime, patience: Duration) -> Result<StoreSecret, LogOnError> {
        let done = runtime.one(Box::pin(async move {
            let code = match timeout(patience, self.code()).await {
                Err(_) => return Ok(Err(LogOnError::TimedOut)),
                Ok(Err(error)) => return Ok(Err(error)),
                Ok(Ok(code)) => code,
            };
            Ok(self.exchange(&code).await)
        }));
        done.unwrap_or_else(|_| Err(LogOnError::NoAnswer("the log-on was given up".to_owned())))
    }

    /// Answers browsers until one brings the code.
    async fn code(&self) -> Result<StoreSecret, LogOnError> {
        let failed = |error: io::Error| LogOnError::Port(0, error.kind());
        let listener = self.listener.try_clone().map_err(failed)?;
        let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
        let (sender, mut asked) = mpsc::channel(8);
        // It ends with this set.
        let mut listening = JoinSet::new();
        listening.spawn(listen(listener, sender));
        while let Some((line, target)) = asked.recv().await {
            let (status, says, outcome) = self.judge(&target);
            drop(timeout(A_REQUEST, answer(line, status, says)).await);
            if let Some(outcome) = outcome {
                return outcome;
            }
        }
        Err(failed(io::ErrorKind::Other.into()))
    }

    /// What to answer to a request, and what follows from it.
    #[allow(clippy::type_complexity, reason = "three answers to one question")]
    fn judge(
        &self,
        target: &str,
    ) -> (&'static str, &'static str, Option<Result<StoreSecret, LogOnError>>) {
        let url = reqwest::Url::parse("http://localhost").and_then(|base| base.join(target));
        let Some(url) = url.ok().filter(|url| url.path() == "/") else {
            return ("404 Not Found", "There is nothing here.", None);
        };
        let value = |key: &str| {
            let found = url.query_pairs().find(|(name, _)| name == key);
            found.map(|(_, value)| Zeroizing::new(value.into_owned()))
        };
        // Somebody else's code would be for somebody else's account.
        if value("state").is_none_or(|state| *state != self.proof.state.reveal()) {
            return ("400 Bad Request", "This log-on was not asked for here.", None);
        }
        match (value("code"), value("error")) {
            (Some(code), None) => {
                let says = "Oblivio has what it needs. See the terminal, and close this page.";
                ("200 OK", says, Some(Ok(StoreSecret::new(code.to_string()))))
            }
            (_, error) => {
                let word = word(error.as_deref().map_or("", |it| it.as_str()));
                let says = "The service says no. See the terminal, and close this page.";
                ("200 OK", says, Some(Err(LogOnError::Refused(word))))
            }
        }
    }

    async fn exchange(&self, code: &StoreSecret) -> Result<StoreSecret, LogOnError> {
        let mut pairs = vec![
            ("grant_type", "authorization_code"),
            ("code", code.reveal()),
            ("client_id", &self.client.id),
            ("redirect_uri", &self.redirect),
            ("code_verifier", self.proof.verifier.reveal()),
        ];
        if let Some(secret) = &self.client.secret {
            pairs.push(("client_secret", secret.reveal()));
        }
        let ask = form(&self.tokens, &pairs);
        let http = client(connections()).map_err(LogOnError::Setup)?;
        let sent = once(&http, &ask, None, refused_to_give);
        let answer = timeout(Duration::from_secs(30), sent).await.unwrap_or(Err(Fault::TimedOut));
        let answer = Zeroizing::new(answer.map_err(explained)?.body);
        let given: Given = serde_json::from_slice(&answer)
            .map_err(|_| LogOnError::NoAnswer("its answer is not understood".to_owned()))?;
        let refresh = given.refresh_token.ok_or(LogOnError::NoRefresh)?;
        let stored = Stored {
            client_id: self.client.id.clone(),
            client_secret: self.client.secret.clone(),
            scope: Some(self.scope.to_owned()),
            refresh_token: Some(StoreSecret::new(refresh)),
            access_token: Some(StoreSecret::new(given.access_token)),
            expires_at: now() + given.expires_in.unwrap_or(USUAL),
        };
        let text = serde_json::to_string(&stored);
        text.map(StoreSecret::new).map_err(|_| LogOnError::Setup("the tokens cannot be written"))
    }
}

/// Why a code was not exchanged.
fn explained(fault: Fault) -> LogOnError {
    match fault {
        Fault::Said(said) if said.word.is_empty() => {
            LogOnError::Refused(format!("status {}", said.status))
        }
        Fault::Said(said) => LogOnError::Refused(word(&said.word)),
        Fault::TimedOut => LogOnError::NoAnswer("it took too long".to_owned()),
        Fault::Way(Some(why)) => LogOnError::NoAnswer(why),
        _ => LogOnError::NoAnswer("the connection failed".to_owned()),
    }
}

/// A word of the service, if it is one: it comes through a browser, which may be led anywhere.
fn word(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let is_word = (1..=40).contains(&text.len()) && text.bytes().all(plain);
    if is_word { text.to_owned() } else { "without a reason".to_owned() }
}

/// A browser that waits for an answer, and what it asked for.
type Asked = (TcpStream, Zeroizing<String>);

/// Hears browsers. They open connections that they do not use: none keeps another one waiting.
async fn listen(listener: tokio::net::TcpListener, sender: mpsc::Sender<Asked>) {
    while let Ok((line, _)) = listener.accept().await {
        let sender = sender.clone();
        tokio::spawn(async move {
            if let Ok(Some(asked)) = timeout(A_REQUEST, read(line)).await {
                // Nobody listens any more only if the code is here.
                drop(sender.send(asked).await);
            }
        });
    }
}

/// The target of a browser's request.
async fn read(mut line: TcpStream) -> Option<Asked> {
    let mut head = Zeroizing::new(Vec::with_capacity(MOST));
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = line.read_buf(&mut *head).await.ok()?;
        if count == 0 || head.len() >= MOST {
            return None;
        }
    }
    let head = std::str::from_utf8(&head).ok()?;
    let target = head.strip_prefix("GET ")?.split(' ').next()?;
    target.starts_with('/').then(|| (line, Zeroizing::new(target.to_owned())))
}

async fn answer(mut line: TcpStream, status: &str, says: &str) -> io::Result<()> {
    let page = format!("<!doctype html><meta charset=utf-8><title>Oblivio</title><p>{says}</p>\n");
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n",
        page.len()
    );
    line.write_all(head.as_bytes()).await?;
    line.write_all(page.as_bytes()).await?;
    line.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_as_the_standard_says() {
        // The hash here is none; that of the standard is tested where it is made.
        let proof = Proof::new(&[0xff; 48], |bytes| {
            assert_eq!(bytes.len(), 43);
            [0; 32]
        });
        assert_eq!(proof.challenge, "A".repeat(43));
        assert!(proof.verifier.reveal().bytes().all(|it| it == b'_' || it == b'8'));
        assert!(!format!("{proof:?}").contains("____"));
    }

    #[test]
    fn only_plain_words_are_repeated() {
        assert_eq!(word("access_denied"), "access_denied");
        for bad in ["", "canary-code", "<script>", "A", &"a".repeat(41)] {
            assert_eq!(word(bad), "without a reason");
        }
    }
}
