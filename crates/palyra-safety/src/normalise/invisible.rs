//! Characters a reader does not see: zero-width, fillers, direction controls, tags, variation selectors.

/// Whether the character changes the direction of writing, by which text can be shown in another order than it is read.
pub(crate) const fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Whether the character takes no space and is dropped by folding.
pub(crate) const fn is_invisible(c: char) -> bool {
    is_bidi_control(c)
        || matches!(
            c,
            '\u{00AD}'
                | '\u{034F}'
                | '\u{115F}'..='\u{1160}'
                | '\u{17B4}'..='\u{17B5}'
                | '\u{180B}'..='\u{180F}'
                | '\u{200B}'..='\u{200D}'
                | '\u{2060}'..='\u{2065}'
                | '\u{206A}'..='\u{206F}'
                | '\u{3164}'
                | '\u{FE00}'..='\u{FE0F}'
                | '\u{FEFF}'
                | '\u{FFA0}'
                | '\u{FFF0}'..='\u{FFFB}'
                | '\u{1BCA0}'..='\u{1BCA3}'
                | '\u{1D173}'..='\u{1D17A}'
                | '\u{E0000}'..='\u{E0FFF}'
        )
}

/// The ASCII character a Unicode tag stands for: tags spell text that no font shows but a model may read.
pub(crate) fn tag_to_ascii(c: char) -> Option<char> {
    let code = u32::from(c);
    (0xE0020..=0xE007E).contains(&code).then(|| char::from_u32(code - 0xE0000)).flatten()
}
