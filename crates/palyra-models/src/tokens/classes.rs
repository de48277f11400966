//! The kinds of characters by which text is cut into pieces, from the Unicode tables that the regular expressions of this program
//! use anyway.

use std::sync::LazyLock;

use regex_syntax::hir::{Class as SyntaxClass, HirKind};

/// What a character is to the patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// An upper-case or title-case letter (Lu, Lt).
    Upper,
    /// A lower-case letter (Ll).
    Lower,
    /// A letter without case (Lm, Lo).
    Letter,
    /// A combining mark (M).
    Mark,
    /// A number (N).
    Number,
    /// White space.
    Space,
    /// Anything else.
    Other,
}

impl Class {
    /// What this character is.
    pub(super) fn of(c: char) -> Self {
        match c {
            'a'..='z' => Self::Lower,
            'A'..='Z' => Self::Upper,
            '0'..='9' => Self::Number,
            _ if c.is_whitespace() => Self::Space,
            _ if c.is_ascii() => Self::Other,
            _ => looked_up(c),
        }
    }

    /// Whether it is a letter of any kind (L).
    pub(super) const fn is_letter(self) -> bool {
        matches!(self, Self::Upper | Self::Lower | Self::Letter)
    }

    /// Whether it is letter-like without case, and so fits at the beginning and at the end of a word.
    pub(super) const fn is_caseless(self) -> bool {
        matches!(self, Self::Letter | Self::Mark)
    }
}

/// Ranges of characters outside ASCII with their class, in order.
static RANGES: LazyLock<Vec<(u32, u32, Class)>> = LazyLock::new(|| {
    let classes = [
        (r"[\p{Lu}\p{Lt}]", Class::Upper),
        (r"\p{Ll}", Class::Lower),
        (r"[\p{Lm}\p{Lo}]", Class::Letter),
        (r"\p{M}", Class::Mark),
        (r"\p{N}", Class::Number),
    ];
    let mut ranges: Vec<(u32, u32, Class)> = Vec::new();
    for (pattern, class) in classes {
        // These patterns are fixed and parse; a class that did not would only make counts a little wrong.
        let Ok(parsed) = regex_syntax::parse(pattern) else { continue };
        if let HirKind::Class(SyntaxClass::Unicode(unicode)) = parsed.kind() {
            ranges
                .extend(unicode.ranges().iter().map(|range| (u32::from(range.start()), u32::from(range.end()), class)));
        }
    }
    ranges.sort_unstable_by_key(|(start, ..)| *start);
    ranges.shrink_to_fit();
    ranges
});

fn looked_up(c: char) -> Class {
    let code = u32::from(c);
    let after = RANGES.partition_point(|(start, ..)| *start <= code);
    match after.checked_sub(1).and_then(|at| RANGES.get(at)) {
        Some((_, end, class)) if code <= *end => *class,
        _ => Class::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_have_their_unicode_class() {
        for (c, class) in [
            ('é', Class::Lower),
            ('É', Class::Upper),
            ('ǅ', Class::Upper),
            ('漢', Class::Letter),
            ('ʰ', Class::Letter),
            ('\u{301}', Class::Mark),
            ('٣', Class::Number),
            ('½', Class::Number),
            ('\u{a0}', Class::Space),
            ('\u{2028}', Class::Space),
            ('€', Class::Other),
            ('🦀', Class::Other),
            ('_', Class::Other),
            ('\u{10ffff}', Class::Other),
        ] {
            assert_eq!(Class::of(c), class, "{c:?}");
        }
    }
}
