//! S-expressions: the form of everything that is said to a solver and by it.

use std::collections::BTreeMap;
use std::fmt;

use crate::ProveError;

/// An atom or a list. Atoms keep their quotation marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    Atom(String),
    List(Vec<Node>),
}

impl Node {
    pub(crate) fn atom(text: &str) -> Self {
        Self::Atom(text.to_owned())
    }

    pub(crate) fn is(&self, text: &str) -> bool {
        matches!(self, Self::Atom(atom) if atom == text)
    }

    pub(crate) fn items(&self) -> &[Self] {
        match self {
            Self::Atom(_) => &[],
            Self::List(items) => items,
        }
    }

    fn size(&self) -> usize {
        1 + self.items().iter().map(Self::size).sum::<usize>()
    }

    /// Reads all expressions of a text; comments are dropped.
    pub(crate) fn read_all(text: &str) -> Result<Vec<Self>, ProveError> {
        // Lists that are open, the outermost first. No recursion: the text may nest as deep as it likes.
        let mut open: Vec<Vec<Self>> = vec![Vec::new()];
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            let mut atom = String::new();
            match letter {
                letter if letter.is_whitespace() => continue,
                ';' => {
                    while letters.next_if(|next| *next != '\n').is_some() {}
                    continue;
                }
                '(' => {
                    open.push(Vec::new());
                    continue;
                }
                ')' => {
                    let closed = Self::List(open.pop().unwrap_or_default());
                    open.last_mut().ok_or_else(unbalanced)?.push(closed);
                    continue;
                }
                '"' | '|' => {
                    atom.push(letter);
                    loop {
                        let next = letters.next().ok_or_else(unbalanced)?;
                        atom.push(next);
                        if next == letter {
                            // In a string two quotation marks stand for one.
                            match letters.next_if(|after| letter == '"' && *after == '"') {
                                Some(quote) => atom.push(quote),
                                None => break,
                            }
                        }
                    }
                }
                letter => {
                    atom.push(letter);
                    while let Some(next) = letters.next_if(|next| !next.is_whitespace() && !"();\"".contains(*next)) {
                        atom.push(next);
                    }
                }
            }
            open.last_mut().ok_or_else(unbalanced)?.push(Self::Atom(atom));
        }
        match (open.pop(), open.is_empty()) {
            (Some(all), true) => Ok(all),
            _ => Err(unbalanced()),
        }
    }
}

fn unbalanced() -> ProveError {
    ProveError::failed("its text has unbalanced brackets")
}

/// Largest expression that abbreviations may stand for, in nodes: a few letters can stand for more than fits into memory.
const MAX_EXPANDED: usize = 1 << 20;

/// The same with every `(let ((name value) …) body)` written out.
pub(crate) fn without_abbreviations(node: Node) -> Result<Node, ProveError> {
    let mut room = MAX_EXPANDED;
    expanded(node, &BTreeMap::new(), &mut room)
}

fn expanded(node: Node, names: &BTreeMap<String, Node>, room: &mut usize) -> Result<Node, ProveError> {
    *room = room.checked_sub(1).ok_or_else(too_large)?;
    match node {
        Node::Atom(name) => Ok(match names.get(&name) {
            Some(value) => {
                *room = room.checked_sub(value.size()).ok_or_else(too_large)?;
                value.clone()
            }
            None => Node::Atom(name),
        }),
        Node::List(items) => {
            if let [word, bindings, body] = &items[..]
                && word.is("let")
            {
                let mut inner = names.clone();
                for binding in bindings.items() {
                    if let [Node::Atom(name), value] = binding.items() {
                        inner.insert(name.clone(), expanded(value.clone(), names, room)?);
                    }
                }
                return expanded(body.clone(), &inner, room);
            }
            items.into_iter().map(|item| expanded(item, names, room)).collect::<Result<Vec<_>, _>>().map(Node::List)
        }
    }
}

fn too_large() -> ProveError {
    ProveError::failed("its example is too large")
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Atom(atom) => f.write_str(atom),
            Self::List(items) => {
                f.write_str("(")?;
                for (position, item) in items.iter().enumerate() {
                    if position > 0 {
                        f.write_str(" ")?;
                    }
                    item.fmt(f)?;
                }
                f.write_str(")")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abbreviations_are_written_out_within_bounds() {
        let whole = |text: &str| without_abbreviations(Node::read_all(text).unwrap().pop().unwrap());
        assert_eq!(whole("(f (let ((a (g x)) (b y)) (h a b a)))").unwrap().to_string(), "(f (h (g x) y (g x)))");
        let doubling: String = (0..64).map(|n| format!("(let ((a{} (p a{n} a{n}))) ", n + 1)).collect();
        assert!(whole(&format!("{doubling}a64{}", ")".repeat(64))).is_err());
    }

    #[test]
    fn what_is_read_is_written_again() {
        let text = "(assert (= |odd (name| \"a \"\" ) b\"))";
        let read = Node::read_all(&format!("; a remark (\n{text}\n(reset)")).unwrap();
        assert_eq!(read.iter().map(ToString::to_string).collect::<Vec<_>>(), [text, "(reset)"]);
        for bad in ["(", ")", "(a))", "\"x"] {
            assert!(Node::read_all(bad).is_err(), "{bad}");
        }
    }
}
