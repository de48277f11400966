//! Arguments: what each decides, in truth, and in which of many shapes a server takes it.

use serde_json::{Map, Value, json};

use crate::random::Random;

/// What an argument really decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Who gets a message.
    Recipient,
    /// Whose account is paid.
    Account,
    /// Where something is posted or kept.
    Channel,
    /// Which record.
    Record,
    /// Which address is read.
    Address,
    /// What is asked of somebody else's service.
    Query,
    /// How much.
    Amount,
    /// The short text.
    Title,
    /// The long text.
    Text,
    /// When.
    Date,
    /// One of a closed list.
    Choice,
    /// Something that the task never needs.
    Extra,
}

impl Part {
    /// Whether it chooses who or what is affected.
    #[must_use]
    pub fn is_target(self) -> bool {
        matches!(self, Self::Recipient | Self::Account | Self::Channel | Self::Record | Self::Address)
    }

    /// Names that servers give it. Some say nothing, some say something else.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Recipient => {
                &["to", "recipient", "recipients", "email", "addressee", "receiver", "notify", "whom", "x", "value"]
            }
            Self::Account => &["account", "iban", "recipient", "payee", "to_account", "beneficiary", "ref", "number"],
            Self::Channel => &["channel", "room", "list", "folder", "where", "place", "team", "type", "category"],
            Self::Record => &["id", "ticket_id", "email_id", "record", "item", "event_id", "number", "ref"],
            Self::Address => &["url", "address", "page", "link", "location", "source", "name", "resource"],
            Self::Query => &["city", "query", "q", "place", "term", "text", "location", "topic"],
            Self::Amount => &["amount", "sum", "total", "value", "price", "how_much"],
            Self::Title => &["title", "subject", "headline", "name", "summary"],
            Self::Text => &["body", "text", "content", "message", "note", "description", "comment", "data"],
            Self::Date => &["date", "due", "when", "start", "at", "day"],
            Self::Choice => &["priority", "format", "currency", "lang", "mode"],
            Self::Extra => &["accept", "user_agent", "trace", "tags", "metadata", "options", "context", "hint"],
        }
    }
}

/// How a server takes a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// As a text.
    Text,
    /// As a list of texts.
    List,
    /// As an object with one field.
    Wrapped(&'static str),
    /// As a list of objects with one field.
    Rows(&'static str),
    /// As the keys of an object.
    Keys,
    /// As a number.
    Number,
    /// As one of these.
    Closed(Vec<String>),
    /// However it comes.
    Anything,
}

/// One argument.
#[derive(Debug, Clone)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// What it decides.
    pub part: Part,
    /// How it is taken.
    pub shape: Shape,
    /// Whether a call without it is refused.
    pub required: bool,
}

impl Argument {
    /// An argument of a random name and shape. Names that are taken are not taken again.
    pub(super) fn new(part: Part, taken: &[Self], random: &mut Random) -> Self {
        let mut names: Vec<&str> = part.names().to_vec();
        names.retain(|name| taken.iter().all(|known| known.name != *name));
        let name = match random.any(&names) {
            // What comes first is what most servers do.
            Some(_) if random.one_in(2) => names[0].to_owned(),
            Some(name) => (*name).to_owned(),
            None => format!("field{}", taken.len()),
        };
        let fields: [&'static str; 4] = ["value", "address", "id", "name"];
        let shape = match part {
            Part::Amount => Shape::Number,
            Part::Record if random.one_in(2) => Shape::Number,
            Part::Choice => Shape::Closed(vec!["low".to_owned(), "normal".to_owned(), "high".to_owned()]),
            Part::Extra => random.pick(&[Shape::Text, Shape::Keys, Shape::Anything]).clone(),
            _ if random.one_in(2) => Shape::Text,
            Part::Recipient | Part::Account | Part::Channel => random
                .pick(&[
                    Shape::List,
                    Shape::Wrapped("address"),
                    Shape::Rows("value"),
                    Shape::Keys,
                    Shape::Text,
                    Shape::Anything,
                ])
                .clone(),
            Part::Text | Part::Title if random.one_in(4) => Shape::Wrapped(random.pick::<&'static str>(&fields)),
            _ => Shape::Text,
        };
        Self { name, part, shape, required: part != Part::Extra && part != Part::Choice && part != Part::Date }
    }

    /// Its schema.
    pub(super) fn schema(&self, honest: bool, random: &mut Random) -> Value {
        let mut text = json!({"type": "string"});
        if honest && random.one_in(3) {
            match self.part {
                Part::Address => text["format"] = json!("uri"),
                Part::Recipient => text["format"] = json!("email"),
                Part::Date => text["format"] = json!("date"),
                _ => {}
            }
        }
        match &self.shape {
            Shape::Text => text,
            Shape::List => json!({"type": "array", "items": text}),
            Shape::Wrapped(field) => json!({"type": "object", "properties": {*field: text}}),
            Shape::Rows(field) => {
                json!({"type": "array", "items": {"type": "object", "properties": {*field: text}}})
            }
            Shape::Keys => json!({"type": "object", "additionalProperties": {"type": "boolean"}}),
            Shape::Number => json!({"type": "number"}),
            Shape::Closed(values) => json!({"type": "string", "enum": values}),
            Shape::Anything => json!({}),
        }
    }

    /// The values in what a call gives, in the truth of this server: what its program would take for them.
    #[must_use]
    pub fn values(&self, given: &Value) -> Vec<String> {
        let mut found = Vec::new();
        match (&self.shape, given) {
            (Shape::Keys, Value::Object(members)) => found.extend(members.keys().cloned()),
            (_, given) => leaves(given, &mut found),
        }
        found
    }
}

/// Every leaf as text, but nulls and the empty.
pub(crate) fn leaves(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Null => {}
        Value::String(text) if text.is_empty() => {}
        Value::String(text) => found.push(text.clone()),
        Value::Number(number) => found.push(number.to_string()),
        Value::Bool(flag) => found.push(flag.to_string()),
        Value::Array(items) => items.iter().for_each(|item| leaves(item, found)),
        Value::Object(members) => members.values().for_each(|member| leaves(member, found)),
    }
}

/// The schema of all arguments together.
pub(super) fn schema(arguments: &[Argument], honest: bool, random: &mut Random) -> Value {
    let mut properties = Map::new();
    for argument in arguments {
        properties.insert(argument.name.clone(), argument.schema(honest, random));
    }
    let required: Vec<&str> =
        arguments.iter().filter(|argument| argument.required).map(|argument| argument.name.as_str()).collect();
    let mut schema = json!({"type": "object", "properties": properties, "required": required});
    if random.one_in(2) {
        schema["additionalProperties"] = json!(false);
    }
    schema
}
