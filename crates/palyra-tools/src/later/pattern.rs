//! Patterns of paths: parts that the end of a path has to match, one by one.
//!
//! `*` stands for any letters of one part. A pattern that ends in `/**` is about everything below the directory, however deep; any other is about the file itself. A
//! pattern says nothing about the directories above its first part.

/// Whether a path, in small letters and in parts, is one that the pattern is about.
pub(super) fn matches(pattern: &str, parts: &[&str]) -> bool {
    match pattern.strip_suffix("/**") {
        None => ends_with(pattern, parts),
        Some(directory) => {
            (1..parts.len()).any(|length| parts.get(..length).is_some_and(|above| ends_with(directory, above)))
        }
    }
}

/// Whether a directory of this path could hold what the pattern is about because of its name, whatever the names of the files in it.
pub(super) fn matches_directory(pattern: &str, parts: &[&str]) -> bool {
    if matches(pattern, parts) {
        return true;
    }
    let names: Vec<&str> = pattern.split('/').collect();
    (1..names.len()).any(|length| names.get(..length).is_some_and(|names| ends_with(&names.join("/"), parts)))
}

fn ends_with(pattern: &str, parts: &[&str]) -> bool {
    let mut parts = parts.iter().rev();
    pattern.rsplit('/').all(|pattern| parts.next().is_some_and(|part| is_like(pattern, part)))
}

fn is_like(pattern: &str, part: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == part,
        Some((start, rest)) => part.strip_prefix(start).is_some_and(|part| match rest.contains('*') {
            false => part.ends_with(rest),
            true => part.char_indices().any(|(at, _)| part.get(at..).is_some_and(|part| is_like(rest, part))),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(path: &str) -> Vec<&str> {
        path.split('/').collect()
    }

    #[test]
    fn a_pattern_is_about_the_end_of_a_path_or_all_that_is_below_a_directory() {
        for (pattern, path, expected) in [
            ("makefile", "sub/makefile", true),
            ("makefile", "makefile/x", false),
            ("*.config.js", "a/vite.config.js", true),
            ("*.config.js", "config.js", false),
            ("docker-compose*.y*ml", "docker-compose.prod.yaml", true),
            ("gradle/wrapper/*", "sub/gradle/wrapper/x.jar", true),
            ("gradle/wrapper/*", "wrapper/x.jar", false),
            (".husky/**", ".husky/deep/er", true),
            (".husky/**", ".husky", false),
            (".github/workflows/**", "a/.github/workflows/b/c.yml", true),
            (".github/workflows/**", ".github/a/workflows/c.yml", false),
        ] {
            assert_eq!(matches(pattern, &parts(path)), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn a_directory_that_leads_to_what_a_pattern_is_about_is_known_by_its_name() {
        for (pattern, path, expected) in [
            (".cargo/**", "sub/.cargo", true),
            (".cargo/**", ".cargo/deeper", true),
            ("gradle/wrapper/*", "gradle", true),
            ("gradle/wrapper/*", "gradle/wrapper", true),
            ("gradle/wrapper/*", "wrapper", false),
            ("makefile", "makefile", true),
            ("makefile", "docs", false),
        ] {
            assert_eq!(matches_directory(pattern, &parts(path)), expected, "{pattern} {path}");
        }
    }
}
