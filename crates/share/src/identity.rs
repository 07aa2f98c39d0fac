//! Who the server is: a certificate that it makes for itself, which clients know by its
//! fingerprint.

use crate::error::{Doing, Error, Result};
use oblivio_store::replace_file;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme, version,
};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The name in every server's certificate: nobody is found by it.
pub const NAME: &str = "oblivio-share";

/// BLAKE3 of a server's certificate.
pub type Fingerprint = [u8; 32];

/// The bits that let others read a file.
const OTHERS: u32 = 0o077;

fn tls(error: impl std::fmt::Display) -> Error {
    Error::Tls(error.to_string())
}

/// The name that a client asks for.
pub fn server_name() -> ServerName<'static> {
    ServerName::DnsName(rustls::pki_types::DnsName::try_from(NAME).unwrap_or_else(|_| {
        // The name is a constant that the tests read.
        unreachable!("a valid name")
    }))
}

/// Random bytes.
///
/// # Errors
/// When the system has none.
pub fn random() -> Result<[u8; 32]> {
    let mut bytes = [0; 32];
    aws_lc_rs::default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| tls("the system has no random bytes"))?;
    Ok(bytes)
}

/// The server's configuration from the files of its folder, made at the first start, and its
/// fingerprint.
///
/// # Errors
/// The files cannot be read or made, others may read the key, or they do not fit.
pub fn load(dir: &Path) -> Result<(Arc<ServerConfig>, Fingerprint)> {
    let (cert, key) = (dir.join("certificate.pem"), dir.join("key.pem"));
    if !cert.exists() {
        make(&cert, &key)?;
    }
    let shown = key.display().to_string();
    let found = fs::metadata(&key).doing(&shown)?;
    if found.permissions().mode() & OTHERS != 0 {
        return Err(Error::Open(key));
    }
    let secret = Zeroizing::new(fs::read(&key).doing(&shown)?);
    // Details are withheld: they might hold parts of the key.
    let secret =
        PrivateKeyDer::from_pem_slice(&secret).map_err(|_| tls(format!("{shown} is no key")))?;
    let certificate = fs::read(&cert).doing(cert.display())?;
    let certificate = CertificateDer::from_pem_slice(&certificate).map_err(tls)?;
    let fingerprint = *blake3::hash(&certificate).as_bytes();
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&version::TLS13])
        .map_err(tls)?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], secret)
        .map_err(tls)?;
    // Clients connect once and stay, so resumption gains nothing.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok((Arc::new(config), fingerprint))
}

fn make(cert: &Path, key: &Path) -> Result<()> {
    let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).map_err(tls)?;
    let secret = Zeroizing::new(made.signing_key.serialize_pem());
    // The certificate is last: a key without one is made anew.
    for (path, text) in [(key, &*secret), (cert, &made.cert.pem())] {
        replace_file(path, text.as_bytes()).doing(path.display())?;
    }
    Ok(())
}

/// A client's configuration, for the server with this fingerprint only.
///
/// # Errors
/// When the library refuses.
pub fn pinned(fingerprint: Fingerprint) -> Result<Arc<ClientConfig>> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Pinned { fingerprint, provider: Arc::clone(&provider) };
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&version::TLS13])
        .map_err(tls)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Accepts one certificate, and its owner only.
#[derive(Debug)]
struct Pinned {
    fingerprint: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        // Both are public; the comparison may take any time.
        match blake3::hash(end_entity).as_bytes() == &self.fingerprint {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.3 only".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
