use super::*;

/// An answer to the question for `name`, with the given records (owner, type, data).
fn answer(id: u16, name: &str, kind: u16, records: &[(&str, u16, Vec<u8>)]) -> Vec<u8> {
    let mut message = question(id, name, kind).unwrap();
    message[2] = 0x81;
    message[7] = records.len() as u8;
    for (owner, kind, data) in records {
        message.extend(encoded(owner));
        message.extend(kind.to_be_bytes());
        message.extend([0, 1, 0, 0, 0, 60]);
        message.extend((data.len() as u16).to_be_bytes());
        message.extend(data);
    }
    message
}

fn encoded(name: &str) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        name.split('.').flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).collect();
    bytes.push(0);
    bytes
}

#[test]
fn addresses_are_those_of_the_name_and_its_aliases() {
    let records = [
        ("a.example", TYPE_CNAME, encoded("b.example")),
        ("b.example", TYPE_A, vec![93, 184, 216, 34]),
        ("evil.example", TYPE_A, vec![127, 0, 0, 1]),
    ];
    let message = answer(7, "a.example", TYPE_A, &records);
    let read = read_answer(&message, 7, "a.example", TYPE_A).unwrap();
    assert_eq!(read, Answer::Addresses(vec!["93.184.216.34".parse().unwrap()]));
    assert_eq!(read_answer(&message, 8, "a.example", TYPE_A), Err(Unreadable::NotOurs));
    assert_eq!(read_answer(&message, 7, "b.example", TYPE_A), Err(Unreadable::NotOurs));
    assert_eq!(read_answer(&message, 7, "a.example", TYPE_AAAA), Err(Unreadable::NotOurs));
}

#[test]
fn pointers_cannot_loop() {
    let mut message = answer(7, "a.example", TYPE_A, &[]);
    message[7] = 1;
    let here = message.len() as u8;
    message.extend([0xc0, here, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 1, 2, 3, 4]);
    assert!(matches!(read_answer(&message, 7, "a.example", TYPE_A), Err(Unreadable::Failed(_))));
    // A pointer to the question is what servers really write.
    let at = message.len() - 16;
    message[at + 1] = 12;
    assert_eq!(
        read_answer(&message, 7, "a.example", TYPE_A).unwrap(),
        Answer::Addresses(vec!["1.2.3.4".parse().unwrap()])
    );
}

#[test]
fn failures_are_named() {
    let mut message = answer(7, "a.example", TYPE_A, &[]);
    message[3] = 3;
    assert_eq!(
        read_answer(&message, 7, "a.example", TYPE_A),
        Err(Unreadable::Failed("the name does not exist".into()))
    );
    message[3] = 0;
    message[2] |= 2;
    assert_eq!(read_answer(&message, 7, "a.example", TYPE_A), Ok(Answer::Truncated));
    let short = answer(7, "a.example", TYPE_A, &[("a.example", TYPE_A, vec![1, 2, 3])]);
    assert!(matches!(read_answer(&short, 7, "a.example", TYPE_A), Err(Unreadable::Failed(_))));
}

proptest::proptest! {
    #[test]
    fn no_answer_panics(mut tail in proptest::collection::vec(0_u8.., 0..80), cut in 0_usize..200, count: u8) {
        let mut message = answer(7, "a.example", TYPE_A, &[("a.example", TYPE_CNAME, encoded("b.example"))]);
        message.append(&mut tail);
        message[7] = count;
        message.truncate(cut);
        let _ = read_answer(&message, 7, "a.example", TYPE_A);
    }
}
