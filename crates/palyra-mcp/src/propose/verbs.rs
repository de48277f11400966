//! Whether a tool acts or only looks, by the verb of its name.

use palyra_common::Consequence;

use super::vocabulary::{ACTING, READING, VERB_OR_NOUN};
use super::words::{listed, split};
use crate::ToolDescription;

/// What the name says.
pub(super) struct Verdict {
    pub(super) consequence: Consequence,
    pub(super) why: String,
}

/// Judges a tool by its name; description and hints may only make it stricter.
pub(super) fn judge(tool: &ToolDescription) -> Verdict {
    let words = split(&tool.name);
    let acts = |why: String| Verdict { consequence: Consequence::Consequential, why: format!("consequential: {why}") };
    let looks = match by_name(&words) {
        Ok(why) => why,
        Err(why) => return acts(why),
    };
    if let Some(word) = tool.description.as_deref().and_then(acting_word) {
        return acts(format!("its name suggests reading, but its description says that it can {word}"));
    }
    let hints = tool.hints();
    if hints.read_only == Some(false) {
        return acts("its name suggests reading, but the server says that it is not read-only".to_owned());
    }
    if hints.destructive == Some(true) && hints.read_only != Some(true) {
        return acts("its name suggests reading, but the server says that it is destructive".to_owned());
    }
    Verdict { consequence: Consequence::Contained, why: format!("contained: {looks}") }
}

/// Why the name means looking, or why it means acting.
fn by_name(words: &[String]) -> Result<String, String> {
    let is = |word: &str, list: &[&str]| list.contains(&word);
    let Some(first) = words.first().map(String::as_str) else {
        return Err("its name contains no word".to_owned());
    };
    // `get_or_create`, `find_and_replace`: whatever comes after may act.
    let joined = words.windows(2).find_map(|pair| match pair {
        [join, next] if is(join, &["and", "or", "then"]) && !is(next, READING) => Some(next),
        _ => None,
    });
    if is(first, READING) {
        if first == "check" && words.get(1).is_some_and(|next| is(next, &["in", "out"])) {
            return Err("checking in or out changes something".to_owned());
        }
        return match joined {
            Some(next) => Err(format!("it reads, and then does \"{next}\"")),
            None => Ok(format!("its verb \"{first}\" only reads")),
        };
    }
    if is(first, ACTING) || is(first, VERB_OR_NOUN) {
        return Err(format!("its verb is \"{first}\""));
    }
    // A thing comes first, as in `calendar_list_events`: the first word that can be a verb decides, and one that only acts wins.
    if let Some(verb) = words.iter().find(|word| is(word, ACTING)) {
        return Err(format!("its verb is \"{verb}\""));
    }
    match words.iter().find(|word| is(word, READING) || is(word, VERB_OR_NOUN)) {
        Some(verb) if is(verb, READING) && joined.is_none() => Ok(format!("its verb \"{verb}\" only reads")),
        Some(verb) => Err(format!("its verb is \"{verb}\"")),
        None => Err("its name has no verb that is known to be read-only".to_owned()),
    }
}

/// A word of the first sentence that says that something is done: its first word, or one after `and` or `then`.
fn acting_word(description: &str) -> Option<String> {
    let sentence = description.split(['.', '\n', ';']).map(str::trim).find(|sentence| !sentence.is_empty())?;
    let words: Vec<String> = sentence
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase())
        .collect();
    let acts =
        |word: &&String| listed(word, ACTING) || word.strip_suffix("es").is_some_and(|stem| ACTING.contains(&stem));
    let after_join = words.windows(2).filter_map(|pair| match pair {
        [join, next] if join == "and" || join == "then" => Some(next),
        _ => None,
    });
    words.first().into_iter().chain(after_join).find(acts).cloned()
}
