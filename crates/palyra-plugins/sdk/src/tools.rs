//! Plugins that offer tools: the trait, its shorter form as a macro, and JSON in between.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::HostFailure;
use crate::bindings::tool::exports::palyra::plugin::tool as wit;

/// One tool as the model sees it. `palyra skills build` writes these from `skill.toml`, so that manifest and plugin say the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    /// Unique in the plugin.
    pub id: &'static str,
    /// A few words for people.
    pub name: &'static str,
    /// What the model reads.
    pub description: &'static str,
    /// JSON Schema (2020-12) of the input.
    pub input_schema: &'static str,
    /// JSON Schema (2020-12) of the output.
    pub output_schema: &'static str,
}

/// Why a call gave nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The input cannot be worked with; the model may try another.
    InvalidInput(String),
    /// The work could not be done.
    Failed(String),
}

impl Failure {
    /// The input cannot be worked with.
    pub fn invalid_input(why: impl fmt::Display) -> Self {
        Self::InvalidInput(why.to_string())
    }

    /// The work could not be done.
    pub fn failed(why: impl fmt::Display) -> Self {
        Self::Failed(why.to_string())
    }

    /// Nobody offers this tool.
    #[must_use]
    pub fn unknown_tool(tool: &str) -> Self {
        Self::InvalidInput(format!("there is no tool `{tool}`"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidInput(why) | Self::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Failure {}

impl From<HostFailure> for Failure {
    fn from(failure: HostFailure) -> Self {
        Self::Failed(failure.to_string())
    }
}

/// A plugin of tools. Most are written with [`tool_plugin!`](crate::tool_plugin).
pub trait Tools {
    /// What is offered.
    const TOOLS: &'static [Tool];

    /// Carries out one call; input and output are JSON texts.
    fn call(tool: &str, input: &str) -> Result<String, Failure>;
}

/// Reads an input, hands it to `handler` and writes the output.
pub fn answer<I, O>(input: &str, handler: impl FnOnce(I) -> Result<O, Failure>) -> Result<String, Failure>
where
    I: DeserializeOwned,
    O: Serialize,
{
    let input = serde_json::from_str(input).map_err(Failure::invalid_input)?;
    serde_json::to_string(&handler(input)?).map_err(Failure::failed)
}

impl<T: Tools> wit::Guest for T {
    fn describe() -> Vec<wit::Description> {
        T::TOOLS
            .iter()
            .map(|tool| wit::Description {
                id: tool.id.to_owned(),
                name: tool.name.to_owned(),
                description: tool.description.to_owned(),
                input_schema: tool.input_schema.to_owned(),
                output_schema: tool.output_schema.to_owned(),
            })
            .collect()
    }

    fn call(tool: String, input: String) -> Result<String, wit::Failure> {
        <T as Tools>::call(&tool, &input).map_err(|failure| match failure {
            Failure::InvalidInput(why) => wit::Failure::InvalidInput(why),
            Failure::Failed(why) => wit::Failure::Failed(why),
        })
    }
}

/// Makes a type that implements [`Tools`](crate::Tools) what the component exports.
#[macro_export]
macro_rules! export_tools {
    ($plugin:ident) => {
        $crate::bindings::tool::export_tool_plugin!($plugin with_types_in $crate::bindings::tool);
    };
}

/// A plugin of tools in one line per tool: first the list that `palyra skills build` writes, then the function of each. A function takes anything that can be
/// deserialised and returns `Result<anything that can be serialised, Failure>`.
#[macro_export]
macro_rules! tool_plugin {
    ($tools:expr; $($id:literal => $handler:expr),+ $(,)?) => {
        struct PalyraTools;

        impl $crate::Tools for PalyraTools {
            const TOOLS: &'static [$crate::Tool] = $tools;

            fn call(tool: &str, input: &str) -> ::core::result::Result<::std::string::String, $crate::Failure> {
                match tool {
                    $($id => $crate::answer(input, $handler),)+
                    _ => ::core::result::Result::Err($crate::Failure::unknown_tool(tool)),
                }
            }
        }

        $crate::export_tools!(PalyraTools);
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Doubling;

    impl Tools for Doubling {
        const TOOLS: &'static [Tool] =
            &[Tool { id: "double", name: "Double", description: "Twice", input_schema: "{}", output_schema: "{}" }];

        fn call(tool: &str, input: &str) -> Result<String, Failure> {
            match tool {
                "double" => {
                    answer(input, |number: i64| number.checked_mul(2).ok_or_else(|| Failure::failed("too large")))
                }
                _ => Err(Failure::unknown_tool(tool)),
            }
        }
    }

    fn call(tool: &str, input: &str) -> Result<String, String> {
        <Doubling as wit::Guest>::call(tool.to_owned(), input.to_owned()).map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn outputs_and_both_kinds_of_failure_reach_the_host() {
        assert_eq!(call("double", "21"), Ok("42".to_owned()));
        assert!(call("double", "\"x\"").unwrap_err().contains("InvalidInput"));
        assert!(call("triple", "1").unwrap_err().contains("there is no tool `triple`"));
        assert!(call("double", &i64::MAX.to_string()).unwrap_err().contains("Failed"));
    }

    #[test]
    fn what_is_offered_is_described() {
        let described = <Doubling as wit::Guest>::describe();
        assert_eq!(described.len(), 1);
        assert_eq!(described[0].id, "double");
    }
}
