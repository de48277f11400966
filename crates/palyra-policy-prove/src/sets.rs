//! Sets in the words of one solver and of the other.
//!
//! The symbolic compiler speaks of sets as cvc5 does (`set.member`, `set.subset`, …). To z3 a set is an array of truth values. Going there
//! is a matter of other words. z3's sets may be infinite, so it considers more than cvc5 does: what it refutes is refuted. Coming back,
//! an infinite set is cut to the values that the question or the model mentions; the symbolic compiler then checks the example against
//! the question, so a cut that changes the answer is an error and no wrong example.

use std::collections::BTreeSet;

use crate::ProveError;
use crate::sexpr::Node;

/// A script for cvc5 in z3's words.
pub(crate) fn to_arrays(node: Node) -> Node {
    let Node::List(items) = node else { return node };
    // `(as set.empty (Set T))`
    if let [keyword, name, kind] = &items[..]
        && keyword.is("as")
        && name.is("set.empty")
        && let [set, of] = kind.items()
        && set.is("Set")
    {
        return empty(to_arrays(of.clone()));
    }
    let mut items: Vec<Node> = items.into_iter().map(to_arrays).collect();
    let operator = match items.first() {
        Some(Node::Atom(atom)) => atom.as_str(),
        _ => return Node::List(items),
    };
    match (operator, items.len()) {
        ("set.member", 3) => {
            items.swap(1, 2);
            replace_first(items, "select")
        }
        ("set.subset", 3) => replace_first(items, "subset"),
        ("set.inter", 3) => replace_first(items, "intersection"),
        ("set.insert", length) if length >= 3 => {
            let set = items.pop().unwrap_or_else(|| Node::atom("set.empty"));
            items
                .into_iter()
                .skip(1)
                .fold(set, |set, element| Node::List(vec![Node::atom("store"), set, element, Node::atom("true")]))
        }
        _ => Node::List(items),
    }
}

fn replace_first(mut items: Vec<Node>, word: &str) -> Node {
    if let Some(first) = items.first_mut() {
        *first = Node::atom(word);
    }
    Node::List(items)
}

fn empty(of: Node) -> Node {
    let array = Node::List(vec![Node::atom("Array"), of, Node::atom("Bool")]);
    let constant = Node::List(vec![Node::atom("as"), Node::atom("const"), array]);
    Node::List(vec![constant, Node::atom("false")])
}

/// The values that a question speaks about, as they are written. Where z3 leaves a set infinite, only these of its members matter.
#[derive(Debug, Default)]
pub(crate) struct Universe {
    values: BTreeSet<String>,
}

impl Universe {
    /// Remembers the values in an expression.
    pub(crate) fn learn(&mut self, node: &Node) {
        match node {
            Node::Atom(atom) => {
                if atom.starts_with('"') || is_listed_entity(atom) {
                    self.values.insert(atom.clone());
                }
            }
            Node::List(items) => {
                if let [Node::Atom(constructor), Node::Atom(id)] = &items[..]
                    && is_number(constructor.strip_prefix('E'))
                    && id.starts_with('"')
                {
                    self.values.insert(node.to_string());
                }
                items.iter().for_each(|item| self.learn(item));
            }
        }
    }

    /// The values of a type.
    fn of(&self, kind: &Node) -> Result<Vec<Node>, ProveError> {
        let Node::Atom(kind) = kind else { return Err(ProveError::failed("its example needs an infinite set")) };
        let (applied, enumerated) = (format!("({kind} "), format!("{kind}_m"));
        let fits = |value: &&String| match kind.as_str() {
            "String" => value.starts_with('"'),
            _ => value.starts_with(&applied) || value.starts_with(&enumerated),
        };
        let texts: Vec<&str> = self.values.iter().filter(fits).map(String::as_str).collect();
        Node::read_all(&texts.join(" "))
    }
}

/// Entities are written `(E3 "id")`, or `E3_m0` where the type lists its values.
fn is_listed_entity(atom: &str) -> bool {
    atom.strip_prefix('E')
        .and_then(|rest| rest.split_once("_m"))
        .is_some_and(|(kind, value)| is_number(Some(kind)) && is_number(Some(value)))
}

fn is_number(text: Option<&str>) -> bool {
    text.is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A model of z3 in cvc5's words.
pub(crate) fn to_sets(node: Node, universe: &Universe) -> Result<Node, ProveError> {
    if let Some((kind, members)) = members(&node)? {
        let members = match members {
            Members::These(values) => values,
            Members::AllBut(values) => {
                universe.of(&kind)?.into_iter().filter(|value| !values.contains(value)).collect()
            }
        };
        let kind = to_sets(kind, universe)?;
        let mut whole = None;
        for member in members {
            let single = Node::List(vec![Node::atom("set.singleton"), to_sets(member, universe)?]);
            whole = Some(match whole {
                None => single,
                Some(set) => Node::List(vec![Node::atom("set.union"), set, single]),
            });
        }
        let none =
            || Node::List(vec![Node::atom("as"), Node::atom("set.empty"), Node::List(vec![Node::atom("Set"), kind])]);
        return Ok(whole.unwrap_or_else(none));
    }
    let Node::List(items) = node else { return Ok(node) };
    // `(Array T Bool)` as a type.
    if let [array, of, bool] = &items[..]
        && array.is("Array")
        && bool.is("Bool")
    {
        return Ok(Node::List(vec![Node::atom("Set"), to_sets(of.clone(), universe)?]));
    }
    items.into_iter().map(|item| to_sets(item, universe)).collect::<Result<Vec<_>, _>>().map(Node::List)
}

/// The members of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Members {
    These(Vec<Node>),
    AllBut(Vec<Node>),
}

impl Members {
    fn not(self) -> Self {
        match self {
            Self::These(values) => Self::AllBut(values),
            Self::AllBut(values) => Self::These(values),
        }
    }

    fn or(self, other: Self) -> Self {
        let without =
            |values: Vec<Node>, gone: &[Node]| values.into_iter().filter(|value| !gone.contains(value)).collect();
        match (self, other) {
            (Self::These(mut values), Self::These(more)) => {
                values.extend(without(more, &values.clone()));
                Self::These(values)
            }
            (Self::These(these), Self::AllBut(values)) | (Self::AllBut(values), Self::These(these)) => {
                Self::AllBut(without(values, &these))
            }
            (Self::AllBut(values), Self::AllBut(others)) => {
                Self::AllBut(values.into_iter().filter(|value| others.contains(value)).collect())
            }
        }
    }

    fn and(self, other: Self) -> Self {
        self.not().or(other.not()).not()
    }
}

/// The type and the members of an expression that is a set, or nothing if it is something else.
fn members(node: &Node) -> Result<Option<(Node, Members)>, ProveError> {
    match node.items() {
        // `((as const (Array T Bool)) false)`, or the same with `(Set T)`
        [constant, value] if !constant.items().is_empty() => {
            let [keyword, name, array] = constant.items() else { return Ok(None) };
            if !(keyword.is("as") && name.is("const")) {
                return Ok(None);
            }
            let of = match array.items() {
                [word, of, bool] if word.is("Array") && bool.is("Bool") => of,
                [word, of] if word.is("Set") => of,
                _ => return Ok(None),
            };
            Ok(Some((of.clone(), truth(value)?)))
        }
        // `(store S x true)`
        [store, set, element, value] if store.is("store") => {
            let Some((kind, before)) = members(set)? else { return Ok(None) };
            let here = Members::These(vec![element.clone()]);
            Ok(Some((kind, before.and(here.clone().not()).or(here.and(truth(value)?)))))
        }
        // `(lambda ((x T)) condition)`
        [lambda, variables, condition] if lambda.is("lambda") => {
            let [variable] = variables.items() else { return Err(odd(node)) };
            let [name, kind] = variable.items() else { return Err(odd(node)) };
            Ok(Some((kind.clone(), satisfying(name, condition)?)))
        }
        _ => Ok(None),
    }
}

fn truth(value: &Node) -> Result<Members, ProveError> {
    match value {
        Node::Atom(atom) if atom == "true" => Ok(Members::AllBut(Vec::new())),
        Node::Atom(atom) if atom == "false" => Ok(Members::These(Vec::new())),
        other => Err(odd(other)),
    }
}

/// The values for which a condition about one variable holds.
fn satisfying(variable: &Node, condition: &Node) -> Result<Members, ProveError> {
    let these = |value: &Node| Ok(Members::These(vec![value.clone()]));
    match condition.items() {
        [] => truth(condition),
        [equals, left, right] if equals.is("=") && left == variable => these(right),
        [equals, left, right] if equals.is("=") && right == variable => these(left),
        [not, inner] if not.is("not") => Ok(satisfying(variable, inner)?.not()),
        [or, alternatives @ ..] if or.is("or") => {
            let none = Members::These(Vec::new());
            alternatives.iter().try_fold(none, |all, one| Ok(all.or(satisfying(variable, one)?)))
        }
        [and, conditions @ ..] if and.is("and") => {
            let everything = Members::AllBut(Vec::new());
            conditions.iter().try_fold(everything, |all, one| Ok(all.and(satisfying(variable, one)?)))
        }
        [ite, test, then, otherwise] if ite.is("ite") => {
            let test = satisfying(variable, test)?;
            let (then, otherwise) = (satisfying(variable, then)?, satisfying(variable, otherwise)?);
            Ok(test.clone().and(then).or(test.not().and(otherwise)))
        }
        _ => Err(odd(condition)),
    }
}

fn odd(node: &Node) -> ProveError {
    let shown: String = node.to_string().chars().take(120).collect();
    ProveError::failed(format!("its example has a set that was not understood: {shown}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Node {
        Node::read_all(text).unwrap().pop().unwrap()
    }

    #[test]
    fn scripts_go_to_arrays() {
        for (sets, arrays) in [
            ("(assert (set.member t1 t2))", "(assert (select t2 t1))"),
            ("(set.subset a (set.inter b c))", "(subset a (intersection b c))"),
            ("(as set.empty (Set (Set E)))", "((as const (Array (Set E) Bool)) false)"),
            (
                "(set.insert a b (as set.empty (Set E)))",
                "(store (store ((as const (Array E Bool)) false) a true) b true)",
            ),
            ("(declare-const x (Set String))", "(declare-const x (Set String))"),
            ("(= \"set.member\" y)", "(= \"set.member\" y)"),
        ] {
            assert_eq!(to_arrays(one(sets)).to_string(), arrays);
        }
    }

    #[test]
    fn models_come_back_as_sets() {
        let none = "((as const (Array E Bool)) false)";
        for (arrays, sets) in [
            (none.to_owned(), "(as set.empty (Set E))"),
            ("((as const (Set E)) false)".to_owned(), "(as set.empty (Set E))"),
            (format!("(store (store {none} a true) b true)"), "(set.union (set.singleton a) (set.singleton b))"),
            (format!("(store (store {none} a true) a false)"), "(as set.empty (Set E))"),
            (
                "(lambda ((x!1 E)) (or (= x!1 a) (= b x!1)))".to_owned(),
                "(set.union (set.singleton a) (set.singleton b))",
            ),
            (
                "(lambda ((x E)) (ite (= x a) true (= x b)))".to_owned(),
                "(set.union (set.singleton a) (set.singleton b))",
            ),
            (
                "(define-fun f ((x E)) (Array E Bool) (ite (= x a) S T))".to_owned(),
                "(define-fun f ((x E)) (Set E) (ite (= x a) S T))",
            ),
        ] {
            assert_eq!(to_sets(one(&arrays), &Universe::default()).unwrap().to_string(), sets);
        }
    }

    /// Of an infinite set the members that the question speaks about are kept.
    #[test]
    fn infinite_sets_are_cut_to_what_matters() {
        let mut universe = Universe::default();
        universe.learn(&one("(assert (or (= x (E1 \"a\")) (= y (E2 \"b\")) (= z E3_m0) (= w \"text\")))"));
        for (arrays, sets) in [
            ("((as const (Array E1 Bool)) true)", "(set.singleton (E1 \"a\"))"),
            ("(store ((as const (Set E1)) true) (E1 \"a\") false)", "(as set.empty (Set E1))"),
            ("(lambda ((x E2)) (not (= x (E2 \"c\"))))", "(set.singleton (E2 \"b\"))"),
            ("(lambda ((x E3)) (and true (not (= x E3_m1))))", "(set.singleton E3_m0)"),
        ] {
            assert_eq!(to_sets(one(arrays), &universe).unwrap().to_string(), sets);
        }
        assert!(to_sets(one("(lambda ((x E1)) (f x))"), &universe).is_err());
        assert!(to_sets(one("((as const (Set (Set E1))) true)"), &universe).is_err());
    }
}
