//! Our primitives against published test vectors, as a guard against a broken build (AES-256-GCM is
//! tested beside its use, in `src/session.rs`).

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `test_vectors.json` of the BLAKE3 repository: input length, keyed hash, derived key.
const BLAKE3: [(usize, &str, &str); 5] = [
    (
        0,
        "92b2b75604ed3c761f9d6f62392c8a9227ad0ea3f09573e783f1498a4ed60d26",
        "2cc39783c223154fea8dfb7c1b1660f2ac2dcbd1c1de8277b0b0dd39b7e50d7d",
    ),
    (
        1,
        "6d7878dfff2f485635d39013278ae14f1454b8c0a3a2d34bc1ab38228a80c95b",
        "b3e2e340a117a499c6cf2398a19ee0d29cca2bb7404c73063382693bf66cb06c",
    ),
    (
        1024,
        "75c46f6f3d9eb4f55ecaaee480db732e6c2105546f1e675003687c31719c7ba4",
        "7356cd7720d5b66b6d0697eb3177d9f8d73a4a5c5e968896eb6a689684302706",
    ),
    (
        1025,
        "357dc55de0c7e382c900fd6e320acc04146be01db6a8ce7210b7189bd664ea69",
        "effaa245f065fbf82ac186839a249707c3bddf6d3fdda22d1b95a3c970379bcb",
    ),
    (
        4097,
        "00df940cd36bb9fa7cbbc3556744e0dbc8191401afe70520ba292ee3ca80abbc",
        "aca51029626b55fda7117b42a7c211f8c6e9ba4fe5b7a8ca922f34299500ead8",
    ),
];

#[test]
fn blake3_gives_the_published_answers() {
    for (len, keyed, derived) in BLAKE3 {
        let input: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        let hash = blake3::keyed_hash(b"whats the Elvish word for friend", &input);
        assert_eq!(hex(hash.as_bytes()), keyed, "keyed, {len} bytes");
        let key = blake3::derive_key("BLAKE3 2019-12-27 16:29:52 test vectors context", &input);
        assert_eq!(hex(&key), derived, "derived, {len} bytes");
    }
}

/// RFC 9106, section 5.3.
#[test]
fn argon2id_gives_the_answer_of_rfc_9106() {
    let params = argon2::ParamsBuilder::new()
        .m_cost(32)
        .t_cost(3)
        .p_cost(4)
        .data(argon2::AssociatedData::new(&[4; 12]).expect("12 bytes fit"))
        .build()
        .expect("the RFC's parameters");
    let argon2 = argon2::Argon2::new_with_secret(
        &[3; 8],
        argon2::Algorithm::Argon2id,
        argon2::Version::V0x13,
        params,
    )
    .expect("a short secret");
    let mut out = [0; 32];
    argon2.hash_password_into(&[1; 32], &[2; 16], &mut out).expect("hashes");
    assert_eq!(hex(&out), "0d640df58d78766c08c037a34a8b53c9d01ef0452d75b65eb52520e96b01e659");
}
