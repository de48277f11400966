//! Reading `models.toml`. The first thing that is wrong is named by its line; a key that nobody knows is refused with the one that
//! was most likely meant.
//!
//! No message repeats the text of a key's reference: it may be a pasted secret.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use palyra_common::{AuxiliaryTaskKind, ContractEnum as _, RedactedUrl, SecretRef, did_you_mean, suggest};
use toml_edit::{Document, Item, TableLike};

use super::config::{Account, AccountKey, Accounts, ModelSettings, Routes};
use super::error::AccountsError;
use super::kind::ProviderKind;
use super::name::{ModelName, check_name};
use super::timeouts::{AccountTimeouts, SECONDS};
use crate::model_entry::Capability;
use crate::wire::PlaintextKey;

/// The only form of the file so far.
pub(super) const VERSION: i64 = 1;
/// Largest file in bytes; a larger one is the wrong file.
const FILE_LIMIT: u64 = 1 << 20;
/// Most models in one route: more are a mistake, and each costs a try.
const ROUTE_LIMIT: usize = 32;
/// Smallest window that a task fits into at all.
const SMALLEST_WINDOW: i64 = 1_024;

const ROOT: &[&str] = &["version", "providers", "routes"];
const PROVIDER: &[&str] =
    &["kind", "base_url", "allow_plaintext_key", "context_tokens", "capabilities", "timeouts", "keys", "models"];
const TIMEOUTS: &[&str] = &["connect_seconds", "first_byte_seconds", "between_chunks_seconds", "total_seconds"];
const KEY: &[&str] = &["name", "key"];
const MODEL: &[&str] = &["context_tokens", "capabilities"];
const ROUTES: &[&str] = &["default", "low_cost", "low_latency", "vision_capable", "tasks", "agents"];

impl Accounts {
    /// Reads the file. Where there is none, there are no accounts and no routes.
    pub fn load(path: &Path) -> Result<Self, AccountsError> {
        read_text(path)?.map_or_else(|| Ok(Self::default()), |text| Self::parse(&text, path))
    }

    /// Reads the text of a file. `path` names it in messages and anchors its relative paths.
    pub fn parse(text: &str, path: &Path) -> Result<Self, AccountsError> {
        let reader = Reader { text, path };
        let document = Document::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            reader.invalid(at, format!("not valid TOML: {}", error.message().lines().collect::<Vec<_>>().join(", ")))
        })?;
        reader.root(document.as_table())
    }
}

/// The file's text, or nothing where there is no file.
pub(super) fn read_text(path: &Path) -> Result<Option<String>, AccountsError> {
    let failed = |reason: String| AccountsError::File { doing: "read", path: path.to_owned(), reason };
    // Looked at before opening: opening a FIFO would wait for a writer for ever.
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => return Err(failed("it is not a regular file".to_owned())),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error.to_string())),
    }
    let file = std::fs::File::open(path).map_err(|error| failed(error.to_string()))?;
    let mut text = String::new();
    file.take(FILE_LIMIT + 1).read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
    if text.len() as u64 > FILE_LIMIT {
        return Err(failed("it is larger than 1 MiB".to_owned()));
    }
    Ok(Some(text))
}

struct Reader<'a> {
    text: &'a str,
    path: &'a Path,
}

/// A key of a table, with where it stands.
struct Place<'t> {
    table: &'t dyn TableLike,
    name: &'t str,
    /// How people call it, such as `providers.local.kind`.
    full: String,
}

type Read<T> = Result<T, AccountsError>;

impl Reader<'_> {
    fn root(&self, root: &dyn TableLike) -> Read<Accounts> {
        self.only(root, "", ROOT)?;
        match root.get("version").and_then(Item::as_integer) {
            Some(VERSION) => {}
            Some(other) => {
                return Err(self.wrong(&place(root, "", "version"), format!("is {other}; this build reads version 1")));
            }
            None => return Err(self.invalid(0, "the file must begin with `version = 1`".to_owned())),
        }
        let mut accounts = Accounts::default();
        if let Some(providers) = self.table(&place(root, "", "providers"))? {
            for (name, _) in providers.iter() {
                let at = place(providers, "providers", name);
                check_name(name).map_err(|reason| self.wrong(&at, reason))?;
                if let Some(table) = self.table(&at)? {
                    accounts.providers.insert(name.to_owned(), self.account(table, &at.full)?);
                }
            }
        }
        if let Some(routes) = self.table(&place(root, "", "routes"))? {
            accounts.routes = self.routes(routes, &accounts.providers)?;
        }
        Ok(accounts)
    }

    fn account(&self, table: &dyn TableLike, full: &str) -> Read<Account> {
        self.only(table, full, PROVIDER)?;
        let at = place(table, full, "kind");
        let Some(kind) = self.string(&at)? else {
            return Err(self.wrong(&at, "is missing: it says what the provider speaks"));
        };
        let kind = ProviderKind::parse(&kind).map_err(|error| {
            let known = ProviderKind::ALL.iter().map(|kind| kind.as_str());
            self.wrong(&at, format!("is wrong: {error}{}", did_you_mean(suggest(&kind, known).as_deref())))
        })?;
        let at = place(table, full, "base_url");
        let base_url = self.string(&at)?;
        if let Some(url) = &base_url {
            check_url(url).map_err(|reason| self.wrong(&at, format!("is wrong: {reason}")))?;
        }
        if base_url.is_none() && kind.usual_url().is_none() {
            return Err(self.wrong(&at, "is missing: only you know where the server is"));
        }
        let keys = self.keys(table, full)?;
        if keys.is_empty() && base_url.is_none() && kind.wants_key() {
            let variable = kind.key_variables().first().copied().unwrap_or_default();
            let example = format!("has no key: add `[[{full}.keys]]` with a name and `key = \"env:{variable}\"`");
            return Err(self.invalid(span_of(table, "kind"), format!("`{full}` {example}")));
        }
        let mut models = BTreeMap::new();
        let at = place(table, full, "models");
        if let Some(listed) = self.table(&at)? {
            for (name, _) in listed.iter() {
                let at = place(listed, &at.full, name);
                if let Some(settings) = self.table(&at)? {
                    self.only(settings, &at.full, MODEL)?;
                    let settings = ModelSettings {
                        context_tokens: self.window(settings, &at.full)?,
                        capabilities: self.capabilities(settings, &at.full)?,
                    };
                    models.insert(name.to_owned(), settings);
                }
            }
        }
        let context_tokens = self.window(table, full)?;
        let capabilities = self.capabilities(table, full)?;
        let timeouts = self.timeouts(table, full)?;
        let at = place(table, full, "allow_plaintext_key");
        let plaintext_key = match at.item().map(|item| item.as_bool()) {
            None | Some(Some(false)) => PlaintextKey::Refused,
            Some(Some(true)) => PlaintextKey::Allowed,
            Some(None) => return Err(self.wrong(&at, "must be true or false")),
        };
        Ok(Account { kind, base_url, context_tokens, capabilities, timeouts, plaintext_key, keys, models })
    }

    fn keys(&self, table: &dyn TableLike, full: &str) -> Read<Vec<AccountKey>> {
        let at = place(table, full, "keys");
        let Some(item) = at.item() else { return Ok(Vec::new()) };
        // Written as `[[…keys]]` or inline.
        let tables: Vec<&dyn TableLike> = if let Some(tables) = item.as_array_of_tables() {
            tables.iter().map(|table| table as &dyn TableLike).collect()
        } else if let Some(array) = item.as_array() {
            let inline = array.iter().map(|value| value.as_inline_table().map(|table| table as &dyn TableLike));
            inline.collect::<Option<_>>().ok_or_else(|| self.wrong(&at, "must be tables with `name` and `key`"))?
        } else {
            return Err(self.wrong(&at, "must be tables with `name` and `key`"));
        };
        let mut keys: Vec<AccountKey> = Vec::new();
        for table in tables {
            self.only(table, &at.full, KEY)?;
            let at_name = place(table, &at.full, "name");
            let name = self.string(&at_name)?.ok_or_else(|| self.wrong(&at, "has an entry without a `name`"))?;
            check_name(&name).map_err(|reason| self.wrong(&at_name, reason))?;
            if keys.iter().any(|key| key.name == name) {
                return Err(self.wrong(&at_name, format!("is `{name}` twice")));
            }
            let at_key = place(table, &at.full, "key");
            let reference = self.string(&at_key)?.ok_or_else(|| self.wrong(&at, "has an entry without a `key`"))?;
            let key =
                reference.parse::<SecretRef>().map_err(|error| self.wrong(&at_key, format!("is wrong: {error}")))?;
            keys.push(AccountKey { name, key: self.anchored(key) });
        }
        Ok(keys)
    }

    /// A relative path starts from the file that names it, not from wherever the daemon was started.
    fn anchored(&self, reference: SecretRef) -> SecretRef {
        match reference {
            SecretRef::File(path) => SecretRef::File(self.path.parent().unwrap_or(Path::new("")).join(path)),
            other => other,
        }
    }

    fn routes(&self, table: &dyn TableLike, providers: &BTreeMap<String, Account>) -> Read<Routes> {
        let full = "routes";
        self.only(table, full, ROUTES)?;
        let list = |name| self.route(&place(table, full, name), providers);
        let mut routes = Routes {
            default: list("default")?,
            low_cost: list("low_cost")?,
            low_latency: list("low_latency")?,
            vision_capable: list("vision_capable")?,
            ..Routes::default()
        };
        let at = place(table, full, "tasks");
        if let Some(tasks) = self.table(&at)? {
            for (name, _) in tasks.iter() {
                let at = place(tasks, &at.full, name);
                let known = AuxiliaryTaskKind::ALL.iter().map(|kind| kind.as_str());
                let kind = AuxiliaryTaskKind::parse(name).map_err(|error| {
                    self.wrong(
                        &at,
                        format!("is not a kind of task: {error}{}", did_you_mean(suggest(name, known).as_deref())),
                    )
                })?;
                routes.tasks.insert(kind, self.route(&at, providers)?);
            }
        }
        let at = place(table, full, "agents");
        if let Some(agents) = self.table(&at)? {
            for (name, _) in agents.iter() {
                let list = self.route(&place(agents, &at.full, name), providers)?;
                routes.agents.insert(name.to_owned(), list);
            }
        }
        Ok(routes)
    }

    fn route(&self, at: &Place<'_>, providers: &BTreeMap<String, Account>) -> Read<Vec<ModelName>> {
        let Some(texts) = self.list(at)? else { return Ok(Vec::new()) };
        if texts.is_empty() {
            return Err(self.wrong(at, "is empty; remove it to say nothing"));
        }
        if texts.len() > ROUTE_LIMIT {
            return Err(self.wrong(at, format!("has more than {ROUTE_LIMIT} models")));
        }
        let mut route: Vec<ModelName> = Vec::new();
        for text in texts {
            let name: ModelName =
                text.parse().map_err(|reason| self.wrong(at, format!("names `{}`: {reason}", shown(&text))))?;
            if !providers.contains_key(&name.provider) {
                let suggestion = suggest(&name.provider, providers.keys().map(String::as_str));
                let reason = format!("names the provider `{}`, which the file does not have", name.provider);
                return Err(self.wrong(at, format!("{reason}{}", did_you_mean(suggestion.as_deref()))));
            }
            if route.contains(&name) {
                return Err(self.wrong(at, format!("names `{name}` twice")));
            }
            route.push(name);
        }
        Ok(route)
    }

    fn window(&self, table: &dyn TableLike, full: &str) -> Read<Option<u32>> {
        let at = place(table, full, "context_tokens");
        let Some(item) = at.item() else { return Ok(None) };
        let tokens = item.as_integer().filter(|tokens| *tokens >= SMALLEST_WINDOW).and_then(|n| u32::try_from(n).ok());
        tokens.map(Some).ok_or_else(|| self.wrong(&at, format!("must be a whole number of at least {SMALLEST_WINDOW}")))
    }

    fn timeouts(&self, table: &dyn TableLike, full: &str) -> Read<AccountTimeouts> {
        let at = place(table, full, "timeouts");
        let Some(said) = self.table(&at)? else { return Ok(AccountTimeouts::default()) };
        self.only(said, &at.full, TIMEOUTS)?;
        let seconds = |name: &'static str| {
            let at = place(said, &at.full, name);
            let Some(item) = at.item() else { return Ok(None) };
            let seconds = item.as_integer().and_then(|seconds| u32::try_from(seconds).ok());
            let seconds = seconds.filter(|seconds| SECONDS.contains(seconds));
            let range = format!("must be a whole number of seconds from {} to {}", SECONDS.start(), SECONDS.end());
            seconds.map(Some).ok_or_else(|| self.wrong(&at, range))
        };
        let timeouts = AccountTimeouts {
            connect_seconds: seconds("connect_seconds")?,
            first_byte_seconds: seconds("first_byte_seconds")?,
            between_chunks_seconds: seconds("between_chunks_seconds")?,
            total_seconds: seconds("total_seconds")?,
        };
        match timeouts.longer_than_total() {
            Some(name) => Err(self.wrong(&place(said, &at.full, name), "is longer than `total_seconds`")),
            None => Ok(timeouts),
        }
    }

    fn capabilities(&self, table: &dyn TableLike, full: &str) -> Read<Option<Vec<Capability>>> {
        let at = place(table, full, "capabilities");
        let Some(texts) = self.list(&at)? else { return Ok(None) };
        let read =
            |text: &String| Capability::parse(text).map_err(|error| self.wrong(&at, format!("is wrong: {error}")));
        texts.iter().map(read).collect::<Result<_, _>>().map(Some)
    }

    /// Refuses what is not in the form, with what was most likely meant.
    fn only(&self, table: &dyn TableLike, full: &str, known: &[&str]) -> Read<()> {
        match table.iter().find(|(name, _)| !known.contains(name)) {
            None => Ok(()),
            Some((name, _)) => {
                let suggestion = suggest(name, known.iter().copied());
                let whole = place(table, full, name).full;
                let reason = format!("unknown key `{}`{}", shown(&whole), did_you_mean(suggestion.as_deref()));
                Err(self.invalid(span_of(table, name), reason))
            }
        }
    }

    fn table<'t>(&self, at: &Place<'t>) -> Read<Option<&'t dyn TableLike>> {
        let Some(item) = at.item() else { return Ok(None) };
        item.as_table_like()
            .map(Some)
            .ok_or_else(|| self.wrong(at, format!("must be a table, not {}", item.type_name())))
    }

    fn string(&self, at: &Place<'_>) -> Read<Option<String>> {
        let Some(item) = at.item() else { return Ok(None) };
        let text = item.as_str().map(str::trim).filter(|text| !text.is_empty());
        text.map(|text| Some(text.to_owned())).ok_or_else(|| self.wrong(at, "must be a string that is not empty"))
    }

    fn list(&self, at: &Place<'_>) -> Read<Option<Vec<String>>> {
        let Some(item) = at.item() else { return Ok(None) };
        let texts = item.as_array().map(|list| list.iter().map(|value| value.as_str().map(str::to_owned)));
        let texts = texts.and_then(Iterator::collect::<Option<Vec<_>>>);
        texts.map(Some).ok_or_else(|| self.wrong(at, "must be a list of strings"))
    }

    fn wrong(&self, at: &Place<'_>, reason: impl AsRef<str>) -> AccountsError {
        self.invalid(span_of(at.table, at.name), format!("`{}` {}", shown(&at.full), reason.as_ref()))
    }

    fn invalid(&self, at: usize, reason: String) -> AccountsError {
        let before = self.text.as_bytes().get(..at).unwrap_or(self.text.as_bytes());
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        AccountsError::Invalid { path: self.path.to_owned(), line, reason }
    }
}

impl<'t> Place<'t> {
    fn item(&self) -> Option<&'t Item> {
        self.table.get(self.name).filter(|item| !item.is_none())
    }
}

fn place<'t>(table: &'t dyn TableLike, parent: &str, name: &'t str) -> Place<'t> {
    let full = if parent.is_empty() { name.to_owned() } else { format!("{parent}.{name}") };
    Place { table, name, full }
}

/// Where a key stands; for one that is missing, where its table's first key stands.
fn span_of(table: &dyn TableLike, name: &str) -> usize {
    let of = |name: &str| table.get_key_value(name).and_then(|(key, item)| key.span().or_else(|| item.span()));
    let first = || table.iter().next().and_then(|(first, _)| of(first));
    of(name).or_else(first).map_or(0, |span| span.start)
}

/// Refuses addresses that could not be reached anyway, and those that carry a secret.
pub(super) fn check_url(text: &str) -> Result<(), String> {
    let shown = RedactedUrl::new(text);
    let url: reqwest::Url = text.parse().map_err(|_| format!("`{shown}` is not an address such as https://host/v1"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(format!("`{shown}` is not an address such as https://host/v1"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("an address may not carry a user name or a password; use a key".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("the base of an interface may not have a query or a fragment".to_owned());
    }
    Ok(())
}

/// User input made fit for a one-line message.
fn shown(text: &str) -> String {
    let mut line: String =
        text.chars().take(80).map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect();
    if text.chars().nth(80).is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
