//! The requests of a store to its account: with a token, through the gate, and again where that is
//! safe.
//!
//! A request that the service refused with "wait", or for an old token, was not carried out. It is
//! sent again with the same bytes. One whose outcome is unknown is the caller's business.

use super::super::failure::{Fault, Kind, Said};
use super::super::gate::Gate;
use super::super::secrets::StoreSecret;
use super::http::{Answer, Ask, Judge, Refusal, kind_of, once, text_at};
use super::tokens::Tokens;
use std::sync::Arc;

/// Requests at once. More are answered with "wait" soon.
pub(super) const AT_ONCE: usize = 8;
/// How often a request is sent that is refused with "wait". A probe's eight racers meet at a lock
/// that lets one write at a time pass.
const ATTEMPTS: usize = 7;

/// The connections of a store to its account.
pub(super) struct Client {
    http: reqwest::Client,
    gate: Arc<Gate>,
    tokens: Tokens,
    judge: Judge,
}

impl Client {
    pub(super) fn new(http: reqwest::Client, tokens: Tokens, at_once: usize, judge: Judge) -> Self {
        Self { http, gate: Gate::new(at_once), tokens, judge }
    }

    /// Sends a request until it is answered, or refused for good.
    pub(super) async fn send(&self, ask: Ask) -> Result<Answer, Fault> {
        let (mut renewed, mut attempts) = (false, 1);
        loop {
            let token = if ask.with_token { Some(self.token().await?) } else { None };
            let once = once(&self.http, &ask, token.as_ref(), self.judge);
            match self.gate.pass(ask.moves(), once).await {
                Err(fault) if fault.wait().is_some() && attempts < ATTEMPTS => attempts += 1,
                Err(fault) if fault.is_logged_out() && !renewed => {
                    let Some(token) = token else { return Err(fault) };
                    renewed = true;
                    self.tokens.renew(&token, |ask| self.renewal(ask)).await?;
                }
                answer => return answer,
            }
        }
    }

    /// The service asked to wait within an answer.
    pub(super) fn asked_to_wait(&self) {
        self.gate.close(self.gate.times(), None);
    }

    async fn token(&self) -> Result<StoreSecret, Fault> {
        self.tokens.current(|ask| self.renewal(ask)).await
    }

    async fn renewal(&self, ask: Ask) -> Result<Answer, Fault> {
        let once = once(&self.http, &ask, None, refused_to_give);
        self.gate.pass(ask.moves(), once).await
    }
}

/// Why no token is given. One that is refused has been taken back, or is too old.
pub(super) fn refused_to_give(refusal: &Refusal) -> Said {
    let kind = match refusal.status {
        400 | 401 => Kind::LoggedOut,
        status => kind_of(status, refusal.wait),
    };
    let word = text_at(&refusal.body, "/error");
    Said { kind, status: refusal.status, word, wait: refusal.wait }
}
