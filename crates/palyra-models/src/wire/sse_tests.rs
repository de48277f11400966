//! The parser against a table of streams, and against every way of cutting them.

use proptest::prelude::*;

use super::*;

fn parse(chunks: &[&[u8]]) -> Result<Vec<String>, ModelError> {
    sse_events(chunks.iter().copied())
}

#[test]
fn streams_are_read_as_the_standard_says() {
    let table: &[(&str, &[&str])] = &[
        ("", &[]),
        ("data: a\n\n", &["a"]),
        ("data:a\n\ndata:  b\n\n", &["a", " b"]),
        ("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]),
        ("data: a\r\rdata: b\r\r", &["a", "b"]),
        ("data: a\ndata: b\ndata\ndata: c\n\n", &["a\nb\n\nc"]),
        (": comment\n\ndata: a\n: again\n\n", &["a"]),
        ("event: message\nid: 7\nretry: 10\ndata: a\n\n", &["a"]),
        ("event: ping\n\n\n\n", &[]),
        ("data\n\n", &[""]),
        ("\u{feff}data: a\n\n", &["a"]),
        ("data: a:b\n\n", &["a:b"]),
        ("databank: a\n\n", &[]),
        ("data: cut off", &["cut off"]),
        ("data: no empty line\n", &["no empty line"]),
        ("data: [DONE]\n\n", &["[DONE]"]),
        ("data: grüße 🦀\n\n", &["grüße 🦀"]),
    ];
    for (stream, expected) in table {
        assert_eq!(&parse(&[stream.as_bytes()]).unwrap(), expected, "{stream:?}");
        let bytes: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
        assert_eq!(&parse(&bytes).unwrap(), expected, "{stream:?} byte by byte");
    }
}

#[test]
fn invalid_text_and_endless_events_are_refused() {
    assert!(parse(&[b"data: \xff\n\n"]).is_err());
    assert!(parse(&[b"data: \xe2\x82"]).is_err(), "half a character at the end");
    let megabyte = vec![b'x'; 1024 * 1024];
    let endless_line: Vec<&[u8]> = std::iter::repeat_n(megabyte.as_slice(), 9).collect();
    assert!(parse(&endless_line).is_err());
    let lines = [b"data: ".as_slice(), &megabyte, b"\n"].concat();
    let endless_event: Vec<&[u8]> = std::iter::repeat_n(lines.as_slice(), 9).collect();
    assert!(parse(&endless_event).is_err());
}

proptest! {
    #[test]
    fn the_same_events_come_out_however_the_bytes_are_cut(
        pieces in prop::collection::vec(
            prop_oneof![
                Just("data: "), Just("data"), Just(":"), Just("\r"), Just("\n"), Just("\r\n"), Just("\n\n"),
                Just("é"), Just("🦀"), Just("{\"a\":1}"), Just("event: x"), Just("[DONE]"), Just("\u{feff}"), Just(" "),
            ],
            0..40,
        ),
        cuts in prop::collection::vec(1_usize..7, 1..20),
    ) {
        let stream = pieces.concat().into_bytes();
        let whole = parse(&[&stream]).unwrap();
        let mut chunks = Vec::new();
        let mut rest = stream.as_slice();
        for size in cuts.iter().cycle() {
            if rest.is_empty() { break; }
            let (chunk, after) = rest.split_at((*size).min(rest.len()));
            chunks.push(chunk);
            rest = after;
        }
        prop_assert_eq!(parse(&chunks).unwrap(), whole);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&[&bytes]);
    }
}
