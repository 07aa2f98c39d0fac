//! TLS from files: the server's certificate and key, and the authorities of its clients.
//!
//! This key proves to clients who the server is, and only TLS uses it. No volume's key is derived
//! from it, and no stored data depends on it: it can be replaced at any time.

use super::fault::TlsFault;
use crate::error::{Doing, Result};
use crate::log;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{Error, InconsistentKeys, RootCertStore, ServerConfig};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The bits that let every user of the computer read a file.
const OTHERS_READ: u32 = 0o004;

/// The TLS configuration. If `client_ca` is given, clients need a certificate by one of its
/// authorities. A key that others may read is used, with a warning.
///
/// # Errors
/// A file cannot be read, has the wrong content, or does not match the other.
pub fn config(cert: &Path, key: &Path, client_ca: Option<&Path>) -> Result<Arc<ServerConfig>> {
    let chain = certificates(cert)?;
    let secret = private_key(key)?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsFault::Library(error.into()))?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for authority in certificates(path)? {
                roots.add(authority).map_err(|error| unfit(path, error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            let verifier = verifier.build().map_err(|error| TlsFault::Library(error.into()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_single_cert(chain, secret).map_err(|error| match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            TlsFault::Mismatch { key: key.to_owned(), cert: cert.to_owned() }
        }
        Error::InvalidCertificate(_) => unfit(cert, error),
        _ => unfit(key, error),
    })?;
    // Clients connect once and stay, so resumption gains nothing.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

fn unfit(path: &Path, error: Error) -> TlsFault {
    TlsFault::Unfit { path: path.to_owned(), error }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let text = fs::read(path).doing(format_args!("the certificate {}", path.display()))?;
    let found: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(TlsFault::NoCertificate(path.to_owned()).into()),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    let shown = path.display();
    let text = fs::read(path).doing(format_args!("the key {shown}"))?;
    let text = Zeroizing::new(text);
    let found = fs::metadata(path).doing(format_args!("the key {shown}"))?;
    if found.permissions().mode() & OTHERS_READ != 0 {
        log::note(&format!(
            "every user of this computer can read the key {shown}, and pretend to be this server; \
             `chmod 600` it"
        ));
    }
    // Details are withheld: the text of the error might hold parts of the key.
    PrivateKeyDer::from_pem_slice(&text).map_err(|_| {
        let path = path.to_owned();
        match text.windows(9).any(|part| part == b"ENCRYPTED") {
            true => TlsFault::LockedKey(path).into(),
            false => TlsFault::NoKey(path).into(),
        }
    })
}
