//! `servers.toml`: what to connect to.
//!
//! ```toml
//! version = 1
//!
//! [servers.files.stdio]
//! command = "npx"
//! args = ["-y", "@example/files", "/home/me/papers"]
//! env = ["PATH", "HOME"]
//!
//! [servers.tickets.http]
//! url = "https://tickets.example/mcp"
//! headers = { Authorization = "env:TICKETS_TOKEN" }
//! ```
//!
//! Unknown keys are refused. Edits keep the comments of whoever wrote the file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use palyra_common::{RedactedUrl, SecretRef, suggest};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use toml_edit::{DocumentMut, Item, Table};

use crate::{McpError, ServerName, files};

/// The only form of the file so far.
const VERSION: i64 = 1;

/// All servers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpConfig {
    version: i64,
    /// The servers by name.
    #[serde(default)]
    pub servers: BTreeMap<ServerName, ServerConfig>,
}

/// One server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawServer", into = "RawServer")]
pub struct ServerConfig {
    /// How it is reached.
    pub transport: TransportConfig,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportConfig {
    /// A program of this machine, spoken to through its standard streams.
    Stdio(StdioConfig),
    /// A web service.
    Http(HttpConfig),
}

impl TransportConfig {
    /// Whether the server is on this machine. An address that cannot be read, which nobody is connected to, counts as one.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Stdio(_) => true,
            Self::Http(http) => http.parsed_url().map_or(true, |url| is_loopback(&url)),
        }
    }
}

/// A program of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StdioConfig {
    /// The program.
    pub command: String,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The names of the environment variables that it may see. It sees no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Where it runs; the root directory unless told otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
}

/// A web service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpConfig {
    /// Its address: `https://…`, or `http://…` on this machine.
    pub url: String,
    /// Headers that carry a secret, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, SecretRef>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawServer {
    #[serde(skip_serializing_if = "Option::is_none")]
    stdio: Option<StdioConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http: Option<HttpConfig>,
}

impl TryFrom<RawServer> for ServerConfig {
    type Error = String;
    fn try_from(raw: RawServer) -> Result<Self, String> {
        let transport = match (raw.stdio, raw.http) {
            (Some(stdio), None) => TransportConfig::Stdio(stdio),
            (None, Some(http)) => TransportConfig::Http(http),
            _ => return Err("a server needs either a `stdio` table or an `http` table".to_owned()),
        };
        let config = Self { transport };
        config.check().map_err(|error| error.to_string())?;
        Ok(config)
    }
}

impl From<ServerConfig> for RawServer {
    fn from(config: ServerConfig) -> Self {
        match config.transport {
            TransportConfig::Stdio(stdio) => Self { stdio: Some(stdio), http: None },
            TransportConfig::Http(http) => Self { stdio: None, http: Some(http) },
        }
    }
}

impl ServerConfig {
    /// A program of this machine.
    #[must_use]
    pub const fn stdio(stdio: StdioConfig) -> Self {
        Self { transport: TransportConfig::Stdio(stdio) }
    }

    /// A web service.
    #[must_use]
    pub const fn http(http: HttpConfig) -> Self {
        Self { transport: TransportConfig::Http(http) }
    }

    /// Refuses what could not be connected to anyway, where the operator still looks.
    pub fn check(&self) -> Result<(), McpError> {
        let refused = |reason: &str| McpError::ConfigInvalid { path: "servers.toml".into(), reason: reason.to_owned() };
        match &self.transport {
            TransportConfig::Stdio(stdio) => {
                if stdio.command.trim().is_empty() {
                    return Err(refused("`command` is empty"));
                }
                let nul = |text: &String| text.contains('\0');
                if nul(&stdio.command) || stdio.args.iter().any(nul) {
                    return Err(refused("a command or argument contains a NUL byte"));
                }
                let name = |text: &String| {
                    !text.is_empty() && !text.contains(['=', '\0']) && !text.chars().any(char::is_whitespace)
                };
                if !stdio.env.iter().all(name) {
                    return Err(refused("`env` lists names of environment variables, not values"));
                }
                if stdio.cwd.as_ref().is_some_and(|cwd| !cwd.is_absolute()) {
                    return Err(refused("`cwd` must be an absolute path"));
                }
                Ok(())
            }
            TransportConfig::Http(http) => {
                http.parsed_url()?;
                http.headers.keys().try_for_each(|name| header_name(name).map(drop))
            }
        }
    }

    /// One line that says where the server is, without anything secret.
    #[must_use]
    pub fn summary(&self) -> String {
        match &self.transport {
            TransportConfig::Stdio(stdio) => {
                std::iter::once(&stdio.command).chain(&stdio.args).map(String::as_str).collect::<Vec<_>>().join(" ")
            }
            TransportConfig::Http(http) => RedactedUrl::new(&http.url).to_string(),
        }
    }
}

impl HttpConfig {
    /// The address, if it is one that may be connected to.
    pub(crate) fn parsed_url(&self) -> Result<Url, McpError> {
        let refused = |reason| McpError::UrlRefused { url: RedactedUrl::new(&self.url), reason };
        let url: Url = self.url.parse().map_err(|_| refused("it is not a valid URL"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("it carries a user name or password; use a header with a secret reference"));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(refused("it names no host"));
        }
        match url.scheme() {
            "https" => Ok(url),
            "http" if is_loopback(&url) => Ok(url),
            "http" => Err(refused("plain http:// is only allowed for this machine")),
            _ => Err(refused("it is neither https nor http")),
        }
    }
}

/// Whether the address is this machine by number or by the name that always means it.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// A header that the operator may set: one of the protocol's own would change what is spoken.
pub(crate) fn header_name(name: &str) -> Result<::http::HeaderName, McpError> {
    let refused = |reason| McpError::HeaderInvalid { name: name.to_owned(), reason };
    let header =
        ::http::HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused("it is not a valid header name"))?;
    let text = header.as_str();
    let reserved =
        ["accept", "content-type", "content-length", "host", "connection", "transfer-encoding", "last-event-id"];
    if reserved.contains(&text) || text.starts_with("mcp-") {
        return Err(refused("the protocol sets it"));
    }
    Ok(header)
}

impl McpConfig {
    /// Reads the file. Where there is none, there are no servers.
    pub(crate) fn load(path: &Path) -> Result<Self, McpError> {
        let Some(text) = files::read(path)? else {
            return Ok(Self { version: VERSION, servers: BTreeMap::new() });
        };
        Self::parse(&text, path)
    }

    fn parse(text: &str, path: &Path) -> Result<Self, McpError> {
        let invalid = |reason: String| McpError::ConfigInvalid { path: path.to_owned(), reason };
        let config: Self = toml::from_str(text).map_err(|error| invalid(error.to_string().trim_end().to_owned()))?;
        if config.version != VERSION {
            return Err(invalid(format!("its version is {}, not {VERSION}", config.version)));
        }
        Ok(config)
    }
}

/// Adds a server to the file.
pub(crate) fn add(path: &Path, name: &ServerName, server: &ServerConfig) -> Result<(), McpError> {
    server.check()?;
    edit(path, |servers| {
        if servers.contains_key(name.as_str()) {
            return Err(McpError::ServerExists { name: name.to_string() });
        }
        let text = toml::to_string(server).map_err(|error| McpError::Internal { reason: error.to_string() })?;
        let document: DocumentMut =
            text.parse().map_err(|error: toml_edit::TomlError| McpError::Internal { reason: error.to_string() })?;
        let mut table = document.as_table().clone();
        table.set_implicit(true);
        for (_, item) in table.iter_mut() {
            // An empty line before each server, as a person would write it.
            if let Some(transport) = item.as_table_mut() {
                transport.decor_mut().set_prefix("\n");
            }
        }
        servers.insert(name.as_str(), Item::Table(table));
        Ok(())
    })
}

/// Takes a server out of the file.
pub(crate) fn remove(path: &Path, name: &ServerName) -> Result<(), McpError> {
    edit(path, |servers| match servers.remove(name.as_str()) {
        Some(_) => Ok(()),
        None => {
            let suggestion = suggest(name.as_str(), servers.iter().map(|(known, _)| known));
            Err(McpError::ServerNotFound { name: name.to_string(), suggestion })
        }
    })
}

fn edit(path: &Path, change: impl FnOnce(&mut Table) -> Result<(), McpError>) -> Result<(), McpError> {
    let text = files::read(path)?.unwrap_or_else(|| format!("version = {VERSION}\n"));
    McpConfig::parse(&text, path)?;
    let invalid = |reason: String| McpError::ConfigInvalid { path: path.to_owned(), reason };
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| invalid(error.to_string()))?;
    let mut empty = Table::new();
    empty.set_implicit(true);
    let servers = document.entry("servers").or_insert(Item::Table(empty));
    let Some(servers) = servers.as_table_mut() else {
        return Err(invalid("`servers` is written inline; write it as tables".to_owned()));
    };
    change(servers)?;
    let text = document.to_string();
    // What is written is what will be read; nothing is left to chance.
    McpConfig::parse(&text, path)?;
    files::replace(path, &text)
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
