//! Words, quotations and punctuation of a plain request.
//!
//! Quotations are `"…"`, `'…'`, `` `…` ``, `“…”` and fenced blocks; what is inside them is never looked at. A quotation that is
//! not closed is no quotation. Punctuation at the end of a word stands on its own; inside a word it belongs to it, so that
//! `notes.md` and `src/a,b.txt` stay whole.

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    Quoted,
    Punctuation,
    LineEnd,
}

/// One token and where it stands in the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    /// Without quotation marks.
    pub(super) text: &'a str,
    /// First byte in the request, quotation mark included.
    pub(super) start: usize,
    /// Byte after the last one.
    pub(super) end: usize,
}

impl Token<'_> {
    /// Whether this is the word, in any case. Quotations never are.
    pub(super) fn is(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// Whether this is one of the words.
    pub(super) fn is_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }

    /// Whether this is the punctuation mark.
    pub(super) fn is_mark(&self, mark: &str) -> bool {
        self.kind == Kind::Punctuation && self.text == mark
    }
}

/// Cuts a request into tokens.
pub(super) fn tokens(request: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(rest) = request.get(at..) {
        let Some(first) = rest.chars().next() else { break };
        if first == '\n' {
            tokens.push(Token { kind: Kind::LineEnd, text: "\n", start: at, end: at + 1 });
            at += 1;
        } else if first.is_whitespace() {
            at += first.len_utf8();
        } else if let Some((inside, length)) = quotation(rest) {
            tokens.push(Token { kind: Kind::Quoted, text: inside, start: at, end: at + length });
            at += length;
        } else {
            let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let joined =
                tokens.last().is_some_and(|before: &Token<'_>| before.end == at && before.kind == Kind::Quoted);
            let place = if joined { Place::BehindQuotation } else { Place::Free };
            push_word(&mut tokens, rest.get(..length).unwrap_or_default(), at, place);
            at += length;
        }
    }
    tokens
}

/// A quotation at the start of the text: its inside, and its length with the marks.
fn quotation(text: &str) -> Option<(&str, usize)> {
    if let Some(body) = text.strip_prefix("```") {
        let inside = body.get(..body.find("```")?)?;
        // The first line of a fence may name a language.
        let skipped = inside.find('\n').filter(|end| !inside.get(..*end).unwrap_or_default().contains(' '));
        let content = skipped.and_then(|end| inside.get(end + 1..)).unwrap_or(inside);
        return Some((content, inside.len() + 6));
    }
    let open = text.chars().next()?;
    let close = match open {
        '"' | '\'' | '`' => open,
        '“' => '”',
        '‘' => '’',
        _ => return None,
    };
    let body = text.get(open.len_utf8()..)?;
    // A mark inside a word is an apostrophe; the closing one stands before white space, punctuation or the end.
    let end = body.match_indices(close).map(|(end, _)| end).find(|end| {
        let after = body.get(end + close.len_utf8()..).and_then(|after| after.chars().next());
        after.is_none_or(|c| c.is_whitespace() || is_punctuation(c))
    })?;
    let inside = body.get(..end)?;
    (!inside.is_empty()).then_some((inside, open.len_utf8() + end + close.len_utf8()))
}

fn is_punctuation(c: char) -> bool {
    matches!(c, ',' | ';' | ':' | '.' | '!' | '?' | ')')
}

/// Where a word stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Free,
    BehindQuotation,
}

/// A word and the punctuation that follows it.
fn push_word<'a>(tokens: &mut Vec<Token<'a>>, word: &'a str, start: usize, place: Place) {
    let bare = word.trim_end_matches(is_punctuation);
    // `.` and `..` are directories, unless they close a quotation.
    let bare = if bare.is_empty() && place == Place::Free && matches!(word, "." | "..") { word } else { bare };
    if !bare.is_empty() {
        tokens.push(Token { kind: Kind::Word, text: bare, start, end: start + bare.len() });
    }
    for (offset, mark) in word.char_indices().skip_while(|(offset, _)| *offset < bare.len()) {
        let text = word.get(offset..offset + mark.len_utf8()).unwrap_or_default();
        let at = start + offset;
        tokens.push(Token { kind: Kind::Punctuation, text, start: at, end: at + text.len() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_quotations_and_marks() {
        let shown = |text| {
            tokens(text)
                .into_iter()
                .map(|token| match token.kind {
                    Kind::Word => token.text.to_owned(),
                    Kind::Quoted => format!("<{}>", token.text),
                    Kind::Punctuation => format!("({})", token.text),
                    Kind::LineEnd => "/".to_owned(),
                })
                .collect::<Vec<_>>()
                .join(" ")
        };
        for (text, expected) in [
            ("read notes.md, then stop.", "read notes.md (,) then stop (.)"),
            ("write \"a, b; c\" to x", "write <a, b; c> to x"),
            ("what's in 'my file.txt'?", "what's in <my file.txt> (?)"),
            ("don't 'x", "don't 'x"),
            ("say \"it's \"fine\"\".", "say <it's \"fine\"> (.)"),
            ("list . and ..", "list . and .."),
            ("a\n“b c”", "a / <b c>"),
            ("put ```rust\nfn main() {}\n``` in a", "put <fn main() {}\n> in a"),
            ("", ""),
            ("\"\"", "\"\""),
            ("what?!", "what (?) (!)"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }
}
