//! Forms with files.

use palyra_daemon::fuzzing::form;

use super::refused;

const TYPE: &str = "multipart/form-data; boundary=b0undary";

/// A form, behind a line with its `Content-Type`. In pieces it reads as it does at once, and what is written as a form is read as it was.
pub fn multipart(bytes: &[u8]) {
    let line = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (head, body) = bytes.split_at(line);
    let named = std::str::from_utf8(head).unwrap_or_default();
    for content_type in [named, TYPE] {
        let body = body.strip_prefix(b"\n").unwrap_or(body);
        let whole = form(content_type, body, usize::MAX);
        if let Err(error) = &whole {
            refused(error, &["request_invalid"], bytes.len());
        }
        for piece in [1, 3, 1000] {
            let in_pieces = form(content_type, body, piece);
            assert_eq!(in_pieces.as_ref().ok(), whole.as_ref().ok(), "in pieces of {piece}");
        }
    }
    round_trip(bytes);
}

fn round_trip(bytes: &[u8]) {
    if bytes.windows(8).any(|window| window == b"b0undary") {
        return;
    }
    let (one, other) = bytes.split_at(bytes.len() / 2);
    let mut written = Vec::new();
    for (name, content) in [("one.bin", one), ("other.bin", other)] {
        let head = format!("--b0undary\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n");
        written.extend([head.as_bytes(), content, b"\r\n"].concat());
    }
    written.extend(b"--b0undary--\r\n");
    let read = form(TYPE, &written, 7).expect("a form that is right is read");
    assert_eq!(read, [("one.bin".to_owned(), one.to_vec()), ("other.bin".to_owned(), other.to_vec())]);
}
