//! From a JSON document to a [`Node`]: references are expanded, `allOf` is merged, what no wire accepts is left out.
//!
//! The document may come from anybody, so every keyword may have a value of any kind, references may be circular, and definitions that
//! use each other twice grow without measure. Reading always ends, in a schema that accepts at least what the document does.

use serde_json::{Map, Number, Value};

use super::loss::Dropped;
use super::node::{Additional, Bounds, Node, Types};

/// Deepest nesting that is written out.
const MAX_DEPTH: usize = 32;
/// Most schemas of the outcome. Beyond it, everything is accepted.
const MAX_NODES: usize = 2_000;

/// Assertions that no wire of ours accepts everywhere.
const UNSUPPORTED: &[&str] = &[
    "not",
    "if",
    "then",
    "else",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "contains",
    "minContains",
    "maxContains",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "$dynamicRef",
    "$recursiveRef",
];

/// Reads a document, with what was left out.
pub(super) fn read(document: &Value) -> (Node, Vec<Dropped>) {
    let mut reader = Reader { document, references: Vec::new(), nodes: 0, losses: Vec::new() };
    let node = reader.schema(document, "", 0);
    (node, reader.losses)
}

struct Reader<'a> {
    document: &'a Value,
    /// The references that are being expanded, outermost first.
    references: Vec<&'a str>,
    nodes: usize,
    losses: Vec<Dropped>,
}

impl<'a> Reader<'a> {
    fn lose(&mut self, at: &str, keyword: &'static str) {
        self.losses.push(Dropped::new(at, keyword));
    }

    fn schema(&mut self, schema: &'a Value, at: &str, depth: usize) -> Node {
        self.nodes += 1;
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            self.lose(at, "depth");
            return Node::anything(at);
        }
        match schema {
            Value::Bool(true) => Node::anything(at),
            Value::Bool(false) => Node::nothing(at),
            Value::Object(fields) => self.object(fields, at, depth),
            _ => {
                self.lose(at, "schema");
                Node::anything(at)
            }
        }
    }

    fn object(&mut self, fields: &'a Map<String, Value>, at: &str, depth: usize) -> Node {
        let mut node = self.own(fields, at, depth);
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
            let target = self.expand(reference, at, depth);
            node = self.both(node, target);
        }
        for (index, branch) in list(fields, "allOf").iter().enumerate() {
            let branch = self.schema(branch, &format!("{at}/allOf/{index}"), depth + 1);
            node = self.both(node, branch);
        }
        for keyword in ["anyOf", "oneOf"] {
            let branches = list(fields, keyword);
            if branches.is_empty() {
                continue;
            }
            if keyword == "oneOf" && branches.len() > 1 {
                // That no second one fits is not said.
                self.lose(at, "oneOf");
            }
            let mut read: Vec<Node> = Vec::with_capacity(branches.len());
            for (index, branch) in branches.iter().enumerate() {
                read.push(self.schema(branch, &format!("{at}/{keyword}/{index}"), depth + 1));
            }
            read.retain(|branch| !branch.accepts_nothing());
            node = match read.len() {
                // Nothing fits; it is not for us to say so.
                0 => node,
                1 => match read.pop() {
                    Some(only) => self.both(node, only),
                    None => node,
                },
                _ if read.iter().any(Node::accepts_anything) => node,
                _ => {
                    let alternatives = Node { any_of: read, ..Node::anything(at) };
                    self.both(node, alternatives)
                }
            };
        }
        for keyword in UNSUPPORTED.iter().filter(|keyword| fields.contains_key(**keyword)) {
            self.lose(at, keyword);
        }
        node
    }

    /// `false` on either side accepts nothing, whatever else is said.
    fn both(&mut self, one: Node, other: Node) -> Node {
        if one.accepts_nothing() {
            one
        } else if other.accepts_nothing() {
            other
        } else {
            one.both(other, &mut self.losses)
        }
    }

    /// What a reference names; anything, if that is itself, elsewhere or nothing.
    fn expand(&mut self, reference: &'a str, at: &str, depth: usize) -> Node {
        let target = reference.strip_prefix('#').and_then(|pointer| self.document.pointer(pointer));
        match target {
            Some(target) if !self.references.contains(&reference) => {
                self.references.push(reference);
                let node = self.schema(target, at, depth + 1);
                self.references.pop();
                node
            }
            _ => {
                self.lose(at, "$ref");
                Node::anything(at)
            }
        }
    }

    /// What is said in the schema itself.
    fn own(&mut self, fields: &'a Map<String, Value>, at: &str, depth: usize) -> Node {
        let types = self.types(fields, at);
        let mut node = Node {
            description: fields.get("description").and_then(Value::as_str).map(str::to_owned),
            default: fields.get("default").cloned(),
            types,
            choices: self.choices(fields, at),
            required: list(fields, "required").iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            bounds: self.bounds(fields, at),
            ..Node::anything(at)
        };
        if let Some(properties) = self.named_schemas(fields, "properties", at) {
            for (name, schema) in properties {
                let property = self.schema(schema, &format!("{at}/properties/{}", escaped(name)), depth + 1);
                node.properties.insert(name.clone(), property);
            }
        }
        node.additional = self.additional(fields, at, depth);
        self.items(fields, at, depth, &mut node);
        node
    }

    fn types(&mut self, fields: &Map<String, Value>, at: &str) -> Types {
        let nullable = fields.get("nullable") == Some(&Value::Bool(true));
        let named = match fields.get("type") {
            None => return Types::ALL,
            Some(Value::String(name)) => Types::named(name),
            Some(Value::Array(names)) => names
                .iter()
                .map(|name| name.as_str().and_then(Types::named))
                .try_fold(Types::NONE, |all, one| Some(all.or(one?)))
                .filter(|types| *types != Types::NONE),
            Some(_) => None,
        };
        match named {
            Some(types) if nullable => types.or(Types::NULL),
            Some(types) => types,
            None => {
                self.lose(at, "type");
                Types::ALL
            }
        }
    }

    fn choices(&mut self, fields: &Map<String, Value>, at: &str) -> Option<Vec<Value>> {
        if let Some(only) = fields.get("const") {
            return Some(vec![only.clone()]);
        }
        match fields.get("enum") {
            None => None,
            Some(Value::Array(choices)) if !choices.is_empty() => {
                let mut distinct: Vec<Value> = Vec::with_capacity(choices.len());
                for choice in choices {
                    if !distinct.contains(choice) {
                        distinct.push(choice.clone());
                    }
                }
                Some(distinct)
            }
            Some(_) => {
                self.lose(at, "enum");
                None
            }
        }
    }

    fn named_schemas(
        &mut self,
        fields: &'a Map<String, Value>,
        keyword: &'static str,
        at: &str,
    ) -> Option<&'a Map<String, Value>> {
        match fields.get(keyword) {
            None => None,
            Some(Value::Object(schemas)) => Some(schemas),
            Some(_) => {
                self.lose(at, keyword);
                None
            }
        }
    }

    /// What other properties may be. Patterns of names are not said, so whatever fits one of them may have any name.
    fn additional(&mut self, fields: &'a Map<String, Value>, at: &str, depth: usize) -> Additional {
        let inner = format!("{at}/additionalProperties");
        let said = match fields.get("additionalProperties") {
            None => Additional::Unsaid,
            Some(schema) => match self.schema(schema, &inner, depth + 1) {
                node if node.accepts_nothing() => Additional::Closed,
                node if node.accepts_anything() => Additional::Open,
                node => Additional::Schema(Box::new(node)),
            },
        };
        let Some(patterns) = self.named_schemas(fields, "patternProperties", at) else { return said };
        if patterns.is_empty() {
            return said;
        }
        self.lose(at, "patternProperties");
        let mut any_of: Vec<Node> = match said {
            Additional::Unsaid | Additional::Open => return said,
            Additional::Closed => Vec::new(),
            Additional::Schema(node) => vec![*node],
        };
        for (pattern, schema) in patterns {
            any_of.push(self.schema(schema, &format!("{at}/patternProperties/{}", escaped(pattern)), depth + 1));
        }
        any_of.retain(|node| !node.accepts_nothing());
        if any_of.iter().any(Node::accepts_anything) {
            return Additional::Open;
        }
        match any_of.len() {
            0 => Additional::Closed,
            1 => any_of.pop().map_or(Additional::Open, |only| Additional::Schema(Box::new(only))),
            _ => Additional::Schema(Box::new(Node { any_of, ..Node::anything(&inner) })),
        }
    }

    /// The items of a list, also as older drafts have them: `items` as a list, the rest in `additionalItems`.
    fn items(&mut self, fields: &'a Map<String, Value>, at: &str, depth: usize, node: &mut Node) {
        let (prefix, rest, keyword) = match (fields.get("prefixItems"), fields.get("items")) {
            (None, Some(Value::Array(prefix))) => (prefix.as_slice(), fields.get("additionalItems"), "items"),
            (Some(Value::Array(prefix)), rest) => (prefix.as_slice(), rest, "prefixItems"),
            (Some(_), rest) => {
                self.lose(at, "prefixItems");
                (&[][..], rest, "prefixItems")
            }
            (None, rest) => (&[][..], rest, "prefixItems"),
        };
        for (index, schema) in prefix.iter().enumerate() {
            let item = self.schema(schema, &format!("{at}/{keyword}/{index}"), depth + 1);
            node.prefix.push(item);
        }
        if let Some(rest) = rest {
            let rest = self.schema(rest, &format!("{at}/items"), depth + 1);
            if rest.accepts_nothing() {
                // No more items than the beginning has.
                let most = u64::try_from(node.prefix.len()).unwrap_or(u64::MAX);
                node.bounds.max_items = Some(node.bounds.max_items.map_or(most, |known| known.min(most)));
            } else if !rest.accepts_anything() || rest.description.is_some() {
                node.items = Some(Box::new(rest));
            }
        }
    }

    fn bounds(&mut self, fields: &Map<String, Value>, at: &str) -> Bounds {
        Bounds {
            min_length: self.count(fields, "minLength", at),
            max_length: self.count(fields, "maxLength", at),
            pattern: self.pattern(fields, at),
            format: fields.get("format").and_then(Value::as_str).map(str::to_owned),
            min_items: self.count(fields, "minItems", at),
            max_items: self.count(fields, "maxItems", at),
            unique_items: fields.get("uniqueItems").and_then(Value::as_bool).filter(|unique| *unique),
            minimum: self.number(fields, "minimum", at),
            maximum: self.number(fields, "maximum", at),
            exclusive_minimum: self.number(fields, "exclusiveMinimum", at),
            exclusive_maximum: self.number(fields, "exclusiveMaximum", at),
            multiple_of: self
                .number(fields, "multipleOf", at)
                .filter(|number| number.as_f64().is_some_and(|number| number > 0.0)),
        }
    }

    fn count(&mut self, fields: &Map<String, Value>, keyword: &'static str, at: &str) -> Option<u64> {
        let value = fields.get(keyword)?;
        let count = value.as_u64().or_else(|| whole(value.as_f64()?));
        if count.is_none() {
            self.lose(at, keyword);
        }
        count
    }

    fn number(&mut self, fields: &Map<String, Value>, keyword: &'static str, at: &str) -> Option<Number> {
        match fields.get(keyword)? {
            Value::Number(number) => Some(number.clone()),
            // An older draft says with a boolean that the bound itself is excluded.
            _ => {
                self.lose(at, keyword);
                None
            }
        }
    }

    /// Only patterns of the plain kind: a vendor that cannot read one refuses the whole request.
    fn pattern(&mut self, fields: &Map<String, Value>, at: &str) -> Option<String> {
        let pattern = fields.get("pattern")?.as_str().unwrap_or("(");
        if regex_syntax::parse(pattern).is_ok() {
            return Some(pattern.to_owned());
        }
        self.lose(at, "pattern");
        None
    }
}

/// A count that somebody wrote as a fraction of nothing, such as `10.0`.
fn whole(number: f64) -> Option<u64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be a small whole number")]
    (number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number)).then_some(number as u64)
}

fn list<'a>(fields: &'a Map<String, Value>, keyword: &str) -> &'a [Value] {
    fields.get(keyword).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// A name as part of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
