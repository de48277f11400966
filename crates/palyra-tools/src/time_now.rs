//! `palyra.time.now`: the instant of the injected clock, so that a replay tells the time of the run and not of the replay.

use async_trait::async_trait;
use palyra_common::{Confidentiality, Integrity, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::input::parse;
use crate::{
    CallResource, EffectScope, Invocation, Offering, Tool, ToolDeclaration, ToolError, ToolName, ToolOutput, Workspace,
};

/// Tells the current date and time as RFC 3339 and as milliseconds since 1970 (UTC).
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TimeNowInput {
    /// Fixed offset from UTC to show the time in, such as `+02:00` or `-05:30`. UTC when left out.
    #[serde(default)]
    offset: Option<String>,
}

/// The tool.
#[derive(Debug)]
pub(crate) struct TimeNow(ToolDeclaration);

impl TimeNow {
    pub(crate) fn new() -> Self {
        let name = ToolName::builtin("palyra.time.now");
        Self(
            ToolDeclaration::of::<TimeNowInput>(name, "Current time", "tell the time")
                .reads(EffectScope::Pure)
                .output(Integrity::System, Confidentiality::Public)
                .offered(Offering::OnDemand),
        )
    }
}

#[async_trait]
impl Tool for TimeNow {
    fn declaration(&self) -> &ToolDeclaration {
        &self.0
    }

    fn resource(&self, _: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        Ok(CallResource::tool("time"))
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let input: TimeNowInput = parse(&self.0.name, invocation.arguments)?;
        let now = invocation.clock.now();
        let text = match input.offset.as_deref() {
            None | Some("Z" | "z") => now.to_rfc3339(),
            Some(offset) => {
                let minutes = minutes(offset).ok_or_else(|| {
                    let message = format!("`offset` must look like `+02:00`, not `{offset}`");
                    ToolError::argument(self.0.name.as_str(), "offset", "invalid_offset", message)
                })?;
                let shifted = Timestamp(now.0.saturating_add(minutes * 60_000)).to_rfc3339();
                format!("{}{offset}", shifted.trim_end_matches('Z'))
            }
        };
        let data = json!({ "rfc3339": text, "unix_ms": now.0 });
        let content = format!("{text} (unix_ms {})", now.0);
        Ok(ToolOutput::text(content, self.0.output.clone()).with_data(data))
    }
}

/// Minutes east of UTC of `+HH:MM`, within what the standard allows.
fn minutes(offset: &str) -> Option<i64> {
    let (sign, rest) = match offset.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let number = |text: &str, most: i64| {
        let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>().ok().filter(|value| digits && *value <= most)
    };
    Some(sign * (number(hours, 23)? * 60 + number(minutes, 59)?))
}
