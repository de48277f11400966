//! What is old, what is new, and what makes two conversations the same.

use super::*;

fn user(text: &str) -> Said {
    Said::User(text.to_owned())
}

fn model(text: &str, calls: &[&str]) -> Said {
    Said::Assistant { text: text.to_owned(), calls: calls.iter().map(|&call| call.to_owned()).collect() }
}

fn result(call: &str, content: &str) -> Said {
    Said::Result { call: call.to_owned(), content: content.to_owned(), at: "here".to_owned() }
}

fn read(said: &[Said]) -> Conversation {
    Conversation::read(said.to_vec(), "messages").unwrap()
}

#[test]
fn the_chain_of_an_answer_is_found_again_in_the_next_request() {
    let first = read(&[Said::Instructions("be kind".into()), user("a")]);
    let ended = first.chain.answered("b");
    let next = read(&[Said::Instructions("be brief".into()), user("a "), model("b\n", &[]), user("c")]);
    assert_eq!(next.earlier.len(), 1);
    assert_eq!(next.earlier[0].chain, ended);
    assert_eq!(next.new, New { text: "c".into(), images: vec![], results: vec![] });
    assert!(next.prompt().starts_with("c\n") && next.prompt().ends_with("be brief"), "{}", next.prompt());
    assert_eq!(read(&[user("a"), user("b")]).prompt(), "a\n\nb");
    for other in [
        &[user("a"), model("other", &[]), user("c")][..],
        &[user("x"), model("b", &[]), user("c")],
        &[user("a"), model("b", &["call"]), user("c")],
        &[user("a"), model("x", &[]), user("y"), model("b", &[]), user("c")],
    ] {
        assert!(read(other).earlier.iter().all(|exchange| exchange.chain != ended), "{other:?}");
    }
}

#[test]
fn calls_and_their_results_belong_to_one_exchange() {
    let before = [user("a"), model("I ask.", &["c1"]), result("c1", "42")];
    let asking = read(&before);
    assert_eq!(asking.open_calls, ["c1"]);
    assert_eq!(asking.new.results, [("c1".into(), "42".into(), "here".into())]);
    let ended = asking.chain.answered("It is 42.");
    let mut after = before.to_vec();
    after.extend([model("It is 42.", &[]), user("thanks")]);
    let after = read(&after);
    assert_eq!(after.earlier.len(), 1);
    assert_eq!(after.earlier[0].chain, ended);
    assert_eq!(after.earlier[0].answer, "I ask.\n\n[a tool of the caller gave: 42]\n\nIt is 42.");
    // A text and its calls may come as one message or as two.
    let apart = read(&[user("a"), model("I ask.", &[]), model("", &["c1"]), result("c1", "42")]);
    assert_eq!(apart.chain, asking.chain);
}

#[test]
fn somebody_must_have_the_last_word() {
    for said in [&[model("a", &[])][..], &[user(" ")], &[Said::Instructions("x".into())], &[user("a"), model("b", &[])]]
    {
        assert!(Conversation::read(said.to_vec(), "messages").is_err(), "{said:?}");
    }
    let odd = read(&[model("hello", &[]), user("hi")]);
    assert_eq!(odd.earlier[0].prompt, "(nothing was asked)");
}
