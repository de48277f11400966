//! The words of a name, whatever style it is written in.

/// The words of a name in lower case: `sendEmail`, `send_email`, `send-email` and `mail.send/email` alike.
pub(super) fn split(name: &str) -> Vec<String> {
    let characters: Vec<char> = name.chars().collect();
    let mut words = Vec::new();
    let mut word = String::new();
    for (position, character) in characters.iter().enumerate() {
        if !character.is_alphanumeric() {
            finish(&mut word, &mut words);
            continue;
        }
        let before = position.checked_sub(1).and_then(|before| characters.get(before));
        let after = characters.get(position + 1);
        // A capital begins a word after a small letter (`sendEmail`), and at the end of a run of them (`HTMLBody`).
        let begins = character.is_uppercase()
            && (before.is_some_and(|before| before.is_lowercase() || before.is_numeric())
                || (before.is_some_and(|before| before.is_uppercase())
                    && after.is_some_and(|after| after.is_lowercase())));
        if begins {
            finish(&mut word, &mut words);
        }
        word.extend(character.to_lowercase());
    }
    finish(&mut word, &mut words);
    words
}

/// The words of a sentence in lower case; a name such as `GraphQL` is one word there.
pub(super) fn prose(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

fn finish(word: &mut String, words: &mut Vec<String>) {
    if !word.is_empty() {
        words.push(std::mem::take(word));
    }
}

/// A plural as its singular, roughly: `recipients`, `addresses`, `entries`.
pub(super) fn singular(word: &str) -> &str {
    match word {
        word if word.ends_with("sses") || word.ends_with("xes") || word.ends_with("ches") => {
            word.strip_suffix("es").unwrap_or(word)
        }
        word if word.ends_with("ss") || word.len() < 4 => word,
        word => word.strip_suffix('s').unwrap_or(word),
    }
}

/// Whether a word, or its singular, is in a list.
pub(super) fn listed(word: &str, list: &[&str]) -> bool {
    list.contains(&word) || list.contains(&singular(word))
}

/// Whether any of the words is in a list.
pub(super) fn any_listed(words: &[String], list: &[&str]) -> bool {
    words.iter().any(|word| listed(word, list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_styles_give_the_same_words() {
        for (name, words) in [
            ("send_email", "send email"),
            ("sendEmail", "send email"),
            ("SendEmail", "send email"),
            ("send-email", "send email"),
            ("mail.send/email", "mail send email"),
            ("HTMLBody", "html body"),
            ("getURL", "get url"),
            ("oauth2Token", "oauth2 token"),
            ("__x__", "x"),
            ("", ""),
        ] {
            assert_eq!(split(name).join(" "), words, "{name}");
        }
    }

    #[test]
    fn plurals_are_recognised() {
        for (plural, single) in [
            ("recipients", "recipient"),
            ("addresses", "address"),
            ("address", "address"),
            ("urls", "url"),
            ("cc", "cc"),
        ] {
            assert_eq!(singular(plural), single);
        }
    }
}
