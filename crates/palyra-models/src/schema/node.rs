//! A schema between reading and writing: one set of types, one set of alternatives, no references, no `allOf`.

use std::collections::BTreeMap;

use serde_json::{Number, Value};

use super::loss::Dropped;

/// A set of JSON types. `number` holds `integer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const INTEGER: Self = Self(4);
    pub(super) const NUMBER: Self = Self(4 | 8);
    pub(super) const STRING: Self = Self(16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const OBJECT: Self = Self(64);
    pub(super) const NONE: Self = Self(0);
    pub(super) const ALL: Self = Self(127);

    /// By its name; none for a type that JSON Schema does not have.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => return None,
        })
    }

    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() != 0.0) => Self::NUMBER,
            Value::Number(_) => Self::INTEGER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    pub(super) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The single types in it, by name.
    pub(super) fn names(self) -> Vec<&'static str> {
        let number = if self.has(Self::NUMBER) { ("number", Self::NUMBER) } else { ("integer", Self::INTEGER) };
        let all = [
            ("string", Self::STRING),
            number,
            ("boolean", Self::BOOLEAN),
            ("object", Self::OBJECT),
            ("array", Self::ARRAY),
            ("null", Self::NULL),
        ];
        all.into_iter().filter(|(_, one)| self.has(*one)).map(|(name, _)| name).collect()
    }
}

/// What an object may hold besides its properties.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Additional {
    /// Nothing is said, which means anything.
    Unsaid,
    /// Anything, expressly.
    Open,
    /// Nothing.
    Closed,
    /// Whatever fits.
    Schema(Box<Node>),
}

/// Bounds of texts, numbers and lists.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Bounds {
    pub(super) min_length: Option<u64>,
    pub(super) max_length: Option<u64>,
    pub(super) pattern: Option<String>,
    pub(super) format: Option<String>,
    pub(super) min_items: Option<u64>,
    pub(super) max_items: Option<u64>,
    pub(super) unique_items: Option<bool>,
    pub(super) minimum: Option<Number>,
    pub(super) maximum: Option<Number>,
    pub(super) exclusive_minimum: Option<Number>,
    pub(super) exclusive_maximum: Option<Number>,
    pub(super) multiple_of: Option<Number>,
}

/// A schema.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    /// JSON pointer to where it stands in the original.
    pub(super) at: String,
    pub(super) description: Option<String>,
    pub(super) default: Option<Value>,
    /// The types it accepts; none for a schema that accepts nothing.
    pub(super) types: Types,
    pub(super) choices: Option<Vec<Value>>,
    /// One of these has to fit as well, if there are any.
    pub(super) any_of: Vec<Node>,
    pub(super) properties: BTreeMap<String, Node>,
    pub(super) required: Vec<String>,
    pub(super) additional: Additional,
    pub(super) prefix: Vec<Node>,
    pub(super) items: Option<Box<Node>>,
    pub(super) bounds: Bounds,
}

impl Node {
    /// A schema that accepts anything.
    pub(super) fn anything(at: &str) -> Self {
        Self {
            at: at.to_owned(),
            description: None,
            default: None,
            types: Types::ALL,
            choices: None,
            any_of: Vec::new(),
            properties: BTreeMap::new(),
            required: Vec::new(),
            additional: Additional::Unsaid,
            prefix: Vec::new(),
            items: None,
            bounds: Bounds::default(),
        }
    }

    /// A schema that accepts nothing.
    pub(super) fn nothing(at: &str) -> Self {
        Self { types: Types::NONE, ..Self::anything(at) }
    }

    pub(super) fn accepts_nothing(&self) -> bool {
        self.types == Types::NONE
    }

    /// Whether every value fits, whatever is said about it in words.
    pub(super) fn accepts_anything(&self) -> bool {
        self.types == Types::ALL && self.asserts_only_types() && self.any_of.is_empty()
    }

    /// Whether nothing but types and alternatives is asserted.
    pub(super) fn asserts_only_types(&self) -> bool {
        self.choices.is_none() && !self.has_structure() && self.bounds == Bounds::default()
    }

    /// Whether something is said about the inside of objects or lists.
    pub(super) fn has_structure(&self) -> bool {
        !self.properties.is_empty()
            || !self.required.is_empty()
            || self.additional != Additional::Unsaid
            || self.items.is_some()
            || !self.prefix.is_empty()
    }

    /// Both schemas as one. Where they cannot both be said, the first counts, which widens: any one of several conjuncts does.
    pub(super) fn both(mut self, other: Self, losses: &mut Vec<Dropped>) -> Self {
        let mut lost = |keyword: &'static str| losses.push(Dropped::new(&other.at, keyword));
        self.description = self.description.or(other.description);
        self.default = self.default.or(other.default);
        let types = self.types.and(other.types);
        self.types = if types == Types::NONE { self.types } else { types };
        self.choices = match (self.choices, other.choices) {
            (Some(mine), Some(others)) => {
                let both: Vec<Value> = mine.iter().filter(|value| others.contains(value)).cloned().collect();
                Some(if both.is_empty() { mine } else { both })
            }
            (mine, others) => mine.or(others),
        };
        if self.any_of.is_empty() {
            self.any_of = other.any_of;
        } else if !other.any_of.is_empty() {
            lost("anyOf");
        }
        for (name, property) in other.properties {
            match self.properties.remove(&name) {
                Some(mine) => {
                    let both = mine.both(property, losses);
                    self.properties.insert(name, both);
                }
                None => {
                    self.properties.insert(name, property);
                }
            }
        }
        for name in other.required {
            if !self.required.contains(&name) {
                self.required.push(name);
            }
        }
        if self.additional == Additional::Unsaid || self.additional == Additional::Open {
            self.additional = match other.additional {
                Additional::Unsaid => self.additional,
                said => said,
            };
        }
        // A list's beginning and its rest belong together.
        if self.items.is_none() && self.prefix.is_empty() {
            (self.items, self.prefix) = (other.items, other.prefix);
        } else if other.items.is_some() || !other.prefix.is_empty() {
            losses.push(Dropped::new(&other.at, "items"));
        }
        self.bounds = self.bounds.both(other.bounds, &other.at, losses);
        self
    }

    /// The schema as that of a call's arguments: an object, with its alternatives brought together, since no vendor takes them at the root.
    pub(super) fn into_arguments(mut self, losses: &mut Vec<Dropped>) -> Self {
        if !self.types.has(Types::OBJECT) {
            losses.push(Dropped::new(&self.at, "type"));
            return Self { types: Types::OBJECT, description: self.description, ..Self::anything(&self.at) };
        }
        self.types = Types::OBJECT;
        if self.choices.take().is_some() {
            losses.push(Dropped::new(&self.at, "enum"));
        }
        let branches: Vec<Self> =
            std::mem::take(&mut self.any_of).into_iter().filter(|branch| branch.types.has(Types::OBJECT)).collect();
        if branches.is_empty() {
            return self;
        }
        losses.push(Dropped::new(&self.at, "anyOf"));
        if !self.properties.is_empty() || branches.iter().any(|branch| !branch.any_of.is_empty()) {
            return self;
        }
        self.properties = brought_together(&branches);
        let (first, rest) = (branches.first(), branches.get(1..).unwrap_or_default());
        let shared = first.map(|branch| branch.required.as_slice()).unwrap_or_default().iter();
        let shared = shared.filter(|name| rest.iter().all(|branch| branch.required.contains(name)));
        for name in shared {
            if !self.required.contains(name) {
                self.required.push(name.clone());
            }
        }
        if self.additional == Additional::Unsaid
            && branches.iter().all(|branch| branch.additional == Additional::Closed)
        {
            self.additional = Additional::Closed;
        }
        self
    }
}

/// The properties of several objects as those of one that accepts what any of them does.
fn brought_together(branches: &[Node]) -> BTreeMap<String, Node> {
    let mut together = BTreeMap::new();
    for name in branches.iter().flat_map(|branch| branch.properties.keys()) {
        let said: Vec<&Node> = branches.iter().filter_map(|branch| branch.properties.get(name)).collect();
        let elsewhere = branches.iter().filter(|branch| !branch.properties.contains_key(name));
        let free = elsewhere.into_iter().any(|branch| branch.additional != Additional::Closed);
        let Some(first) = said.first() else { continue };
        let property = match said.as_slice() {
            _ if free => Node { description: first.description.clone(), ..Node::anything(&first.at) },
            [only] => (*only).clone(),
            several if several.iter().all(|one| one.without_place() == first.without_place()) => (*first).clone(),
            several => Node {
                description: first.description.clone(),
                any_of: several.iter().map(|one| (*one).clone()).collect(),
                ..Node::anything(&first.at)
            },
        };
        together.insert(name.clone(), property);
    }
    together
}

impl Node {
    fn without_place(&self) -> Self {
        Self { at: String::new(), ..self.clone() }
    }
}

impl Bounds {
    fn both(mut self, other: Self, at: &str, losses: &mut Vec<Dropped>) -> Self {
        let mut lost = |keyword: &'static str| losses.push(Dropped::new(at, keyword));
        self.min_length = self.min_length.max(other.min_length);
        self.min_items = self.min_items.max(other.min_items);
        self.max_length = smaller(self.max_length, other.max_length);
        self.max_items = smaller(self.max_items, other.max_items);
        self.unique_items = self.unique_items.max(other.unique_items);
        let rest = [
            (choose(&mut self.pattern, other.pattern), "pattern"),
            (choose(&mut self.format, other.format), "format"),
            (choose(&mut self.minimum, other.minimum), "minimum"),
            (choose(&mut self.maximum, other.maximum), "maximum"),
            (choose(&mut self.exclusive_minimum, other.exclusive_minimum), "exclusiveMinimum"),
            (choose(&mut self.exclusive_maximum, other.exclusive_maximum), "exclusiveMaximum"),
            (choose(&mut self.multiple_of, other.multiple_of), "multipleOf"),
        ];
        for (chosen, keyword) in rest {
            if chosen == Chosen::FirstOfTwo {
                lost(keyword);
            }
        }
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chosen {
    Only,
    FirstOfTwo,
}

fn choose<T: PartialEq>(mine: &mut Option<T>, others: Option<T>) -> Chosen {
    match (mine.as_ref(), others) {
        (None, others) => {
            *mine = others;
            Chosen::Only
        }
        (Some(first), Some(second)) if *first != second => Chosen::FirstOfTwo,
        (Some(_), _) => Chosen::Only,
    }
}

fn smaller(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
