//! From a [`Node`] to a JSON Schema in a dialect.

use serde_json::{Map, Number, Value, json};

use super::dialect::{Accepts, Anything, Keyword, SchemaDialect};
use super::loss::Dropped;
use super::node::{Additional, Bounds, Node, Types};

/// The schema as the dialect has it.
pub(super) fn write(node: &Node, dialect: SchemaDialect, losses: &mut Vec<Dropped>) -> Value {
    Writer { accepts: dialect.accepts(), losses }.node(node)
}

pub(super) struct Writer<'l> {
    pub(super) accepts: Accepts,
    pub(super) losses: &'l mut Vec<Dropped>,
}

impl Writer<'_> {
    pub(super) fn lose(&mut self, node: &Node, keyword: &'static str) {
        self.losses.push(Dropped::new(&node.at, keyword));
    }

    fn node(&mut self, node: &Node) -> Value {
        let mut fields = Map::new();
        if let Some(description) = &node.description {
            fields.insert("description".to_owned(), description.as_str().into());
        }
        if let Some(default) = node.default.as_ref().filter(|_| self.accepts.takes(Keyword::Default)) {
            fields.insert("default".to_owned(), default.clone());
        }
        if node.accepts_nothing() {
            self.lose(node, "false");
            self.anything(&mut fields);
            return Value::Object(fields);
        }
        let beside = node.types != Types::ALL || !node.asserts_only_types();
        if !node.any_of.is_empty() && (!beside || self.accepts.takes(Keyword::AnyOfBeside)) {
            self.alternatives(node, &node.any_of, &mut fields);
            if !beside {
                return Value::Object(fields);
            }
        } else if !node.any_of.is_empty() {
            if node.choices.is_none() && !node.has_structure() {
                // What stands beside the alternatives holds for each of them.
                let base = Node { description: None, default: None, any_of: Vec::new(), ..node.clone() };
                let each = node.any_of.iter().map(|branch| branch.clone().both(base.clone(), self.losses)).collect();
                let each: Vec<Node> = each;
                self.alternatives(node, &each, &mut fields);
                return Value::Object(fields);
            }
            self.lose(node, "anyOf");
        }
        self.assertions(node, &mut fields);
        Value::Object(fields)
    }

    /// Alternatives of which one came out without any assertion say nothing together either.
    fn alternatives(&mut self, node: &Node, branches: &[Node], fields: &mut Map<String, Value>) {
        let written: Vec<Value> = branches.iter().map(|branch| self.node(branch)).collect();
        if written.iter().any(says_nothing) {
            self.lose(node, "anyOf");
            self.anything(fields);
        } else {
            fields.insert("anyOf".to_owned(), written.into());
        }
    }

    fn anything(&self, fields: &mut Map<String, Value>) {
        if self.accepts.anything == Anything::AllTypes && !fields.is_empty() {
            fields.insert("type".to_owned(), json!(Types::ALL.names()));
        }
    }

    fn assertions(&mut self, node: &Node, fields: &mut Map<String, Value>) {
        let choices = self.choices(node);
        let mut types = node.types;
        if let Some(choices) = &choices
            && types == Types::ALL
            && choices.iter().all(Value::is_string)
        {
            types = Types::STRING;
        }
        if types.has(Types::OBJECT) {
            self.object(node, fields);
        }
        if types.has(Types::ARRAY) {
            self.array(node, fields);
        }
        let structured = ["properties", "additionalProperties", "items", "prefixItems"]
            .iter()
            .any(|name| fields.contains_key(*name));
        fields.extend(choices.map(|choices| ("enum".to_owned(), Value::Array(choices))));
        self.scalars(node, fields);
        match types.names().as_slice() {
            // Objects and lists are known by what is said about them; that keeps what else was allowed.
            _ if types == Types::ALL => {
                if !structured && !fields.contains_key("enum") {
                    self.anything(fields);
                }
            }
            [only] => {
                fields.insert("type".to_owned(), (*only).into());
            }
            several => {
                fields.insert("type".to_owned(), json!(several));
            }
        }
    }

    /// The choices that are of an accepted type.
    pub(super) fn choices(&mut self, node: &Node) -> Option<Vec<Value>> {
        let choices = node.choices.as_ref()?;
        let fitting: Vec<Value> = choices.iter().filter(|one| node.types.has(Types::of(one))).cloned().collect();
        if fitting.is_empty() {
            self.lose(node, "enum");
            return None;
        }
        Some(fitting)
    }

    fn object(&mut self, node: &Node, fields: &mut Map<String, Value>) {
        let mut properties = Map::new();
        for (name, property) in &node.properties {
            // A property that may not be there is not mentioned.
            if property.accepts_nothing() {
                self.lose(property, "false");
                continue;
            }
            properties.insert(name.clone(), self.node(property));
        }
        let required = self.required(node, &properties);
        if !required.is_empty() {
            fields.insert("required".to_owned(), required.into());
        }
        // Without any, a list would leave the empty object alone in a grammar; of a closed object that is what is meant.
        let closed = node.types == Types::OBJECT && node.additional == Additional::Closed;
        if !properties.is_empty() || closed {
            fields.insert("properties".to_owned(), Value::Object(properties));
        }
        match &node.additional {
            Additional::Unsaid => {}
            Additional::Open => {
                fields.insert("additionalProperties".to_owned(), true.into());
            }
            Additional::Closed => {
                fields.insert("additionalProperties".to_owned(), false.into());
            }
            Additional::Schema(schema) => {
                let written = self.node(schema);
                let value = if says_nothing(&written) { true.into() } else { written };
                fields.insert("additionalProperties".to_owned(), value);
            }
        }
    }

    /// The required names that are properties: servers look each up.
    pub(super) fn required(&mut self, node: &Node, properties: &Map<String, Value>) -> Vec<Value> {
        let known: Vec<Value> = node
            .required
            .iter()
            .filter(|name| properties.contains_key(*name))
            .map(|name| name.as_str().into())
            .collect();
        if known.len() < node.required.len() {
            self.lose(node, "required");
        }
        known
    }

    fn array(&mut self, node: &Node, fields: &mut Map<String, Value>) {
        if !node.prefix.is_empty() && self.accepts.takes(Keyword::PrefixItems) {
            let prefix: Vec<Value> = node.prefix.iter().map(|item| self.node(item)).collect();
            fields.insert("prefixItems".to_owned(), prefix.into());
            if let Some(items) = &node.items {
                let items = self.node(items);
                fields.insert("items".to_owned(), items);
            }
        } else {
            let items = self.any_item(node).map_or_else(|| json!({}), |items| self.node(&items));
            // Some want it to be there, though it says nothing; elsewhere it is left out then.
            if items != json!({}) || node.types == Types::ARRAY {
                fields.insert("items".to_owned(), items);
            }
        }
        let Bounds { min_items, max_items, unique_items, .. } = node.bounds;
        let (least, most) =
            self.counts(node, (min_items, "minItems", Keyword::MinItems), (max_items, "maxItems", Keyword::MaxItems));
        fields.extend(least.map(|least| ("minItems".to_owned(), least.into())));
        fields.extend(most.map(|most| ("maxItems".to_owned(), most.into())));
        if unique_items.is_some() {
            if self.accepts.takes(Keyword::UniqueItems) {
                fields.insert("uniqueItems".to_owned(), true.into());
            } else {
                self.lose(node, "uniqueItems");
            }
        }
    }

    /// One schema for all items, those of the beginning included; none if anything goes.
    pub(super) fn any_item(&mut self, node: &Node) -> Option<Node> {
        if node.prefix.is_empty() {
            return node.items.as_deref().cloned();
        }
        self.lose(node, "prefixItems");
        let ends =
            node.bounds.max_items.is_some_and(|most| usize::try_from(most).is_ok_and(|most| most <= node.prefix.len()));
        let rest = match &node.items {
            Some(items) => Some((**items).clone()),
            None if ends => None,
            None => return None,
        };
        let mut any_of: Vec<Node> = Vec::new();
        for item in node.prefix.iter().chain(rest.as_ref()).filter(|item| !item.accepts_nothing()) {
            if item.accepts_anything() {
                return None;
            }
            if !any_of.contains(item) {
                any_of.push(item.clone());
            }
        }
        match any_of.len() {
            0 => None,
            1 => any_of.pop(),
            _ => Some(Node { any_of, ..Node::anything(&format!("{}/prefixItems", node.at)) }),
        }
    }

    /// A pair of counts, as far as the dialect takes them and they make sense together.
    pub(super) fn counts(
        &mut self,
        node: &Node,
        least: (Option<u64>, &'static str, Keyword),
        most: (Option<u64>, &'static str, Keyword),
    ) -> (Option<u64>, Option<u64>) {
        let impossible = matches!((least.0, most.0), (Some(least), Some(most)) if least > most);
        let limit = self.accepts.most_repeated;
        let mut keep = |(count, name, keyword): (Option<u64>, &'static str, Keyword)| {
            let kept = count.filter(|count| {
                self.accepts.takes(keyword) && !impossible && limit.is_none_or(|limit| *count <= limit)
            });
            if kept != count {
                self.lose(node, name);
            }
            // To say that there is at least nothing says nothing.
            kept.filter(|count| *count > 0 || name.starts_with("max"))
        };
        (keep(least), keep(most))
    }

    /// What is said about texts and numbers.
    pub(super) fn scalars(&mut self, node: &Node, fields: &mut Map<String, Value>) {
        let bounds = &node.bounds;
        let (least, most) = self.counts(
            node,
            (bounds.min_length, "minLength", Keyword::MinLength),
            (bounds.max_length, "maxLength", Keyword::MaxLength),
        );
        fields.extend(least.map(|least| ("minLength".to_owned(), least.into())));
        fields.extend(most.map(|most| ("maxLength".to_owned(), most.into())));
        if let Some(pattern) = &bounds.pattern {
            if self.accepts.takes(Keyword::Pattern) {
                fields.insert("pattern".to_owned(), pattern.as_str().into());
            } else {
                self.lose(node, "pattern");
            }
        }
        if let Some(format) = &bounds.format {
            if self.accepts.takes(Keyword::Format) && self.accepts.formats.contains(&format.as_str()) {
                fields.insert("format".to_owned(), format.as_str().into());
            } else {
                self.lose(node, "format");
            }
        }
        self.range(node, fields);
    }

    fn range(&mut self, node: &Node, fields: &mut Map<String, Value>) {
        let bounds = &node.bounds;
        let mut minimum = bounds.minimum.clone();
        let mut maximum = bounds.maximum.clone();
        let mut exclusive_minimum = bounds.exclusive_minimum.clone();
        let mut exclusive_maximum = bounds.exclusive_maximum.clone();
        // The same in words that more servers know.
        if node.types.without(Types::NULL) == Types::INTEGER {
            if minimum.is_none() && !self.accepts.takes(Keyword::ExclusiveMinimum) {
                minimum =
                    exclusive_minimum.as_ref().and_then(Number::as_i64).and_then(|n| n.checked_add(1)).map(Into::into);
                exclusive_minimum = exclusive_minimum.filter(|_| minimum.is_none());
            }
            if maximum.is_none() && !self.accepts.takes(Keyword::ExclusiveMaximum) {
                maximum =
                    exclusive_maximum.as_ref().and_then(Number::as_i64).and_then(|n| n.checked_sub(1)).map(Into::into);
                exclusive_maximum = exclusive_maximum.filter(|_| maximum.is_none());
            }
        }
        let value = |number: &Option<Number>| number.as_ref().and_then(Number::as_f64);
        let impossible = matches!((value(&minimum), value(&maximum)), (Some(least), Some(most)) if least > most);
        let largest = self.accepts.largest_bound;
        let said = [
            (minimum, "minimum", Keyword::Minimum),
            (maximum, "maximum", Keyword::Maximum),
            (exclusive_minimum, "exclusiveMinimum", Keyword::ExclusiveMinimum),
            (exclusive_maximum, "exclusiveMaximum", Keyword::ExclusiveMaximum),
            (bounds.multiple_of.clone(), "multipleOf", Keyword::MultipleOf),
        ];
        for (number, name, keyword) in said {
            let Some(number) = number else { continue };
            let fits = number.as_f64().is_some_and(|value| match largest {
                None => true,
                // Grammars read the bounds of integers as integers.
                Some(largest) => value.abs() <= largest && (value.fract() == 0.0 || node.types.has(Types::NUMBER)),
            });
            if self.accepts.takes(keyword) && fits && !impossible {
                fields.insert(name.to_owned(), Value::Number(number));
            } else {
                self.lose(node, name);
            }
        }
    }
}

/// Whether a written schema accepts anything.
fn says_nothing(schema: &Value) -> bool {
    let all = json!(Types::ALL.names());
    schema.as_object().is_some_and(|fields| {
        fields.iter().all(|(name, value)| match name.as_str() {
            "description" | "default" => true,
            "type" => *value == all,
            _ => false,
        })
    })
}
