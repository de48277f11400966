//! Summaries by extraction: sentences and headings that stand in the text, in their order, never a word of our own.

use crate::tokens::estimate_tokens;

/// Longest sentence kept.
const MAX_SENTENCE_CHARS: usize = 240;
/// Most headings and sentences shown of a file.
const MAX_HEADINGS: usize = 12;
const MAX_SENTENCES: usize = 5;
/// Stands for what was left out of the middle.
const GAP: &str = "[…]";

/// How long a text is, for people.
pub(super) fn counts(text: &str) -> String {
    format!("{}, {}", plural(text.lines().count(), "line"), plural(text.split_whitespace().count(), "word"))
}

/// `1 line`, `2 lines`.
pub(super) fn plural(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// Headings and first sentences of a text, or just as many sentences as the person wants.
pub(super) fn of_text(text: &str, sentences: Option<usize>) -> String {
    if let Some(count) = sentences {
        let first: Vec<String> = first_sentences(text).into_iter().take(count).collect();
        return if first.is_empty() { "there is no text in it".to_owned() } else { first.join("\n") };
    }
    let headings: Vec<&str> = headings(text).take(MAX_HEADINGS).collect();
    let mut lines = Vec::new();
    if !headings.is_empty() {
        lines.push(format!("headings: {}", headings.join(" · ")));
    }
    lines.extend(first_sentences(text).into_iter().take(MAX_SENTENCES).map(|sentence| format!("- {sentence}")));
    if lines.is_empty() {
        lines.push("there is no text in it".to_owned());
    }
    lines.join("\n")
}

/// A text without the frames around what anybody may have written, and with the characters that are spelled out in them as they were.
pub(super) fn without_frames(text: &str) -> String {
    let is_frame = |line: &&str| line.starts_with("<untrusted-data ") || line.starts_with("</untrusted-data ");
    let lines: Vec<&str> = text.lines().filter(|line| !is_frame(line)).collect();
    if lines.len() == text.lines().count() {
        return text.to_owned();
    }
    let text = lines.join("\n");
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("&#x") {
        out.push_str(before);
        let spelled = after.split_once(';').and_then(|(code, tail)| {
            u32::from_str_radix(code, 16).ok().and_then(char::from_u32).map(|character| (character, tail))
        });
        match spelled {
            Some((character, tail)) => {
                out.push(character);
                rest = tail;
            }
            None => {
                out.push_str("&#x");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// The first sentences of the paragraphs of a text, within a budget. When not all fit, the beginning and the end are kept:
/// the one says what it is about, the other where things stand.
pub(super) fn within(text: &str, budget_tokens: u32) -> String {
    let sentences = first_sentences(text);
    let cost = |sentence: &str| estimate_tokens(sentence).saturating_add(1);
    let mut left = budget_tokens;
    let (mut front, mut back) = (0, 0);
    while front + back < sentences.len() {
        let from_front = front <= back;
        let position = if from_front { front } else { sentences.len() - 1 - back };
        let Some(rest) = sentences.get(position).and_then(|sentence| left.checked_sub(cost(sentence))) else { break };
        left = rest;
        if from_front {
            front += 1;
        } else {
            back += 1;
        }
    }
    if front + back == sentences.len() {
        return sentences.join("\n");
    }
    // Room for the mark of the gap is made by leaving out one more.
    if left < cost(GAP) {
        if back > 0 { back -= 1 } else { front = front.saturating_sub(1) }
    }
    let head = sentences.iter().take(front).map(String::as_str);
    let tail = sentences.iter().skip(sentences.len() - back).map(String::as_str);
    let kept = head.chain(std::iter::once(GAP)).chain(tail).collect::<Vec<_>>().join("\n");
    if estimate_tokens(&kept) <= budget_tokens { kept } else { String::new() }
}

fn headings(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        ((1..=6).contains(&level) && heading.starts_with(' ')).then(|| heading.trim()).filter(|text| !text.is_empty())
    })
}

/// The first sentence of every paragraph, headings left out.
fn first_sentences(text: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut paragraph = String::new();
    for line in text.lines().chain([""]) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.starts_with("```") {
            let sentence = first_sentence(&paragraph);
            if !sentence.is_empty() {
                sentences.push(sentence);
            }
            paragraph.clear();
        } else {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(line);
        }
    }
    sentences
}

fn first_sentence(paragraph: &str) -> String {
    let end = paragraph.char_indices().find_map(|(at, c)| {
        let after = paragraph.get(at + c.len_utf8()..)?;
        (matches!(c, '.' | '!' | '?') && after.starts_with(char::is_whitespace)).then_some(at + c.len_utf8())
    });
    let sentence = end.and_then(|end| paragraph.get(..end)).unwrap_or(paragraph).trim();
    if sentence.chars().count() <= MAX_SENTENCE_CHARS {
        return sentence.to_owned();
    }
    sentence.chars().take(MAX_SENTENCE_CHARS).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOTES: &str = "# Notes\n\nThe first point. It goes on\nfor a while.\n\n## Later\nA second point! And more.\n\n```\nlet x = 1;\n```\n";

    #[test]
    fn files_are_summarised_from_their_own_words() {
        assert_eq!(
            of_text(NOTES, None),
            "headings: Notes · Later\n- The first point.\n- A second point!\n- let x = 1;"
        );
        assert_eq!(of_text(NOTES, Some(1)), "The first point.");
        assert_eq!(of_text("", None), "there is no text in it");
        assert_eq!(counts("one two\n"), "1 line, 2 words");
        assert_eq!(counts(""), "0 lines, 0 words");
    }

    #[test]
    fn frames_are_no_part_of_what_they_hold() {
        let framed =
            "<untrusted-data id=\"07\" source=\"text\">\nIf a &#x3C; b &#x26;& c. &#xZ;\n</untrusted-data id=\"07\">";
        assert_eq!(without_frames(framed), "If a < b && c. &#xZ;");
        assert_eq!(without_frames("a &#x3C; b\n"), "a &#x3C; b\n", "outside of a frame nothing is spelled out");
    }

    #[test]
    fn a_long_text_keeps_its_two_ends() {
        let text: String = (0..100).map(|n| format!("Point {n} is made. And explained.\n\n")).collect();
        let summary = within(&text, 60);
        assert!(summary.starts_with("Point 0 is made.\n"), "{summary}");
        assert!(summary.ends_with("Point 99 is made."), "{summary}");
        assert!(summary.contains(GAP));
        assert!(!summary.contains("explained"));
    }

    proptest! {
        #[test]
        fn the_budget_is_kept(text in "(\\PC{0,30}[.\n ]){0,40}", budget in 0_u32..200) {
            let summary = within(&text, budget);
            prop_assert!(estimate_tokens(&summary) <= budget, "{} > {budget}", estimate_tokens(&summary));
        }
    }
}
