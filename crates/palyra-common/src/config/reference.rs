//! The reference page of configuration keys, environment variables and profiles, generated from the registry.

use std::fmt::Write as _;

use super::key::{EnvNames, KEYS, KeySpec};
use super::schema::SECTIONS;
use crate::{ContractEnum as _, DeploymentProfile, env_vars};

/// The reference page as Markdown.
#[must_use]
pub fn generate_reference() -> String {
    let mut page = String::from(
        "# Configuration reference\n\n\
         <!-- Generated from the key registry; change the doc comments there, not this page. -->\n\n\
         Palyra reads `palyra.toml` (first line `version = 1`) from the path in `PALYRA_CONFIG`, or from the first of\n\
         `$XDG_CONFIG_HOME/palyra/`, `~/.config/palyra/` and `/etc/palyra/` that has one. A value is taken from the first of\n\
         environment, file, deployment profile and default that gives one; `palyra config explain KEY` says which it was.\n\
         An unknown key is an error. An empty environment variable counts as not set; lists in the environment are comma\n\
         separated. The daemon reads its configuration once, when it starts.\n\n## Keys\n",
    );
    for (section, doc) in SECTIONS {
        push(&mut page, format_args!("\n### `[{section}]`\n\n{}\n\n", doc.trim()));
        page.push_str("| key | type | default | environment | meaning |\n|---|---|---|---|---|\n");
        for key in KEYS.iter().filter(|key| key.section() == *section) {
            push(
                &mut page,
                format_args!(
                    "| `{}` | {} | {} | {} | {} |\n",
                    key.name,
                    cell(&key.value_type.describe()),
                    default_cell(key),
                    environment_cell(key),
                    cell(key.doc())
                ),
            );
        }
    }
    page.push_str("\n## Other environment variables\n\n| variable | meaning |\n|---|---|\n");
    for variable in env_vars::VARIABLES {
        push(&mut page, format_args!("| `{}` | {} |\n", variable.name, cell(variable.doc)));
    }
    page.push_str(
        "\n## Deployment profiles\n\n| profile | also read | meaning | defaults it changes |\n|---|---|---|---|\n",
    );
    for profile in DeploymentProfile::ALL {
        let spec = profile.spec();
        let aliases: Vec<String> = profile.aliases().iter().map(|alias| format!("`{alias}`")).collect();
        let changed: Vec<String> =
            spec.config_defaults.iter().map(|(key, value)| format!("`{key} = {value}`")).collect();
        push(
            &mut page,
            format_args!(
                "| `{profile}` | {} | {} | {} |\n",
                list_or_dash(&aliases),
                cell(spec.description),
                list_or_dash(&changed)
            ),
        );
    }
    page
}

/// Writing to a `String` cannot fail.
fn push(page: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = page.write_fmt(text);
}

fn default_cell(key: &KeySpec) -> String {
    match key.default().to_toml() {
        Some(value) => format!("`{}`", cell(value.to_string().trim())),
        None => "none".to_owned(),
    }
}

fn environment_cell(key: &KeySpec) -> String {
    match key.env {
        EnvNames::FileOnly => "not allowed".to_owned(),
        EnvNames::Standard | EnvNames::Also(_) | EnvNames::AlsoSecret(_) => {
            key.env_vars().iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        }
    }
}

fn list_or_dash(parts: &[String]) -> String {
    if parts.is_empty() { "–".to_owned() } else { parts.join(", ") }
}

/// Text made fit for a table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
