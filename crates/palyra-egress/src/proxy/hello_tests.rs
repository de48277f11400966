use super::*;
use rustls_pki_types::ServerName;
use std::sync::Arc;

/// The greeting that rustls really sends.
fn greeting(name: &'static str) -> Vec<u8> {
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let mut connection = rustls::ClientConnection::new(Arc::new(config), ServerName::try_from(name).unwrap()).unwrap();
    let mut bytes = Vec::new();
    connection.write_tls(&mut bytes).unwrap();
    bytes
}

fn name_of(outcome: &HelloOutcome) -> Option<&str> {
    match outcome {
        HelloOutcome::Hello(hello) => hello.server_name.as_deref(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_real_greeting_is_read_at_every_length() {
    let bytes = greeting("api.example");
    assert_eq!(name_of(&read_client_hello(&bytes)), Some("api.example"));
    for length in 0..bytes.len() {
        assert_eq!(read_client_hello(&bytes[..length]), HelloOutcome::Incomplete, "the first {length} bytes");
    }
    let mut longer = bytes.clone();
    longer.extend([22, 3, 1, 0, 1, 0]);
    assert_eq!(name_of(&read_client_hello(&longer)), Some("api.example"));
    assert_eq!(name_of(&read_client_hello(&greeting("127.0.0.1"))), None, "addresses are not sent as names");
}

#[test]
fn a_greeting_in_many_records_is_joined() {
    let bytes = greeting("api.example");
    for size in [1, 2, 40, 100] {
        let records: Vec<u8> = bytes[5..]
            .chunks(size)
            .flat_map(|piece| [&[22, 3, 1], &(piece.len() as u16).to_be_bytes()[..], piece].concat())
            .collect();
        assert_eq!(name_of(&read_client_hello(&records)), Some("api.example"), "records of {size}");
    }
}

#[test]
fn what_is_no_greeting_is_called_so() {
    assert_eq!(read_client_hello(b"GET / HTTP/1.1"), HelloOutcome::NotTls);
    assert_eq!(read_client_hello(b"SSH-2.0"), HelloOutcome::NotTls);
    assert_eq!(read_client_hello(&[]), HelloOutcome::Incomplete);
    let bytes = greeting("api.example");
    for (at, value, what) in [
        (1, 2, "the version"),
        (3, 0xff, "the length of the record"),
        (5, 2, "the kind of message"),
        (6, 0xff, "the length of the message"),
        (43, 0xff, "the length of the session"),
    ] {
        let mut wrong = bytes.clone();
        wrong[at] = value;
        assert_eq!(read_client_hello(&wrong), HelloOutcome::Malformed, "{what}");
    }
}

#[test]
fn two_names_a_hidden_name_and_odd_names_are_seen() {
    let hello = |extensions: &[(u16, Vec<u8>)]| {
        let block: Vec<u8> = extensions
            .iter()
            .flat_map(|(kind, body)| [&kind.to_be_bytes()[..], &(body.len() as u16).to_be_bytes(), body].concat())
            .collect();
        let mut body = vec![3, 3];
        body.extend([0; 32]);
        body.extend([0, 0, 2, 0x13, 1, 1, 0]);
        body.extend((block.len() as u16).to_be_bytes());
        body.extend(block);
        let message = [&[1, 0], &(body.len() as u16).to_be_bytes()[..], &body].concat();
        read_client_hello(&[&[22, 3, 1], &(message.len() as u16).to_be_bytes()[..], &message].concat())
    };
    let name = |text: &[u8]| {
        let entry = [&[0], &(text.len() as u16).to_be_bytes()[..], text].concat();
        [&(entry.len() as u16).to_be_bytes()[..], &entry].concat()
    };
    assert_eq!(name_of(&hello(&[(0, name(b"a.example"))])), Some("a.example"));
    assert_eq!(hello(&[(0, name(b"a.example")), (0, name(b"b.example"))]), HelloOutcome::Malformed);
    let two = {
        let entry = [&[0, 0, 1][..], b"a", &[0, 0, 1], b"b"].concat();
        [&(entry.len() as u16).to_be_bytes()[..], &entry].concat()
    };
    assert_eq!(hello(&[(0, two)]), HelloOutcome::Malformed);
    assert_eq!(hello(&[(0, name(b"a\0b"))]), HelloOutcome::Malformed);
    assert_eq!(hello(&[(0, name(b""))]), HelloOutcome::Malformed);
    assert_eq!(hello(&[(0, vec![])]), HelloOutcome::Malformed);
    let hidden = hello(&[(0xfe0d, vec![1, 2, 3]), (0, name(b"front.example"))]);
    assert_eq!(
        hidden,
        HelloOutcome::Hello(ClientHello { server_name: Some("front.example".into()), hidden_name: true })
    );
    assert_eq!(name_of(&hello(&[])), None);
}

proptest::proptest! {
    #[test]
    fn reading_never_panics(mut bytes in proptest::collection::vec(0_u8.., 0..400), tls: bool) {
        if tls && bytes.len() > 6 {
            bytes[0] = 22;
            bytes[1] = 3;
            bytes[3] = 0;
            bytes[5] = 1;
            bytes[6] = 0;
        }
        let _ = read_client_hello(&bytes);
    }

    #[test]
    fn a_damaged_greeting_never_panics(at in 0_usize..300, value: u8) {
        let mut bytes = greeting("api.example");
        if let Some(slot) = bytes.get_mut(at) { *slot = value; }
        let _ = read_client_hello(&bytes);
    }
}
