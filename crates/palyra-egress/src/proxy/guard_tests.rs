use super::*;

fn refused(text: &str) -> Refusal {
    check_head(text.as_bytes(), 4096).unwrap_err()
}

#[test]
fn an_ordinary_head_is_understood() {
    let head = "POST http://a.example/x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello";
    let facts = check_head(head.as_bytes(), 4096).unwrap();
    assert_eq!(facts.method, "POST");
    assert_eq!(facts.target, "http://a.example/x");
    assert_eq!(facts.host.as_deref(), Some("a.example"));
    assert_eq!(facts.framing, Framing::Length(5));
    assert_eq!(facts.length, head.len() - 5);
}

#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    for lines in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 5, 5",
        "Content-Length: +5",
        "Content-Length: -5",
        "Content-Length: 0x5",
        "Content-Length: 5 5",
        "Content-Length:",
        "Content-Length: 99999999999999999999999",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: \"chunked\"",
        "Transfer-Encoding: \x0bchunked",
        "Transfer-Encoding : chunked",
        " Transfer-Encoding: chunked",
        "X: y\r\n Transfer-Encoding: chunked",
        "X: y\nTransfer-Encoding: chunked",
        "X: y\rTransfer-Encoding: chunked",
        "Transfer_Encoding: chunked",
        "Content_Length: 5",
        "X: a\0b",
        "Host: b.example",
        ": empty",
        "no colon",
    ] {
        let text = format!("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\n{lines}\r\n\r\n");
        let refusal = refused(&text);
        assert_eq!(refusal.reason, RefusalReason::AmbiguousRequest, "{lines:?}: {refusal}");
    }
    for line in [
        "GET  http://a.example/ HTTP/1.1",
        "GET http://a.example/ HTTP/1.1 x",
        "GET http://a.example/",
        "GET http://a.example/ HTTP/2.0",
        "G\u{1}T / HTTP/1.1",
        "",
        "\r\nGET / HTTP/1.1",
    ] {
        assert!(check_head(format!("{line}\r\nHost: a.example\r\n\r\n").as_bytes(), 4096).is_err(), "{line:?}");
    }
    assert_eq!(
        refused("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").reason,
        RefusalReason::AmbiguousRequest
    );
    assert_eq!(refused("CONNECT a:1 HTTP/1.1\r\nContent-Length: 5\r\n\r\n").reason, RefusalReason::AmbiguousRequest);
    assert_eq!(
        refused(&format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(5000))).reason,
        RefusalReason::HeaderLimit
    );
    assert_eq!(
        refused(&format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(101))).reason,
        RefusalReason::HeaderLimit
    );
}

fn follow_in_pieces(text: &str, size: usize) -> Result<usize, Refusal> {
    let mut follower = Follower::new(4096);
    let (mut pending, mut total) = (Vec::new(), 0);
    for piece in text.as_bytes().chunks(size) {
        pending.extend_from_slice(piece);
        // What is wrong is said by the call that begins with it.
        loop {
            let understood = follower.follow(&pending)?;
            pending.drain(..understood);
            total += understood;
            if understood == 0 {
                break;
            }
        }
    }
    Ok(total)
}

const TWO: &str = "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn a_stream_of_requests_is_followed_however_it_is_cut() {
    for size in [1, 2, 3, 7, 1000] {
        assert_eq!(follow_in_pieces(TWO, size).unwrap(), TWO.len(), "pieces of {size}");
    }
    for (what, text) in [
        (
            "a second request with both lengths",
            TWO.replace(
                "GET /b HTTP/1.1\r\n",
                "GET /b HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n",
            ),
        ),
        ("a chunk extension", TWO.replace("5\r\n", "5;x=y\r\n")),
        ("a bare line feed behind a size", TWO.replace("5\r\n", "5\n")),
        ("a size with a prefix", TWO.replace("5\r\n", "0x5\r\n")),
        ("a size with a sign", TWO.replace("5\r\n", "+5\r\n")),
        ("a size with a space", TWO.replace("5\r\n", "5 \r\n")),
        ("an empty size", TWO.replace("5\r\n", "\r\n")),
        ("a size that overflows", TWO.replace("5\r\n", "fffffffffffffffff\r\n")),
        ("a chunk longer than its size", TWO.replace("hello", "hello!")),
        ("trailers", TWO.replace("0\r\n\r\n", "0\r\nX: y\r\n\r\n")),
        ("a bare line feed at the end", TWO.replace("0\r\n\r\n", "0\r\n\n")),
    ] {
        for size in [1, 1000] {
            assert!(follow_in_pieces(&text, size).is_err(), "{what}");
        }
    }
    assert_eq!(follow_in_pieces(&"X".repeat(5000), 1).unwrap_err().reason, RefusalReason::HeaderLimit);
}

proptest::proptest! {
    #[test]
    fn following_never_panics(bytes in proptest::collection::vec(0_u8.., 0..300), size in 1_usize..40) {
        let mut follower = Follower::new(200);
        let mut pending = Vec::new();
        for piece in bytes.chunks(size) {
            pending.extend_from_slice(piece);
            match follower.follow(&pending) {
                Ok(understood) => { pending.drain(..understood); }
                Err(_) => break,
            }
        }
    }

    /// Cutting the stream differently never changes the verdict.
    #[test]
    fn the_cut_does_not_matter(size in 1_usize..80, at in 0_usize..120, byte: u8) {
        let mut bytes = TWO.as_bytes().to_vec();
        if let Some(slot) = bytes.get_mut(at) {
            *slot = byte;
        }
        if let Ok(text) = String::from_utf8(bytes) {
            proptest::prop_assert_eq!(follow_in_pieces(&text, size).is_err(), follow_in_pieces(&text, 1).is_err());
        }
    }
}
