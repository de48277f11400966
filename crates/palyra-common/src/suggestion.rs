//! The name that somebody most likely meant.

/// How alike two names have to be, from 0 to 1.
const ALIKE: f64 = 0.75;

/// Which of the known names was most likely meant.
pub fn suggest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let folded = given.to_ascii_lowercase();
    let nearest = known.into_iter().map(|known| (strsim::jaro_winkler(known, &folded), known));
    let nearest = nearest.max_by(|left, right| left.0.total_cmp(&right.0))?;
    (nearest.0 >= ALIKE).then(|| nearest.1.to_owned())
}

/// The end of a message that knows better; empty if it does not.
#[must_use]
pub fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map(|suggestion| format!("; did you mean `{suggestion}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_if_it_is_near() {
        let known = ["files", "web"];
        assert_eq!(suggest("flies", known).as_deref(), Some("files"));
        assert_eq!(suggest("WEB", known).as_deref(), Some("web"));
        assert_eq!(suggest("mail", known), None);
        assert_eq!(did_you_mean(suggest("fles", known).as_deref()), "; did you mean `files`?");
    }
}
