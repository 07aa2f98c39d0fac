//! An authority that makes certificates for tests, as PEM texts.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// An authority.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate.
    pub pem: String,
}

/// A certificate and its key.
pub struct Identity {
    pub cert: String,
    pub key: String,
}

fn named(names: &[&str], common: &str) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
    let mut params = CertificateParams::new(names).expect("names");
    params.distinguished_name.push(DnType::CommonName, common);
    params
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("randomness");
        let mut params = named(&[], name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    fn sign(&self, mut params: CertificateParams, purpose: ExtendedKeyUsagePurpose) -> Identity {
        let key = KeyPair::generate().expect("randomness");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![purpose];
        let cert = params.signed_by(&key, &self.issuer).expect("a certificate").pem();
        Identity { cert, key: key.serialize_pem() }
    }

    /// A certificate for a server on this computer.
    pub fn server(&self) -> Identity {
        let params = named(&["localhost", "127.0.0.1"], "server");
        self.sign(params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    pub fn client(&self) -> Identity {
        self.sign(named(&[], "client"), ExtendedKeyUsagePurpose::ClientAuth)
    }
}
