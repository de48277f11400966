//! `palyra.http.fetch`: reads an address over the egress rules.
//!
//! The call was permitted for this host, so the grant is that host, port, method and no more; a redirect to another host is refused with the line that would
//! be missing, and the model has to ask for that address by itself. What comes back is text that anybody could have written.

use std::time::Duration;

use async_trait::async_trait;
use palyra_common::{Confidentiality, Consequence, Integrity, Label, Risk, ToStableError as _, runtime_contract_enum};
use palyra_egress::{
    ContentKind, Egress, EgressClient, EgressGrant, EgressLimits, FetchRequest, FetchResponse, PrivateHost, Readable,
    Rule, Served, Target, readable,
};
use palyra_tools::{
    ArtifactRef, CallResource, Concurrency, Invocation, Offering, Repeatability, RequestTarget, SinkKind, Tool,
    ToolDeclaration, ToolError, ToolName, ToolOutput, Workspace,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::tracking::blocking;

/// The tool's name.
const NAME: &str = "palyra.http.fetch";
/// Links of a page that are listed after its text.
const LISTED_LINKS: usize = 100;

/// Fetches a URL and returns its content as text. Private addresses are refused unless the operator allows them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HttpFetchInput {
    /// `http://` or `https://`.
    url: String,
    /// `GET` by default.
    #[serde(default)]
    method: Option<FetchMethod>,
    /// Body of a `POST`.
    #[serde(default)]
    body: Option<String>,
    /// Media type of the body; `application/json` by default.
    #[serde(default)]
    content_type: Option<String>,
    /// Preferred media type of the answer.
    #[serde(default)]
    #[schemars(extend("x-rare" = true))]
    accept: Option<PreferredMedia>,
}

runtime_contract_enum! {
    /// What a fetch does.
    pub enum FetchMethod("fetch_method") {
        /// Reads.
        Get = "GET",
        /// Asks for the headers alone.
        Head = "HEAD",
        /// Sends.
        Post = "POST",
    }
}

runtime_contract_enum! {
    /// What a fetch would rather have. A closed list: a header of free text would carry anything at all to the host.
    pub enum PreferredMedia("preferred_media") {
        /// JSON.
        Json = "application/json",
        /// HTML.
        Html = "text/html",
        /// Plain text.
        Text = "text/plain",
        /// Markdown.
        Markdown = "text/markdown",
        /// Comma-separated values.
        Csv = "text/csv",
        /// XML.
        Xml = "application/xml",
        /// Whatever there is.
        Any = "*/*",
    }
}

/// Resolved options of the tool.
#[derive(Debug, Clone)]
pub struct FetchOptions {
    /// Largest answer, after decompression.
    pub max_bytes: u64,
    /// Longest time, redirects included.
    pub timeout: Duration,
    /// Redirects that are followed.
    pub max_redirects: usize,
    /// Hosts with private addresses that may be reached.
    pub private_hosts: Vec<PrivateHost>,
}

/// The tool.
pub struct HttpFetch {
    declaration: ToolDeclaration,
    client: EgressClient,
    options: FetchOptions,
}

impl HttpFetch {
    /// A tool that goes out through this.
    #[must_use]
    pub fn new(egress: &Egress, options: FetchOptions) -> Self {
        Self { declaration: Self::declared(), client: egress.client(), options }
    }

    /// What the tool says about itself.
    pub(crate) fn declared() -> ToolDeclaration {
        let name = ToolName::builtin(NAME);
        let mut declaration = ToolDeclaration::of::<HttpFetchInput>(name, "Fetch address", "fetch `{url}`")
            .sink("url", SinkKind::Destination)
            .sink("body", SinkKind::Content)
            .sink("content_type", SinkKind::Content)
            .output(Integrity::Untrusted, Confidentiality::Public)
            .offered(Offering::Always);
        declaration.concurrency = Concurrency::Shared;
        declaration.repeatability = Repeatability::Repeatable;
        declaration.risk = Risk::Medium;
        declaration
    }

    /// The narrowest grant for one address.
    fn grant(&self, effect: &str, target: &Target, method: FetchMethod) -> Result<EgressGrant, ToolError> {
        let mut grant = EgressGrant::new(effect);
        grant.rules.push(rule(target, method)?);
        grant.private_hosts.clone_from(&self.options.private_hosts);
        grant.limits = EgressLimits {
            download_bytes: self.options.max_bytes,
            time_ms: u64::try_from(self.options.timeout.as_millis()).unwrap_or(u64::MAX),
            ..EgressLimits::fetch()
        };
        Ok(grant)
    }
}

#[async_trait]
impl Tool for HttpFetch {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn resource(&self, arguments: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        let (_, method, target) = parsed(arguments)?;
        Ok(resource(&target, method))
    }

    fn summarise(&self, arguments: &Value) -> String {
        let method = arguments.get("method").and_then(Value::as_str).unwrap_or("GET");
        format!("{method} {}", self.declaration.summarise(arguments))
    }

    fn consequence(&self, arguments: &Value) -> Consequence {
        let reads = arguments
            .get("method")
            .and_then(Value::as_str)
            .is_none_or(|method| method.eq_ignore_ascii_case("get") || method.eq_ignore_ascii_case("head"));
        if reads { Consequence::Contained } else { Consequence::Consequential }
    }

    fn check(&self, arguments: &Value, _: &Workspace) -> Result<(), ToolError> {
        parsed(arguments).map(drop)
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let (input, method, target) = parsed(&invocation.arguments)?;
        let grant = self.grant(invocation.effect_id.as_str(), &target, method)?;
        let mut request = FetchRequest::new(method.as_str(), input.url.clone());
        request.max_redirects = self.options.max_redirects;
        if let Some(accept) = input.accept {
            request = request.header("accept", accept.as_str());
        }
        if let Some(body) = input.body {
            let kind = input.content_type.as_deref().unwrap_or("application/json");
            request = request.header("content-type", kind).body(body.into_bytes());
        }
        let answer = tokio::select! {
            () = invocation.cancel.cancelled() => return Err(ToolError::Cancelled),
            answer = self.client.send(&grant, request) => answer.map_err(|error| refused(&error))?,
        };
        let cancel = invocation.cancel.clone();
        tokio::select! {
            () = cancel.cancelled() => Err(ToolError::Cancelled),
            output = blocking(move || told(&answer, &invocation)) => output,
        }
    }
}

/// What a call asks for.
fn parsed(arguments: &Value) -> Result<(HttpFetchInput, FetchMethod, Target), ToolError> {
    let input: HttpFetchInput = serde_json::from_value(arguments.clone())
        .map_err(|error| ToolError::argument(NAME, "arguments", "invalid", error.to_string()))?;
    let method = input.method.unwrap_or(FetchMethod::Get);
    if input.body.is_some() && method != FetchMethod::Post {
        return Err(ToolError::argument(NAME, "body", "not_allowed", "only `POST` sends a body"));
    }
    let target = Target::parse(&input.url).map_err(|error| refused(&error))?;
    Ok((input, method, target))
}

/// What a call is judged as: one request, whatever its address looks like.
fn resource(target: &Target, method: FetchMethod) -> CallResource {
    CallResource::Request(RequestTarget {
        method: method.as_str().to_owned(),
        scheme: target.scheme.to_string(),
        host: target.host.to_string(),
        port: target.port,
    })
}

/// The line of a grant for one address.
fn rule(target: &Target, method: FetchMethod) -> Result<Rule, ToolError> {
    let rule = format!("{} {}://{}:{}", method.as_str(), target.scheme, target.host, target.port);
    Rule::parse(&rule).map_err(|error| refused(&error))
}

fn refused(error: &palyra_egress::EgressError) -> ToolError {
    ToolError::Custom(Box::new(error.to_stable()))
}

/// The answer as a model reads it.
fn told(answer: &FetchResponse, invocation: &Invocation) -> Result<ToolOutput, ToolError> {
    let page = readable(answer.content_type(), &answer.body, &answer.url, &invocation.cancel);
    let page = page.ok_or(ToolError::Cancelled)?;
    let text = written(answer, &page);
    let label = Label::new(Integrity::Untrusted, Confidentiality::Public).from_source(answer.url.clone());
    let limit = invocation.limits.inline_bytes;
    let mut output = ToolOutput::text(String::new(), label).with_data(json!({
        "status": answer.status,
        "url": answer.url,
        "redirects": answer.redirects,
        "media_type": page.media_type,
        "bytes": page.bytes,
        "served": match answer.served {
            Served::Network => "network",
            Served::Revalidated => "revalidated",
            Served::Cache => "cache",
        },
    }));
    if text.len() > limit || page.kind == ContentKind::Binary {
        let bytes = if page.kind == ContentKind::Binary { answer.body.as_ref() } else { text.as_bytes() };
        let digest = invocation.artifacts.put(bytes)?;
        let media_type = if page.kind == ContentKind::Binary {
            page.media_type.clone()
        } else {
            "text/plain; charset=utf-8".to_owned()
        };
        output.artifact = Some(ArtifactRef { digest, bytes: bytes.len() as u64, media_type });
        output.truncated = text.len() > limit;
    }
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    output.content = text.get(..end).unwrap_or_default().to_owned();
    if let Some(artifact) = output.artifact.as_ref().filter(|_| output.truncated) {
        output
            .content
            .push_str(&format!("\n[the rest is in artifact {}; read on with palyra.artifact.read]", artifact.digest));
    }
    Ok(output)
}

fn written(answer: &FetchResponse, page: &Readable) -> String {
    let mut text = format!("HTTP {} from {} ({})\n", answer.status, answer.url, page.media_type);
    if let Some(title) = &page.title {
        text.push_str(&format!("title: {title}\n"));
    }
    text.push('\n');
    text.push_str(&page.text);
    if !page.links.is_empty() {
        text.push_str("\n\nlinks:\n");
        for link in page.links.iter().take(LISTED_LINKS) {
            text.push_str(&format!("- {} <{}>\n", link.text, link.url));
        }
        if page.links.len() > LISTED_LINKS {
            text.push_str(&format!("- and {} more\n", page.links.len() - LISTED_LINKS));
        }
    }
    text
}

#[cfg(test)]
#[path = "fetch_tests.rs"]
mod tests;
