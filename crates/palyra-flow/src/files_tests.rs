//! Tests of the labels of files.

use proptest::prelude::*;

use super::*;

fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

fn untrusted(source: &str) -> Label {
    Label::new(Integrity::Untrusted, Confidentiality::Private).from_source(source)
}

fn file() -> Label {
    Label::new(Integrity::ToolTrusted, Confidentiality::Private)
}

fn changed<'a>(path: &'a str, before: Option<&str>, after: Option<&str>) -> WrittenFile<'a> {
    WrittenFile { path, before: before.map(digest), after: after.map(digest), place: None }
}

fn nothing_known(_: &Digest) -> Option<Label> {
    None
}

#[test]
fn what_was_made_from_untrusted_text_is_recorded_and_ordinary_work_is_not() {
    let files = [changed("a", None, Some("x"))];
    assert_eq!(Written::of("/w", file(), &files, Rewrite::MayKeep, nothing_known), None);
    assert_eq!(Written::of("/w", Label::user(), &files, Rewrite::MayKeep, nothing_known), None);
    let written = Written::of("/w", untrusted("mail"), &files, Rewrite::Whole, nothing_known).unwrap();
    assert_eq!(written.label_of("a"), Some(untrusted("mail")));
    let secret = Label::new(Integrity::ToolTrusted, Confidentiality::Secret);
    assert!(Written::of("/w", secret, &files, Rewrite::Whole, nothing_known).is_some());
    let removed = [changed("a", Some("x"), None)];
    assert_eq!(Written::of("/w", untrusted("mail"), &removed, Rewrite::MayKeep, nothing_known), None);
}

#[test]
fn what_lay_among_somebody_elses_files_keeps_that_when_it_is_moved_or_edited() {
    let place = untrusted("file:vendor/a");
    let gone = WrittenFile { place: Some(&place), ..changed("vendor/a", Some("x"), None) };
    let moved = [gone, changed("b", None, Some("x and more"))];
    let written = Written::of("/w", file(), &moved, Rewrite::MayKeep, nothing_known).unwrap();
    assert_eq!(written.label_of("b").unwrap().integrity, Integrity::Untrusted);
    let edited = [WrittenFile { place: Some(&place), ..changed("vendor/a", Some("x"), Some("y")) }];
    assert!(Written::of("/w", file(), &edited, Rewrite::MayKeep, nothing_known).is_some());
    assert_eq!(Written::of("/w", file(), &edited, Rewrite::Whole, nothing_known), None);
}

#[test]
fn an_edited_file_keeps_its_label_and_others_of_the_call_do_not_get_it() {
    let known = |content: &Digest| (*content == digest("bad")).then(|| untrusted("mail"));
    let files = [changed("a", Some("bad"), Some("bad and more")), changed("b", Some("good"), Some("better"))];
    let written = Written::of("/w", file(), &files, Rewrite::MayKeep, known).unwrap();
    assert_eq!(written.label_of("a").unwrap().integrity, Integrity::Untrusted);
    assert_eq!(written.label_of("b"), None);
    assert_eq!(Written::of("/w", file(), &files, Rewrite::Whole, known), None, "nothing of it is left");
}

#[test]
fn a_file_that_was_moved_and_edited_keeps_its_label() {
    let known = |content: &Digest| (*content == digest("bad")).then(|| untrusted("mail"));
    let files = [changed("a", Some("bad"), None), changed("b", None, Some("bad, edited"))];
    let written = Written::of("/w", file(), &files, Rewrite::MayKeep, known).unwrap();
    assert_eq!(written.label_of("b").unwrap().integrity, Integrity::Untrusted);
}

fn labels() -> impl Strategy<Value = Label> {
    let integrity = prop::sample::select(Integrity::ALL.to_vec());
    let confidentiality = prop::sample::select(Confidentiality::ALL.to_vec());
    (integrity, confidentiality).prop_map(|(integrity, confidentiality)| Label::new(integrity, confidentiality))
}

/// What a preview of a server's result showed is the server's, in a file as anywhere.
#[test]
fn a_file_keeps_whose_data_it_holds() {
    let label = |origin| Label::new(Integrity::ToolTrusted, Confidentiality::Private).of_origin(origin);
    let file = [WrittenFile { path: "a", before: None, after: Some(digest("1")), place: None }];
    let written = |label| Written::of("/w", label, &file, Rewrite::Whole, |_| None);
    assert_eq!(written(label(DataOrigin::Workspace)), None);
    let of_bank = label(DataOrigin::Server("bank".to_owned()));
    let kept = written(of_bank.clone()).and_then(|written| written.label_of("a"));
    assert_eq!(kept, Some(of_bank.clone()));
    assert!(!is_worse_than_a_file(&of_bank), "nothing that a person could endorse");
}

proptest! {
    /// Whatever a call was made from, no file that it wrote is remembered as better; and nothing is forgotten that is worse than an ordinary file.
    #[test]
    fn no_file_is_better_than_what_it_was_made_from(
        given in labels(),
        before in labels(),
        files in prop::collection::vec((prop::option::of(0_u8..4), prop::option::of(0_u8..4)), 1..6),
    ) {
        let names: Vec<String> = (0..files.len()).map(|number| format!("f{number}")).collect();
        let content = |content: u8| digest(&content.to_string());
        let files: Vec<WrittenFile<'_>> = names
            .iter()
            .zip(&files)
            .map(|(path, (before, after))| WrittenFile { path, before: before.map(content), after: after.map(content), place: None })
            .collect();
        let known = |content: &Digest| (*content == digest("0")).then(|| before.clone());
        let written = Written::of("/w", given.clone(), &files, Rewrite::MayKeep, known);
        for file in files.iter().filter(|file| !file.is_gone()) {
            let kept = file.before.and_then(|content| known(&content));
            let least = kept.as_ref().map_or_else(|| given.clone(), |kept| given.join(kept));
            let label = written.as_ref().and_then(|written| written.label_of(file.path));
            match label {
                Some(label) => {
                    let joined = label.join(&least);
                    prop_assert!(joined.all_origins().is_subset(&label.all_origins()) || joined.origins.is_empty());
                    prop_assert_eq!(Label { origins: label.origins.clone(), ..joined }, label);
                }
                None => prop_assert!(!differs_from_a_file(&least)),
            }
        }
    }
}
