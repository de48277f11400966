//! Folding and layers: idempotent, reversible in place, bounded.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use palyra_safety::{Coverage, Layer, Scanner, Span, fold, views};
use proptest::prelude::*;

#[test]
fn disguises_fold_to_what_they_look_like() {
    for (disguised, plain) in [
        ("ｐａｓｓｗｏｒｄ", "password"),
        ("раssword", "password"),
        ("pass\u{200B}wo\u{00AD}rd", "password"),
        ("\u{202E}drow\u{202C}", "drow"),
        ("𝓹𝓪𝓼𝓼", "pass"),
        ("ⓟⓐⓢⓢ", "pass"),
        ("ΑΒΕ", "ABE"),
        ("a–b—c−d", "a-b-c-d"),
        ("“q”", "\"q\""),
        ("\u{E0069}\u{E0067}\u{E006E}", "ign"),
        ("no\u{00A0}break", "no break"),
        ("e\u{0301}", "é"),
        ("ﾞ", "\u{3099}"),
        ("plain", "plain"),
        ("日本語", "日本語"),
    ] {
        assert_eq!(fold(disguised).text, plain, "{disguised:?}");
    }
}

#[test]
fn places_lead_back_to_the_original() {
    let text = "före ｇｈ\u{200B}ｐ after";
    let folded = fold(text);
    let at = folded.text.find("ghp").unwrap();
    let span = folded.map.to_original(Span::new(at, at + 3));
    assert_eq!(&text[span.start..span.end], "ｇｈ\u{200B}ｐ");
}

#[test]
fn layers_come_off_one_after_another_and_only_so_deep() {
    let mut text = "a perfectly ordinary sentence".to_owned();
    for depth in 1..=6 {
        text = STANDARD.encode(&text);
        let (views, coverage) = views(text.as_bytes());
        let found = views.iter().find(|view| view.bytes.windows(18).any(|window| window == b"perfectly ordinary"));
        assert_eq!(found.is_some(), depth <= palyra_safety::MAX_LAYERS, "depth {depth}");
        assert_eq!(coverage == Coverage::Complete, depth <= palyra_safety::MAX_LAYERS, "depth {depth}");
        assert_eq!(Scanner::new(&[]).unwrap().scan(text.as_bytes()).coverage, coverage);
        if let Some(view) = found {
            assert_eq!(view.layers, vec![Layer::Base64; depth]);
        }
    }
}

#[test]
fn each_encoding_is_taken_off() {
    for (text, layer) in [
        ("61207365637265742073656e74656e636520686572652c20796573", Layer::Hex),
        ("a%20secret%20sentence%20here", Layer::Percent),
        ("a&#32;secret&#x20;sentence&nbsp;here", Layer::HtmlEntity),
        ("a\\u0020secret\\x20sentence\\040here", Layer::Backslash),
        ("YSBzZWNyZXQgc2VudGVuY2UgaGVyZSwgeWVz", Layer::Base64),
        ("ａ secret sentence here", Layer::Unicode),
    ] {
        let (views, _) = views(text.as_bytes());
        let view = views.iter().find(|view| view.layers.last() == Some(&layer)).unwrap_or_else(|| panic!("{text}"));
        let plain = String::from_utf8_lossy(&view.bytes).replace('\u{a0}', " ");
        assert!(plain.contains("secret sentence"), "{text}: {plain}");
        let span = view.to_original(Span::new(0, view.bytes.len()));
        assert_eq!(span, Span::new(0, text.len()), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn folding_twice_is_folding_once(text in "\\PC{0,60}") {
        let once = fold(&text).text.into_owned();
        let twice = fold(&once).text.into_owned();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn folding_marks_and_compatibility_forms_twice_is_folding_once(chars in prop::collection::vec(
        prop_oneof![
            prop::char::range('\u{0300}', '\u{036F}'), prop::char::range('\u{1100}', '\u{11FF}'), prop::char::range('\u{FF00}', '\u{FFEF}'),
            prop::char::range('\u{0370}', '\u{0500}'), prop::char::range('\u{AC00}', '\u{AC40}'), prop::char::range('a', 'z'),
            prop::char::range('\u{2000}', '\u{206F}'), prop::char::range('\u{0900}', '\u{0DFF}'), prop::char::range('\u{1D400}', '\u{1D7FF}'),
        ], 0..24))
    {
        let text: String = chars.into_iter().collect();
        let once = fold(&text).text.into_owned();
        let twice = fold(&once).text.into_owned();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn a_fold_maps_into_the_text(text in "\\PC{1,40}", from in 0_usize..40, len in 1_usize..10) {
        let folded = fold(&text);
        let starts: Vec<usize> = folded.text.char_indices().map(|(at, _)| at).chain([folded.text.len()]).collect();
        let start = starts[from % starts.len()];
        let end = starts[(from % starts.len() + len).min(starts.len() - 1)];
        let span = folded.map.to_original(Span::new(start, end));
        prop_assert!(span.end <= text.len());
        prop_assert!(text.is_char_boundary(span.start) && text.is_char_boundary(span.end));
        // What the range came from folds to what the range holds, and perhaps a little around it.
        prop_assert!(fold(&text[span.start..span.end]).text.contains(&folded.text[start..end]));
    }

    #[test]
    fn views_stay_within_their_budget(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let (views, _) = views(&bytes);
        let total: usize = views.iter().map(|view| view.bytes.len()).sum();
        prop_assert!(total <= bytes.len() * 9 + 64 * 1024);
    }
}
