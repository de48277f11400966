//! Principals and resources as Cedar entities with their hierarchy.
//!
//! Only what a request can reach is built: the principal, the resource, the tool and the arguments. Policies are validated to look
//! no further (one step from a request), so an entity that is not here cannot be asked for.
//!
//! Names come from outside. They become entity ids as they are, never Cedar text, so nothing in them can change a policy; what
//! cannot be a name of its kind is refused.

use std::collections::{HashMap, HashSet};

use cedar_policy::{Entity, EntityTypeName, EntityUid, RestrictedExpression};

use crate::names::{Names, uid};
use crate::request::{Destination, ToolFacts};
use crate::vocabulary::Rank;
use crate::{Location, Origin, PolicyError, Principal, Resource, RunPrincipal};

/// Longest name of anything, in bytes: room for every path Linux allows, none for a payload.
const MAX_NAME_BYTES: usize = 4_096;

/// There is one daemon to command: the one that decides.
const THIS_DAEMON: &str = "this";

pub(crate) fn principal(names: &Names, principal: &Principal) -> Result<Entity, PolicyError> {
    match principal {
        Principal::Run(run) => run_entity(names, run),
        Principal::User(user) => Ok(Entity::with_uid(named(&names.user, user)?)),
        Principal::Device { id, owner } => {
            Ok(Entity::new_no_attrs(named(&names.device, id)?, HashSet::from([named(&names.user, owner)?])))
        }
        Principal::Channel(channel) => destination(&names.channel, channel, 0, HashSet::new()),
    }
}

pub(crate) fn resource(
    names: &Names,
    resource: &Resource,
    tool_facts: Option<&ToolFacts>,
) -> Result<Entity, PolicyError> {
    match resource {
        Resource::Tool => {
            tool(names, tool_facts.ok_or_else(|| PolicyError::bad_request("a command is about no tool"))?)
        }
        Resource::Path { name, location } => path(names, name, *location),
        Resource::Host(host) => self::host(names, host),
        Resource::Secret { scope, name } => {
            let id = named(&names.secret, &format!("{scope}/{name}"))?;
            entity(id, [("scope", text(scope)), ("name", text(name))], HashSet::new())
        }
        Resource::Channel(Destination { name, clearance }) => {
            destination(&names.channel, name, clearance.rank(), HashSet::new())
        }
        Resource::Worker(Destination { name, clearance }) => {
            destination(&names.worker, name, clearance.rank(), HashSet::new())
        }
        Resource::Memory(Destination { name, clearance }) => {
            destination(&names.memory, name, clearance.rank(), HashSet::new())
        }
        Resource::Agent(agent) => Ok(Entity::with_uid(named(&names.agent, agent)?)),
        Resource::Run(run) => run_entity(names, run),
        Resource::Daemon => Ok(Entity::with_uid(uid(&names.daemon, THIS_DAEMON))),
        Resource::Conversation { owner } => {
            let owner_uid = RestrictedExpression::new_entity_uid(named(&names.user, owner)?);
            entity(named(&names.conversation, owner)?, [("owner", owner_uid)], HashSet::new())
        }
    }
}

pub(crate) fn tool(names: &Names, tool: &ToolFacts) -> Result<Entity, PolicyError> {
    let clearance = tool.clearance.rank();
    match &tool.origin {
        None => destination(&names.tool, &tool.name, clearance, HashSet::new()),
        Some(Origin::Skill(skill)) => offered(names, tool, "skill", named(&names.skill, skill)?),
        Some(Origin::Server(server)) => offered(names, tool, "server", named(&names.server, server)?),
    }
}

/// A tool that somebody else offers stands in whoever offers it, and names it.
fn offered(names: &Names, tool: &ToolFacts, kind: &'static str, by: EntityUid) -> Result<Entity, PolicyError> {
    let attributes = [
        ("name", text(&tool.name)),
        ("clearance", RestrictedExpression::new_long(tool.clearance.rank())),
        (kind, RestrictedExpression::new_entity_uid(by.clone())),
    ];
    entity(named(&names.tool, &tool.name)?, attributes, HashSet::from([by]))
}

/// A host stands in its parent domains: `api.example.org` in `example.org` and `org`. An address stands alone.
pub(crate) fn host(names: &Names, host: &Destination) -> Result<Entity, PolicyError> {
    let name = host_name(&host.name)?;
    let is_address = name.contains(':') || name.parse::<std::net::Ipv4Addr>().is_ok();
    let mut parents = HashSet::new();
    let mut rest = name.as_str();
    while let Some((_, parent)) = rest.split_once('.').filter(|_| !is_address) {
        parents.insert(named(&names.host, parent)?);
        rest = parent;
    }
    destination(&names.host, &name, host.clearance.rank(), parents)
}

fn host_name(given: &str) -> Result<String, PolicyError> {
    let name = given.trim_end_matches('.').to_ascii_lowercase();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-_:[]".contains(letter);
    if name.is_empty() || !name.chars().all(plain) || name.split('.').any(str::is_empty) {
        return Err(PolicyError::bad_request(format!("`{given}` is not a host name")));
    }
    Ok(name)
}

/// A path stands in its parent directories, up to `.` inside the workspace and `/` elsewhere.
fn path(names: &Names, name: &str, location: Location) -> Result<Entity, PolicyError> {
    let inside = location == Location::InsideWorkspace;
    let leaves = name.starts_with('/') || name.split('/').any(|part| part == "..");
    if inside && leaves {
        return Err(PolicyError::bad_request(format!("`{name}` cannot be inside the workspace")));
    }
    let root = if name.starts_with('/') { "/" } else { "." };
    let mut parents = HashSet::new();
    let mut rest = name;
    while let Some((parent, _)) = rest.rsplit_once('/') {
        if !parent.is_empty() {
            parents.insert(named(&names.path, parent)?);
        }
        rest = parent;
    }
    if name != root {
        parents.insert(uid(&names.path, root));
    }
    let attributes = [
        ("name", text(name)),
        ("inside_workspace", RestrictedExpression::new_bool(inside)),
        ("clearance", RestrictedExpression::new_long(0)),
    ];
    entity(named(&names.path, name)?, attributes, parents)
}

/// A run stands in everything it acts for.
fn run_entity(names: &Names, run: &RunPrincipal) -> Result<Entity, PolicyError> {
    let owner = named(&names.user, &run.user)?;
    let agent = named(&names.agent, &run.agent)?;
    let session = named(&names.session, &run.session)?;
    let mut parents = HashSet::from([owner.clone(), agent.clone(), session.clone()]);
    for role in &run.roles {
        parents.insert(named(&names.role, role)?);
    }
    let optional = [(&names.device, &run.device), (&names.channel, &run.channel), (&names.worker, &run.worker)];
    for (kind, name) in optional {
        if let Some(name) = name {
            parents.insert(named(kind, name)?);
        }
    }
    let attributes = [
        ("owner", RestrictedExpression::new_entity_uid(owner)),
        ("agent", RestrictedExpression::new_entity_uid(agent)),
        ("session", RestrictedExpression::new_entity_uid(session)),
    ];
    entity(named(&names.run, &run.run)?, attributes, parents)
}

/// Something that can receive data.
fn destination(
    kind: &EntityTypeName,
    name: &str,
    clearance: i64,
    parents: HashSet<EntityUid>,
) -> Result<Entity, PolicyError> {
    let attributes = [("name", text(name)), ("clearance", RestrictedExpression::new_long(clearance))];
    entity(named(kind, name)?, attributes, parents)
}

fn named(kind: &EntityTypeName, name: &str) -> Result<EntityUid, PolicyError> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.contains('\0') {
        return Err(PolicyError::bad_request(format!(
            "a {kind} needs a name of 1 to {MAX_NAME_BYTES} bytes without NUL"
        )));
    }
    Ok(uid(kind, name))
}

fn text(value: &str) -> RestrictedExpression {
    RestrictedExpression::new_string(value.to_owned())
}

fn entity<const N: usize>(
    id: EntityUid,
    attributes: [(&str, RestrictedExpression); N],
    parents: HashSet<EntityUid>,
) -> Result<Entity, PolicyError> {
    let attributes: HashMap<String, RestrictedExpression> =
        attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Entity::new(id, attributes, parents).map_err(PolicyError::bad_request)
}
