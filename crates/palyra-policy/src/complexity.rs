//! Bounds on the shape of a policy text, checked before it is parsed.
//!
//! Parsing, validating, evaluating and even freeing an expression recurse as deep as the expression does, and a stack that overflows
//! ends the process. So brackets may nest only so far, and one policy may chain only so many operators; both bounds are far above
//! what a person writes and far below what the stack of `deep_stack.rs` holds.

use crate::{Place, PolicyError, PolicySource};

/// Deepest nesting of brackets.
const MAX_NESTING: usize = 48;
/// Most operators, brackets and keywords that nest in one policy.
const MAX_OPERATORS: usize = 1_500;

/// Most conditionals in one policy: the validator looks at both branches of each anew, so the time it takes doubles with every level.
const MAX_CONDITIONALS: usize = 8;

/// Words that make an expression deeper without a bracket or an operator sign.
const NESTING_WORDS: [&str; 7] = ["if", "then", "else", "in", "is", "has", "like"];

pub(crate) fn check(source: &PolicySource) -> Result<(), PolicyError> {
    let mut scan = Scan { nesting: 0, operators: 0, conditionals: 0 };
    let mut rest = source.text.char_indices().peekable();
    let mut word = String::new();
    let end_word = |scan: &mut Scan, word: &mut String| {
        if NESTING_WORDS.contains(&word.as_str()) {
            scan.operators += 1;
        }
        if word == "if" {
            scan.conditionals += 1;
        }
        word.clear();
    };
    while let Some((offset, letter)) = rest.next() {
        if letter.is_ascii_alphanumeric() || letter == '_' {
            word.push(letter);
            continue;
        }
        end_word(&mut scan, &mut word);
        match letter {
            '"' => skip_string(&mut rest),
            '/' if rest.peek().is_some_and(|(_, next)| *next == '/') => {
                while rest.next_if(|(_, next)| *next != '\n').is_some() {}
            }
            other => scan.sign(other),
        }
        if scan.nesting > MAX_NESTING || scan.operators > MAX_OPERATORS || scan.conditionals > MAX_CONDITIONALS {
            let at = Place::at_offset(&source.file, &source.text, offset);
            let reason = format!(
                "too complex: one policy has at most {MAX_NESTING} nested brackets, {MAX_OPERATORS} operators and {MAX_CONDITIONALS} conditionals"
            );
            return Err(PolicyError::Malformed { at, reason });
        }
    }
    Ok(())
}

/// A string ends at the next quote that no backslash precedes; what is inside cannot nest.
fn skip_string(rest: &mut impl Iterator<Item = (usize, char)>) {
    while let Some((_, letter)) = rest.next() {
        match letter {
            '\\' => drop(rest.next()),
            '"' => return,
            _ => {}
        }
    }
}

struct Scan {
    nesting: usize,
    operators: usize,
    conditionals: usize,
}

impl Scan {
    fn sign(&mut self, letter: char) {
        match letter {
            '(' | '[' | '{' => {
                self.nesting += 1;
                self.operators += 1;
            }
            ')' | ']' | '}' => self.nesting = self.nesting.saturating_sub(1),
            ';' if self.nesting == 0 => {
                self.operators = 0;
                self.conditionals = 0;
            }
            '&' | '|' | '+' | '-' | '*' | '!' | '<' | '>' | '=' | '.' => self.operators += 1,
            _ => {}
        }
    }
}
