//! Strings as z3 sometimes writes them in models: as a sequence of characters instead of a literal.

use crate::sexpr::Node;

/// The same with every written-out string as a literal.
pub(crate) fn with_literals(node: Node) -> Node {
    let Node::List(items) = node else { return node };
    let items: Vec<Node> = items.into_iter().map(with_literals).collect();
    let text = match &items[..] {
        // `(seq.unit (_ Char 101))`
        [unit, character] if unit.is("seq.unit") => letter(character),
        // `(as seq.empty String)`, `(as seq.empty (Seq Unicode))`
        [keyword, empty, _] if keyword.is("as") && empty.is("seq.empty") => Some(String::new()),
        [joined, parts @ ..] if joined.is("str.++") || joined.is("seq.++") => {
            parts.iter().map(literal).collect::<Option<Vec<&str>>>().map(|parts| parts.concat())
        }
        _ => None,
    };
    text.map_or_else(|| Node::List(items), |text| Node::Atom(format!("\"{text}\"")))
}

/// What stands between the quotation marks, with its escapes.
fn literal(node: &Node) -> Option<&str> {
    if let Node::Atom(atom) = node { atom.strip_prefix('"')?.strip_suffix('"') } else { None }
}

/// A character as it is written in a literal: `(_ Char 101)` or `(_ char #x65)`.
fn letter(node: &Node) -> Option<String> {
    let [underscore, word, Node::Atom(code)] = node.items() else { return None };
    if !(underscore.is("_") && (word.is("Char") || word.is("char"))) {
        return None;
    }
    let code = match code.strip_prefix("#x") {
        Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16).ok()?,
        None => code.parse().ok()?,
    };
    Some(match char::from_u32(code) {
        Some('"') => "\"\"".to_owned(),
        Some(letter) if letter != '\\' && (' '..='~').contains(&letter) => letter.to_string(),
        _ => format!("\\u{{{code:x}}}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_become_literals() {
        let read = |text: &str| with_literals(Node::read_all(text).unwrap().pop().unwrap()).to_string();
        let (a, quote, other) = ("(seq.unit (_ Char 97))", "(seq.unit (_ char #x22))", "(seq.unit (_ Char 233))");
        assert_eq!(read(&format!("(E0 (str.++ {a} \"b\" {quote} {other}))")), "(E0 \"ab\"\"\\u{e9}\")");
        assert_eq!(read(a), "\"a\"");
        assert_eq!(read("(as seq.empty String)"), "\"\"");
        assert_eq!(read("(str.++ x \"b\")"), "(str.++ x \"b\")", "what is no literal stays");
    }
}
