//! A list of arguments as one line.
//!
//! What a person reads, what patterns of approvals are matched with and what is looked for in the user's own words have to be the same text, so
//! there is one way to write it.

/// The arguments in one line, with single quotes where a shell would need them.
pub fn command_line<'a>(arguments: impl IntoIterator<Item = &'a str>) -> String {
    let mut line = String::new();
    for argument in arguments {
        if !line.is_empty() {
            line.push(' ');
        }
        if is_plain(argument) {
            line.push_str(argument);
        } else {
            line.push('\'');
            line.push_str(&argument.replace('\'', "'\\''"));
            line.push('\'');
        }
    }
    line
}

fn is_plain(argument: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:=@%+,".contains(&byte);
    !argument.is_empty() && argument.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_read_differently_is_quoted() {
        assert_eq!(command_line(["cargo", "test", "--workspace"]), "cargo test --workspace");
        assert_eq!(command_line(["echo", "a b", "", "$x", "it's"]), "echo 'a b' '' '$x' 'it'\\''s'");
        assert_eq!(command_line(["a;b"]), "'a;b'");
        assert_eq!(command_line([]), "");
    }
}
