//! What it may cost to check a value against a schema, known before anything is checked.
//!
//! A validator looks at one value once for every schema that applies to it, and references multiply: thirty definitions that each name the next one twice are
//! two kilobytes of text and a billion looks, each of which may leave a complaint in memory. The validator has no fuel, so the looks are counted beforehand.
//!
//! The schema is a graph. An edge either stays at the value (`allOf`, `$ref`, `if`, …) or leads one level below it (`properties`, `items`, …). For each depth
//! we keep how many looks *one* value at that depth may get from the root; a check then multiplies by how many values there are at each depth. The figure is a
//! bound, not a forecast: alternatives that fail early cost less.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

/// Deepest value that is counted; the reader of JSON stops at the same depth.
const MAX_VALUE_DEPTH: usize = 128;
/// Bytes of a text that weigh as much as another value: patterns and lengths read all of it.
const TEXT_UNIT: usize = 64;

/// The bound of one schema.
pub(super) struct SchemaCost {
    /// Looks at one value, by its depth; 0 and no more entries where nothing of the schema reaches.
    looks: Vec<u64>,
    /// How deep the looks are nested in each other, for values of at least this depth.
    nested: Vec<u64>,
}

/// What one check may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cost {
    /// Looks at values.
    pub(super) looks: u64,
    /// How deep they are nested in each other; each takes some of the stack.
    pub(super) nested: u64,
}

impl SchemaCost {
    /// Counts; the error says why the schema cannot be used.
    pub(super) fn of(schema: &Value) -> Result<Self, String> {
        let places = Places::of(schema)?.places;
        let order = children_first(&places)?;
        let (mut looks, mut nested) = (Vec::new(), Vec::new());
        let mut above = vec![Cost { looks: 0, nested: 0 }; places.len()];
        for depth in 0..=MAX_VALUE_DEPTH {
            let mut here = vec![Cost { looks: 0, nested: 0 }; places.len()];
            for &at in &order {
                let Some(place) = places.get(at) else { continue };
                let cost = place.cost(depth, &here, &above);
                if let Some(slot) = here.get_mut(at) {
                    *slot = cost;
                }
            }
            let root = here.first().copied().unwrap_or(Cost { looks: 0, nested: 0 });
            looks.push(root.looks);
            nested.push(root.nested);
            if here.iter().all(|cost| cost.looks == 0) {
                break;
            }
            above = here;
        }
        Ok(Self { looks, nested })
    }

    /// The cost of the smallest value.
    pub(super) fn least(&self) -> Cost {
        let first = |list: &[u64]| list.first().copied().unwrap_or(0);
        Cost { looks: first(&self.looks), nested: first(&self.nested) }
    }

    /// The cost of this value.
    pub(super) fn of_value(&self, value: &Value) -> Cost {
        let (mut looks, mut deepest) = (0_u64, 0);
        let mut open = vec![(value, 0, 0)];
        while let Some((value, depth, name)) = open.pop() {
            let each = match self.looks.get(depth) {
                Some(0) => continue,
                Some(each) => *each,
                // Deeper than was counted.
                None if self.looks.last().is_some_and(|last| *last == 0) => continue,
                None => u64::MAX,
            };
            deepest = deepest.max(depth);
            let text = name + value.as_str().map_or(0, str::len);
            looks = looks.saturating_add(each.saturating_mul((1 + text / TEXT_UNIT) as u64));
            match value {
                Value::Array(values) => open.extend(values.iter().map(|value| (value, depth + 1, 0))),
                Value::Object(members) => {
                    open.extend(members.iter().map(|(name, value)| (value, depth + 1, name.len())));
                }
                _ => {}
            }
        }
        let nested = self.nested.get(deepest).or(self.nested.last()).copied().unwrap_or(0);
        Cost { looks, nested }
    }
}

/// One schema within the schema.
#[derive(Default)]
struct Place {
    /// What looking at a value costs without the schemas below.
    weight: u64,
    /// How often everything is looked at: the keywords about what nothing else has evaluated ask all others again.
    times: u64,
    /// Schemas for the same value.
    here: Vec<usize>,
    /// Schemas for values below, all of which may apply to one of them.
    below: Vec<usize>,
    /// Schemas for values below, of each list of which at most one applies.
    one_below: Vec<Vec<usize>>,
}

impl Place {
    fn cost(&self, depth: usize, here: &[Cost], above: &[Cost]) -> Cost {
        let looks = |costs: &[Cost], at: &usize| costs.get(*at).map_or(0, |cost| cost.looks);
        let nested = |costs: &[Cost], at: &usize| costs.get(*at).map_or(0, |cost| cost.nested);
        let mut sum = self.here.iter().map(|at| looks(here, at)).fold(0, u64::saturating_add);
        let mut most = self.here.iter().map(|at| nested(here, at)).max().unwrap_or(0);
        if depth == 0 {
            sum = sum.saturating_add(self.weight);
        } else {
            let all = self.below.iter().map(|at| looks(above, at));
            let one = self.one_below.iter().map(|list| list.iter().map(|at| looks(above, at)).max().unwrap_or(0));
            sum = all.chain(one).fold(sum, u64::saturating_add);
            let deeper = self.below.iter().chain(self.one_below.iter().flatten()).map(|at| nested(above, at));
            most = deeper.fold(most, u64::max);
        }
        Cost { looks: sum.saturating_mul(self.times), nested: most.saturating_add(1) }
    }
}

/// All schemas that the root leads to; the root is the first.
struct Places<'a> {
    root: &'a Value,
    anchors: BTreeMap<&'a str, Vec<&'a Value>>,
    numbers: HashMap<*const Value, usize>,
    waiting: Vec<&'a Value>,
    places: Vec<Place>,
}

impl<'a> Places<'a> {
    fn of(root: &'a Value) -> Result<Self, String> {
        let mut all =
            Self { root, anchors: BTreeMap::new(), numbers: HashMap::new(), waiting: Vec::new(), places: Vec::new() };
        all.find_anchors(root);
        all.number(root);
        while let Some(schema) = all.waiting.pop() {
            let at = all.number(schema);
            let place = all.read(schema)?;
            if let Some(slot) = all.places.get_mut(at) {
                *slot = place;
            }
        }
        Ok(all)
    }

    /// Depth is bounded before.
    fn find_anchors(&mut self, value: &'a Value) {
        match value {
            Value::Array(values) => values.iter().for_each(|value| self.find_anchors(value)),
            Value::Object(members) => {
                for key in ["$anchor", "$dynamicAnchor"] {
                    if let Some(Value::String(name)) = members.get(key) {
                        self.anchors.entry(name).or_default().push(value);
                    }
                }
                members.values().for_each(|value| self.find_anchors(value));
            }
            _ => {}
        }
    }

    /// The number of a schema; a new one is read later.
    fn number(&mut self, schema: &'a Value) -> usize {
        let next = self.places.len();
        let number = *self.numbers.entry(std::ptr::from_ref(schema)).or_insert(next);
        if number == next {
            self.places.push(Place::default());
            self.waiting.push(schema);
        }
        number
    }

    fn read(&mut self, schema: &'a Value) -> Result<Place, String> {
        let mut place = Place { weight: 1, times: 1, ..Place::default() };
        let Value::Object(keywords) = schema else { return Ok(place) };
        for (keyword, value) in keywords {
            match keyword.as_str() {
                "not" | "if" | "then" | "else" => place.here.push(self.number(value)),
                "allOf" | "anyOf" | "oneOf" => place.here.extend(self.listed(value)),
                "dependentSchemas" | "dependencies" => place.here.extend(self.named(value)),
                "$ref" | "$dynamicRef" | "$recursiveRef" => place.here.extend(self.target(keyword, value)?),
                "properties" => {
                    let list = self.named(value);
                    place.one_below.push(list);
                }
                "prefixItems" => {
                    let list = self.listed(value);
                    place.one_below.push(list);
                }
                "patternProperties" => place.below.extend(self.named(value)),
                "items" | "additionalItems" | "contains" | "additionalProperties" | "propertyNames" => {
                    place.below.push(self.number(value));
                }
                "unevaluatedItems" | "unevaluatedProperties" => {
                    place.below.push(self.number(value));
                    place.times += 2;
                }
                "enum" | "required" => {
                    place.weight += value.as_array().map_or(0, |values| values.len() as u64);
                }
                _ => {}
            }
        }
        Ok(place)
    }

    fn listed(&mut self, value: &'a Value) -> Vec<usize> {
        value.as_array().into_iter().flatten().map(|schema| self.number(schema)).collect()
    }

    fn named(&mut self, value: &'a Value) -> Vec<usize> {
        value.as_object().into_iter().flat_map(|map| map.values()).map(|schema| self.number(schema)).collect()
    }

    /// Where a reference leads: the whole, a place in it, or a name; an ambiguous name counts for all it may mean.
    fn target(&mut self, keyword: &str, value: &'a Value) -> Result<Vec<usize>, String> {
        let fragment = value.as_str().and_then(|target| target.strip_prefix('#')).unwrap_or_default();
        let fragment = unescaped(fragment);
        let found: Vec<&'a Value> = match fragment.as_str() {
            "" => vec![self.root],
            pointer if pointer.starts_with('/') => self.root.pointer(pointer).into_iter().collect(),
            name => self.anchors.get(name).cloned().unwrap_or_default(),
        };
        if found.is_empty() {
            return Err(format!("`{keyword}` refers to `#{fragment}`, which does not exist"));
        }
        Ok(found.into_iter().map(|schema| self.number(schema)).collect())
    }
}

/// A fragment of an address without its percent signs.
fn unescaped(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = match (first, after.first_chunk::<2>()) {
            (b'%', Some(digits)) => {
                std::str::from_utf8(digits).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok())
            }
            _ => None,
        };
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// An order in which every schema comes after those that it has for the same value. There is none where one leads back to itself: it would be looked at for ever.
fn children_first(places: &[Place]) -> Result<Vec<usize>, String> {
    let mut left: Vec<usize> = places.iter().map(|place| place.here.len()).collect();
    let mut parents: Vec<Vec<usize>> = vec![Vec::new(); places.len()];
    for (at, place) in places.iter().enumerate() {
        for child in &place.here {
            if let Some(list) = parents.get_mut(*child) {
                list.push(at);
            }
        }
    }
    let mut order: Vec<usize> = left.iter().enumerate().filter(|(_, left)| **left == 0).map(|(at, _)| at).collect();
    let mut next = 0;
    while let Some(&done) = order.get(next) {
        next += 1;
        for parent in parents.get(done).into_iter().flatten() {
            if let Some(left) = left.get_mut(*parent) {
                *left -= 1;
                if *left == 0 {
                    order.push(*parent);
                }
            }
        }
    }
    if order.len() == places.len() { Ok(order) } else { Err("it refers to itself for the same value".to_owned()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn looks(schema: &Value, value: &Value) -> u64 {
        SchemaCost::of(schema).unwrap().of_value(value).looks
    }

    #[test]
    fn a_plain_schema_costs_one_look_a_value() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"items": {}}}});
        assert_eq!(looks(&schema, &json!({})), 1);
        assert_eq!(looks(&schema, &json!({"a": "x", "b": [1, 2, 3]})), 1 + 2 + 3);
        assert_eq!(looks(&schema, &json!({"a": "x".repeat(640)})), 1 + 11);
        assert_eq!(looks(&json!({"required": ["a", "b"], "enum": [1]}), &json!({})), 4);
        assert_eq!(looks(&json!(true), &json!([[[1]]])), 1, "what nothing of the schema reaches costs nothing");
    }

    #[test]
    fn references_multiply() {
        let mut definitions = serde_json::Map::new();
        for level in 0..20 {
            let next = json!({"$ref": format!("#/$defs/a{}", level + 1)});
            definitions.insert(format!("a{level}"), json!({"anyOf": [next, next]}));
        }
        definitions.insert("a20".to_owned(), json!({"type": "string"}));
        let schema = json!({"$ref": "#/%24defs/a0", "$defs": definitions});
        assert!(looks(&schema, &json!({})) > 1 << 20);
        let tree = json!({"$anchor": "t", "anyOf": [{"items": {"$ref": "#t"}}, {"items": {"$ref": "#t"}}]});
        let mut value = json!([]);
        let mut before = looks(&tree, &value);
        for _ in 0..10 {
            value = json!([value]);
            let now = looks(&tree, &value);
            assert!(now >= before * 2 - 1, "{before} {now}");
            before = now;
        }
        let nested = SchemaCost::of(&tree).unwrap().of_value(&value).nested;
        assert!(nested > 20, "{nested}");
    }

    #[test]
    fn what_leads_back_to_itself_or_nowhere_is_refused() {
        for bad in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"not": {"$ref": "#"}}]}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
            json!({"$dynamicRef": "#x", "$dynamicAnchor": "x"}),
            json!({"$ref": "#/$defs/missing"}),
            json!({"$ref": "#missing"}),
        ] {
            assert!(SchemaCost::of(&bad).is_err(), "{bad}");
        }
        SchemaCost::of(&json!({"properties": {"child": {"$ref": "#"}}})).unwrap();
    }

    #[test]
    fn a_fragment_may_be_escaped() {
        assert_eq!(unescaped("/%24defs/a%2f"), "/$defs/a/");
        assert_eq!(unescaped("%"), "%");
        assert_eq!(unescaped("%zz%4"), "%zz%4");
    }
}
