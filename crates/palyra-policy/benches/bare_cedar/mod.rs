//! The reference of the measurement: the same request made with the policy language's own library and nothing of ours.
//!
//! Written as somebody would who uses that library well: the schema and the names of types are parsed once, entities are built with their
//! attributes and parents, request and entities are checked against the schema, the authoriser is asked about the whole set. It knows this one
//! request; whoever wants to ask about another has to write it out.

use std::collections::{HashMap, HashSet};
use std::str::FromStr;

use cedar_policy::{
    Authorizer, Context, Entities, Entity, EntityId, EntityTypeName, EntityUid, PolicySet, Request, Response,
    RestrictedExpression, Schema,
};

use super::Failure;

type Fields = Vec<(String, RestrictedExpression)>;

/// What is parsed once.
pub(crate) struct Bare {
    schema: Schema,
    authoriser: Authorizer,
    types: HashMap<&'static str, EntityTypeName>,
}

const TYPES: [&str; 14] = [
    "Action",
    "Agent",
    "Arguments",
    "Confidentiality",
    "Integrity",
    "Provenance",
    "Risk",
    "Role",
    "Run",
    "RunMode",
    "Scope",
    "Session",
    "Tool",
    "User",
];

impl Bare {
    pub(crate) fn new(schema: &str) -> Result<Self, Failure> {
        let types = TYPES.iter().map(|name| Ok((*name, EntityTypeName::from_str(name)?)));
        Ok(Self {
            schema: Schema::from_cedarschema_str(schema)?.0,
            authoriser: Authorizer::new(),
            types: types.collect::<Result<_, Failure>>()?,
        })
    }

    /// The request with its entities: run `01JCQ` of `me` calls `palyra.process.run` with a command, a directory and an input.
    pub(crate) fn request(&self) -> Result<(Request, Entities), Failure> {
        let (run, tool) = (self.uid("Run", "01JCQ"), self.uid("Tool", "palyra.process.run"));
        let (user, agent, session) =
            (self.uid("User", "me"), self.uid("Agent", "default"), self.uid("Session", "01JCP"));
        let attributes = HashMap::from([
            ("owner".to_owned(), reference(&user)),
            ("agent".to_owned(), reference(&agent)),
            ("session".to_owned(), reference(&session)),
        ]);
        let parents = HashSet::from([user, agent, session, self.uid("Role", "admin")]);
        let run_entity = Entity::new(run.clone(), attributes, parents)?;
        let attributes = HashMap::from([
            ("name".to_owned(), text("palyra.process.run")),
            ("clearance".to_owned(), RestrictedExpression::new_long(1)),
        ]);
        let tool_entity = Entity::new(tool.clone(), attributes, HashSet::new())?;
        let arguments = self.uid("Arguments", "call");
        let tags = HashMap::from([
            ("command".to_owned(), self.argument("cargo test --workspace")?),
            ("directory".to_owned(), self.argument(".")?),
            ("input".to_owned(), self.argument("")?),
        ]);
        let arguments_entity = Entity::new_with_tags(arguments.clone(), [], HashSet::new(), tags)?;

        let sinks = RestrictedExpression::new_record([
            ("command".to_owned(), self.sink("command", "cargo test --workspace", None)?),
            ("path".to_owned(), self.sink("directory", ".", Some(true))?),
            ("content".to_owned(), self.sink("input", "", None)?),
        ])?;
        let signals = RestrictedExpression::new_record([
            ("kinds".to_owned(), RestrictedExpression::new_set([])),
            ("confidence_rank".to_owned(), RestrictedExpression::new_long(0)),
            ("at_source".to_owned(), RestrictedExpression::new_bool(false)),
        ])?;
        let context = Context::from_pairs([
            ("tool".to_owned(), reference(&tool)),
            ("scope".to_owned(), self.word("Scope", "external")),
            ("risk".to_owned(), self.word("Risk", "high")),
            ("risk_rank".to_owned(), RestrictedExpression::new_long(2)),
            ("mode".to_owned(), self.word("RunMode", "guarded")),
            ("labels".to_owned(), self.label("user", 2, "private", 2)?),
            ("args".to_owned(), reference(&arguments)),
            ("sinks".to_owned(), sinks),
            ("ask_before".to_owned(), RestrictedExpression::new_bool(false)),
            ("consequential".to_owned(), RestrictedExpression::new_bool(true)),
            ("in_envelope".to_owned(), RestrictedExpression::new_bool(true)),
            ("cleared".to_owned(), RestrictedExpression::new_bool(true)),
            ("workspace".to_owned(), RestrictedExpression::new_string("/w".to_owned())),
            ("contained".to_owned(), RestrictedExpression::new_bool(false)),
            ("signals".to_owned(), signals),
            ("now".to_owned(), RestrictedExpression::new_long(1_763_190_000_000)),
        ])?;
        let action = self.uid("Action", "tool.execute");
        let request = Request::new(run, action, tool, context, Some(&self.schema))?;
        let entities = Entities::from_entities([run_entity, tool_entity, arguments_entity], Some(&self.schema))?;
        Ok((request, entities))
    }

    /// Asks about a request that is ready.
    pub(crate) fn authorise(&self, request: &Request, entities: &Entities, policies: &PolicySet) -> Response {
        self.authoriser.is_authorized(request, policies, entities)
    }

    fn argument(&self, value: &str) -> Result<RestrictedExpression, Failure> {
        let mut fields = self.provenance();
        fields.push(("label".to_owned(), self.label("user", 2, "public", 0)?));
        fields.push(("value".to_owned(), text(value)));
        Ok(RestrictedExpression::new_record(fields)?)
    }

    fn sink(&self, name: &str, value: &str, outside: Option<bool>) -> Result<RestrictedExpression, Failure> {
        let mut fields = self.provenance();
        fields.push(("integrity_rank".to_owned(), RestrictedExpression::new_long(2)));
        fields.push(("confidentiality_rank".to_owned(), RestrictedExpression::new_long(0)));
        fields.push(("names".to_owned(), RestrictedExpression::new_set([text(name)])));
        fields.push(("values".to_owned(), RestrictedExpression::new_set([text(value)])));
        if let Some(outside) = outside {
            fields.push(("outside_workspace".to_owned(), RestrictedExpression::new_bool(outside)));
        }
        Ok(RestrictedExpression::new_record(fields)?)
    }

    fn provenance(&self) -> Fields {
        vec![
            ("provenance".to_owned(), self.word("Provenance", "trusted")),
            ("provenance_rank".to_owned(), RestrictedExpression::new_long(0)),
        ]
    }

    fn label(
        &self,
        integrity: &str,
        integrity_rank: i64,
        confidentiality: &str,
        confidentiality_rank: i64,
    ) -> Result<RestrictedExpression, Failure> {
        Ok(RestrictedExpression::new_record([
            ("integrity".to_owned(), self.word("Integrity", integrity)),
            ("integrity_rank".to_owned(), RestrictedExpression::new_long(integrity_rank)),
            ("confidentiality".to_owned(), self.word("Confidentiality", confidentiality)),
            ("confidentiality_rank".to_owned(), RestrictedExpression::new_long(confidentiality_rank)),
        ])?)
    }

    fn uid(&self, kind: &str, id: &str) -> EntityUid {
        EntityUid::from_type_name_and_id(self.types[kind].clone(), EntityId::new(id))
    }

    fn word(&self, kind: &str, id: &str) -> RestrictedExpression {
        RestrictedExpression::new_entity_uid(self.uid(kind, id))
    }
}

fn reference(uid: &EntityUid) -> RestrictedExpression {
    RestrictedExpression::new_entity_uid(uid.clone())
}

fn text(value: &str) -> RestrictedExpression {
    RestrictedExpression::new_string(value.to_owned())
}
