use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use palyra_common::{DeviceId, PrincipalRole, Timestamp, ToStableError as _, TokenScope};
use proptest::prelude::*;

use crate::{
    Bounds, IdentityError, NewToken, Origin, Principal, PrincipalId, Refusal, Serial, TokenBook, TokenEvent, TokenId,
    Via,
};

const NOW: Timestamp = Timestamp(1_800_000_000_000);
const HOUR: Duration = Duration::from_secs(3_600);

fn owner() -> PrincipalId {
    PrincipalId::uid(1000)
}

/// What the local owner can hand on.
fn unbounded() -> Bounds {
    let owner = Principal::unix_socket(1000, PrincipalRole::Owner);
    Bounds::of(&owner, &owner.via, None)
}

fn wanted() -> NewToken {
    NewToken {
        name: "ci".into(),
        subject: "user:alice".parse().unwrap(),
        role: PrincipalRole::Operator,
        scopes: None,
        expires_at: None,
        rate_per_minute: None,
    }
}

/// A book with one token, and the token's text.
fn with_one(wanted: NewToken) -> (TokenBook, TokenId, String) {
    let mut book = TokenBook::new();
    let issued = book.create(wanted, &owner(), &unbounded(), NOW).unwrap();
    book.apply(&issued.event).unwrap();
    (book, issued.event.id().clone(), issued.text.expose().clone())
}

#[test]
fn a_token_stands_for_its_subject_with_its_scopes() {
    let scopes = BTreeSet::from([TokenScope::RunsRead, TokenScope::ModelsUse]);
    let rate = NonZeroU32::new(30);
    let (book, id, text) = with_one(NewToken { scopes: Some(scopes.clone()), rate_per_minute: rate, ..wanted() });
    let principal = book.verify(&text, NOW).unwrap();
    assert_eq!(principal.id.as_str(), "user:alice");
    assert_eq!((principal.role, &principal.scopes), (PrincipalRole::Operator, &scopes));
    assert_eq!(principal.rate_per_minute, rate);
    assert!(matches!(principal.via, Via::ApiToken { id: shown, .. } if shown == id));
    assert_eq!(principal.display, "user:alice (ci)");
}

#[test]
fn nothing_works_before_it_is_on_record() {
    let book = TokenBook::new();
    let issued = book.create(wanted(), &owner(), &unbounded(), NOW).unwrap();
    assert_eq!(book.verify(issued.text.expose(), NOW), Err(Refusal::Unknown));
}

#[test]
fn the_secret_is_in_no_event() {
    let (book, _, text) = with_one(wanted());
    let secret = text.rsplit_once('_').unwrap().1;
    let stored = serde_json::to_string(&TokenEvent::Created { record: Box::new(book.list().next().unwrap().clone()) });
    assert!(!stored.unwrap().contains(secret));
}

#[test]
fn a_wrong_secret_and_an_unknown_token_are_the_same() {
    let (book, id, text) = with_one(wanted());
    let (_, _, other) = with_one(wanted());
    let other_secret = &other[other.len() - 43..];
    for bad in ["", "plyr_", &text[..text.len() - 1], &other, &format!("plyr_{id}_{other_secret}")] {
        assert_eq!(book.verify(bad, NOW), Err(Refusal::Unknown), "{bad}");
    }
}

/// An attacker who can write a digest of zeros nowhere still must not be let in by the placeholder of unknown tokens.
#[test]
fn the_placeholder_of_unknown_tokens_lets_nobody_in() {
    let book = TokenBook::new();
    assert_eq!(book.verify("", NOW), Err(Refusal::Unknown));
    assert_eq!(book.verify(&format!("plyr_{}_{}", "0".repeat(16), "A".repeat(43)), NOW), Err(Refusal::Unknown));
}

#[test]
fn a_token_ends_when_it_says() {
    let end = NOW.plus(HOUR);
    let (book, id, text) = with_one(NewToken { expires_at: Some(end), ..wanted() });
    assert!(book.verify(&text, Timestamp(end.0 - 1)).is_ok());
    assert_eq!(book.verify(&text, end), Err(Refusal::Expired));
    assert!(book.rotate(&id, None, &owner(), &unbounded(), end).is_err(), "another secret would not help");
    let over = book.create(NewToken { expires_at: Some(NOW), ..wanted() }, &owner(), &unbounded(), NOW).unwrap_err();
    assert_eq!(over.to_stable().code, "token_request_invalid");
}

#[test]
fn a_revoked_token_says_so_to_its_holder_alone() {
    let (mut book, id, text) = with_one(wanted());
    let event = book.revoke(&id, &owner(), NOW).unwrap();
    assert!(book.verify(&text, NOW).is_ok(), "an event that is not on record changes nothing");
    book.apply(&event).unwrap();
    assert_eq!(book.verify(&text, NOW), Err(Refusal::Revoked));
    let flipped = if text.ends_with('A') { "B" } else { "A" };
    let wrong = format!("{}{flipped}", &text[..text.len() - 1]);
    assert_eq!(book.verify(&wrong, NOW), Err(Refusal::Unknown));
    assert!(matches!(book.revoke(&id, &owner(), NOW), Err(IdentityError::TokenRevoked { .. })));
    assert!(matches!(book.rotate(&id, None, &owner(), &unbounded(), NOW), Err(IdentityError::TokenRevoked { .. })));
}

#[test]
fn rotation_ends_the_old_secret_at_once_or_after_the_overlap() {
    let (mut book, id, first) = with_one(wanted());
    let second = book.rotate(&id, Some(HOUR), &owner(), &unbounded(), NOW).unwrap();
    book.apply(&second.event).unwrap();
    assert!(book.verify(&first, Timestamp(NOW.plus(HOUR).0 - 1)).is_ok());
    assert!(book.verify(second.text.expose(), NOW).is_ok());
    assert_eq!(book.verify(&first, NOW.plus(HOUR)), Err(Refusal::Unknown));

    let third = book.rotate(&id, None, &owner(), &unbounded(), NOW).unwrap();
    book.apply(&third.event).unwrap();
    assert_eq!(book.verify(&first, NOW), Err(Refusal::Unknown), "two rotations back");
    assert_eq!(book.verify(second.text.expose(), NOW), Err(Refusal::Unknown), "no overlap");
    assert!(book.verify(third.text.expose(), NOW).is_ok());
    assert_eq!(book.get(&id).unwrap().rotated_at, Some(NOW));
    assert!(book.rotate(&id, Some(HOUR * 24 * 8), &owner(), &unbounded(), NOW).is_err());
}

#[test]
fn revoking_ends_an_overlap_too() {
    let (mut book, id, first) = with_one(wanted());
    let second = book.rotate(&id, Some(HOUR), &owner(), &unbounded(), NOW).unwrap();
    book.apply(&second.event).unwrap();
    let revoked = book.revoke(&id, &owner(), NOW).unwrap();
    book.apply(&revoked).unwrap();
    assert!(book.verify(&first, NOW).is_err());
    assert!(book.verify(second.text.expose(), NOW).is_err());
}

#[test]
fn scopes_beyond_the_role_are_refused_when_made_and_when_read() {
    let scopes = BTreeSet::from([TokenScope::SessionsRead, TokenScope::TokensManage]);
    let error = TokenBook::new()
        .create(NewToken { scopes: Some(scopes), ..wanted() }, &owner(), &unbounded(), NOW)
        .unwrap_err();
    assert_eq!(error.to_stable().code, "token_scope_excessive");

    let (book, _, _) = with_one(wanted());
    let mut record = book.list().next().unwrap().clone();
    record.scopes.insert(TokenScope::DaemonControl);
    let forged = TokenEvent::Created { record: Box::new(record) };
    let (book, contradictions) = TokenBook::from_events([&forged]);
    assert_eq!((book.list().count(), contradictions.len()), (0, 1));
}

#[test]
fn names_and_scopes_must_be_given() {
    let book = TokenBook::new();
    for name in ["", " ", "a\nb", " a", &"x".repeat(65)] {
        let refused = book.create(NewToken { name: name.into(), ..wanted() }, &owner(), &unbounded(), NOW);
        assert_eq!(refused.unwrap_err().to_stable().code, "token_request_invalid", "{name:?}");
    }
    assert!(book.create(NewToken { scopes: Some(BTreeSet::new()), ..wanted() }, &owner(), &unbounded(), NOW).is_err());
}

#[test]
fn what_contradicts_the_history_counts_for_nothing() {
    let (book, id, _) = with_one(wanted());
    let created = TokenEvent::Created { record: Box::new(book.get(&id).unwrap().clone()) };
    let revoked = book.revoke(&id, &owner(), NOW).unwrap();
    let rotated = book.rotate(&id, None, &owner(), &unbounded(), NOW).unwrap().event;
    let last = book.get(&id).unwrap().clone();
    for (history, revoked_at) in [
        (vec![&created, &created], Some(None)),
        (vec![&revoked], None),
        (vec![&created, &revoked, &rotated], Some(Some(NOW))),
        (vec![&created, &revoked, &revoked], Some(Some(NOW))),
    ] {
        let (rebuilt, contradictions) = TokenBook::from_events(history.iter().copied());
        assert_eq!(contradictions.len(), 1, "{history:?}");
        let found = rebuilt.get(&id);
        assert_eq!(found.map(|record| record.revoked_at), revoked_at, "{history:?}");
        assert!(found.is_none_or(|record| record.hash == last.hash), "{history:?}");
    }
}

#[test]
fn last_use_is_handed_out_once() {
    let (book, id, _) = with_one(wanted());
    assert_eq!((book.last_used(&id), book.flush_last_used()), (None, vec![]));
    book.touch(&id, NOW);
    book.touch(&id, NOW.plus(HOUR));
    book.touch(&id, NOW);
    book.touch(&"0123456789abcdef".parse().unwrap(), NOW);
    assert_eq!(book.flush_last_used(), [(id.clone(), NOW.plus(HOUR))]);
    assert_eq!(book.flush_last_used(), []);
    book.restore_last_used([(id.clone(), NOW)]);
    assert_eq!(book.last_used(&id), Some(NOW.plus(HOUR)), "what is stored may be older than what is known");
}

#[test]
fn there_is_an_end_to_the_number_of_tokens() {
    let mut book = TokenBook::new();
    let first = book.create(wanted(), &owner(), &unbounded(), NOW).unwrap().event;
    let TokenEvent::Created { record } = &first else { panic!("{first:?}") };
    for number in 0..4_096 {
        let mut record = record.clone();
        record.id = format!("{number:016x}").parse().unwrap();
        book.apply(&TokenEvent::Created { record }).unwrap();
    }
    assert_eq!(book.create(wanted(), &owner(), &unbounded(), NOW).unwrap_err().to_stable().code, "token_limit_reached");
    let revoked = book.revoke(&"0000000000000000".parse().unwrap(), &owner(), NOW).unwrap();
    book.apply(&revoked).unwrap();
    assert!(book.create(wanted(), &owner(), &unbounded(), NOW).is_ok());
}

#[derive(Debug, Clone)]
enum Step {
    Create,
    Rotate(usize, bool),
    Revoke(usize),
    Wait(u16),
}

/// Each text with the instant at which it stops working.
type Texts = Vec<(String, Option<Timestamp>)>;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        Just(Step::Create),
        (0..4_usize, any::<bool>()).prop_map(|(which, overlap)| Step::Rotate(which, overlap)),
        (0..4_usize).prop_map(Step::Revoke),
        (0..7_200_u16).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 1..24)
}

proptest! {
    /// A model beside the book: which texts are known, and until when each works.
    #[test]
    fn exactly_the_texts_in_force_are_accepted(steps in steps()) {
        let mut now = NOW;
        let mut book = TokenBook::new();
        let mut history: Vec<TokenEvent> = Vec::new();
        let mut tokens: Vec<(TokenId, Texts)> = Vec::new();
        for step in steps {
            let event = match step {
                Step::Wait(seconds) => {
                    now = now.plus(Duration::from_secs(seconds.into()));
                    None
                }
                Step::Create => {
                    let issued = book.create(wanted(), &owner(), &unbounded(), now).unwrap();
                    tokens.push((issued.event.id().clone(), vec![(issued.text.expose().clone(), None)]));
                    Some(issued.event)
                }
                Step::Rotate(which, overlap) => match tokens.get_mut(which) {
                    Some((id, texts)) => match book.rotate(id, overlap.then_some(HOUR), &owner(), &unbounded(), now) {
                        Ok(issued) => {
                            let last = texts.len() - 1;
                            for (number, (_, until)) in texts.iter_mut().enumerate() {
                                *until = if number == last && overlap { Some(now.plus(HOUR)) } else { Some(now) };
                            }
                            texts.push((issued.text.expose().clone(), None));
                            Some(issued.event)
                        }
                        Err(_) => None,
                    },
                    None => None,
                },
                Step::Revoke(which) => match tokens.get_mut(which) {
                    Some((id, texts)) => match book.revoke(id, &owner(), now) {
                        Ok(event) => {
                            texts.iter_mut().for_each(|(_, until)| *until = Some(now));
                            Some(event)
                        }
                        Err(_) => None,
                    },
                    None => None,
                },
            };
            if let Some(event) = event {
                book.apply(&event).unwrap();
                let stored = serde_json::to_string(&event).unwrap();
                history.push(serde_json::from_str(&stored).unwrap());
            }
        }
        let (rebuilt, contradictions) = TokenBook::from_events(&history);
        prop_assert!(contradictions.is_empty());
        for (text, until) in tokens.iter().flat_map(|(_, texts)| texts) {
            let works = until.is_none_or(|until| now < until);
            prop_assert_eq!(book.verify(text, now).is_ok(), works);
            prop_assert_eq!(rebuilt.verify(text, now), book.verify(text, now), "history adds up to the book");
        }
    }
}

/// The bounds of whoever shows a token.
fn bounds_of(book: &TokenBook, text: &str) -> Bounds {
    let principal = book.verify(text, NOW).unwrap();
    let Via::ApiToken { id, secret } = &principal.via else { panic!("{principal:?}") };
    let until = book.good_until(id, *secret, NOW).unwrap();
    Bounds::of(&principal, &principal.via, until)
}

#[test]
fn nobody_hands_on_more_than_they_have() {
    let scopes = BTreeSet::from([TokenScope::TokensManage, TokenScope::RunsRead]);
    let end = NOW.plus(HOUR);
    let manager = NewToken {
        role: PrincipalRole::Owner,
        scopes: Some(scopes.clone()),
        expires_at: Some(end),
        rate_per_minute: NonZeroU32::new(10),
        ..wanted()
    };
    let (mut book, id, text) = with_one(manager.clone());
    let bounds = bounds_of(&book, &text);
    let beyond = [
        NewToken { scopes: None, expires_at: Some(end.plus(HOUR)), ..manager.clone() },
        NewToken { scopes: Some(BTreeSet::from([TokenScope::DaemonControl])), ..manager.clone() },
        NewToken { rate_per_minute: NonZeroU32::new(11), ..manager.clone() },
    ];
    for wanted in beyond {
        let refused = book.create(wanted, &owner(), &bounds, NOW).unwrap_err();
        assert_eq!(refused.to_stable().code, "credential_exceeded", "{refused}");
    }
    let operator = Principal::new(owner(), PrincipalRole::Operator, Via::LocalToken);
    let operators = Bounds::of(&operator, &Via::LocalToken, None);
    let refused = book.create(NewToken { role: PrincipalRole::Owner, ..wanted() }, &owner(), &operators, NOW);
    assert!(matches!(refused, Err(IdentityError::BeyondCredential { .. })));

    // What is left open is what the maker has.
    let open = NewToken { scopes: None, expires_at: None, rate_per_minute: None, ..manager };
    let issued = book.create(open, &owner(), &bounds, NOW).unwrap();
    book.apply(&issued.event).unwrap();
    let child = book.get(issued.event.id()).unwrap();
    assert_eq!((&child.scopes, child.expires_at, child.rate_per_minute), (&scopes, Some(end), NonZeroU32::new(10)));

    // The secret of a token that is good for more is not handed out; one's own may be changed.
    let strong = book.create(wanted(), &owner(), &unbounded(), NOW).unwrap();
    book.apply(&strong.event).unwrap();
    let refused = book.rotate(strong.event.id(), None, &owner(), &bounds, NOW);
    assert!(matches!(refused, Err(IdentityError::BeyondCredential { .. })));
    assert!(book.rotate(&id, None, &owner(), &bounds, NOW).is_ok());
}

#[test]
fn what_was_made_with_a_secret_ends_with_it() {
    let manager = NewToken { role: PrincipalRole::Owner, ..wanted() };
    for overlap in [None, Some(HOUR)] {
        let (mut book, id, text) = with_one(manager.clone());
        let made = book.create(wanted(), &owner(), &bounds_of(&book, &text), NOW).unwrap();
        book.apply(&made.event).unwrap();
        let child = made.text.expose().clone();
        assert!(book.verify(&child, NOW).is_ok());
        let Via::ApiToken { secret, .. } = book.verify(&text, NOW).unwrap().via else { panic!("not a token") };
        let rotated = book.rotate(&id, overlap, &owner(), &unbounded(), NOW).unwrap();
        book.apply(&rotated.event).unwrap();
        assert!(book.verify(rotated.text.expose(), NOW).is_ok());
        assert_eq!(book.good_until(&id, secret, NOW).ok(), overlap.map(|overlap| Some(NOW.plus(overlap))));
        assert_eq!(book.verify(&child, NOW).is_ok(), overlap.is_some());
        assert_eq!(book.verify(&child, NOW.plus(HOUR)).err(), Some(Refusal::Revoked));
    }
    let (mut book, id, text) = with_one(manager);
    let made = book.create(wanted(), &owner(), &bounds_of(&book, &text), NOW).unwrap();
    book.apply(&made.event).unwrap();
    let revoked = book.revoke(&id, &owner(), NOW).unwrap();
    book.apply(&revoked).unwrap();
    assert_eq!(book.verify(made.text.expose(), NOW), Err(Refusal::Revoked));
}

#[test]
fn a_token_ends_with_the_device_that_it_was_made_with() {
    let (device, serial) = (DeviceId::from_u128(7), "0a0b".parse::<Serial>().unwrap());
    let via = Via::Device { id: device, serial: serial.clone() };
    let maker = Principal::new(owner(), PrincipalRole::Owner, via.clone());
    let mut book = TokenBook::new();
    let made = book.create(wanted(), &owner(), &Bounds::of(&maker, &via, None), NOW).unwrap();
    book.apply(&made.event).unwrap();
    let child = book.create(wanted(), &owner(), &bounds_of(&book, made.text.expose()), NOW).unwrap();
    book.apply(&child.event).unwrap();
    assert_eq!(book.origin_of(child.event.id()), Origin::Device(device));
    let stored: TokenEvent = serde_json::from_str(&serde_json::to_string(&made.event).unwrap()).unwrap();
    assert_eq!(stored, made.event);
    book.certificates_revoked(["0c".parse().unwrap()]);
    assert!(book.verify(made.text.expose(), NOW).is_ok(), "another certificate");
    book.certificates_revoked([serial]);
    for text in [&made.text, &child.text] {
        assert_eq!(book.verify(text.expose(), NOW).unwrap_err(), Refusal::Revoked);
    }
}
