//! What `palyra run` offers before a run begins: to show and endorse instruction files that would not be followed.
//!
//! Asked on a terminal only, once for each content. Whoever says no is not asked again until the file changes; a run says in any case what it does not follow.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use palyra_client::Client;
use palyra_client::api::{ListFileLabelsParams, ListFileLabelsResponse};
use palyra_client::command::Command;
use palyra_common::{Digest, Environment, env_vars};

use super::endorse::endorse;
use super::show::{Shown, ask, found_at, show};
use crate::console::one_line;
use crate::context::Context;
use crate::error::CliError;

/// Offers it for the instruction files of a workspace, if somebody can be asked.
pub(crate) async fn offer_instructions(client: &Client, workspace: &str, context: &Context) -> Result<(), CliError> {
    if workspace.is_empty() || !context.console.is_text() || !std::io::stdin().is_terminal() {
        return Ok(());
    }
    let params = ListFileLabelsParams { workspace: Some(workspace.to_owned()) };
    // Whoever may run a task need not be allowed to endorse anything; then there is nothing to offer.
    let listed: Result<ListFileLabelsResponse, _> = client.execute(&Command::FileLabels(params)).await;
    let Ok(page) = listed else { return Ok(()) };
    for file in page.instructions {
        let (Some(why), Some(digest)) = (file.withheld, file.digest) else { continue };
        if was_declined(digest, &context.environment) {
            continue;
        }
        let Ok(Shown::File { found, bytes }) = found_at(&Path::new(workspace).join(&file.path)) else { continue };
        // What is shown has to be what the daemon spoke of.
        if found.digest != digest {
            continue;
        }
        let name = one_line(&file.path);
        context
            .console
            .remark(&format!("{name} has instructions for runs here, which are not followed: {}.", one_line(&why)));
        if !ask(
            "Show it, so that you can endorse it? (anything but y declines it until the file changes) [y/N] ",
            context,
        )? {
            decline(digest, &context.environment);
            continue;
        }
        show(&found, &bytes, context)?;
        if ask("Follow exactly this from now on? [y/N] ", context)? {
            endorse(client, workspace, vec![found], context).await?;
        } else {
            decline(digest, &context.environment);
        }
    }
    Ok(())
}

/// Where contents are noted that somebody was asked about and did not endorse. It decides nothing but whether to ask again.
fn declined_file(environment: &Environment) -> Option<PathBuf> {
    let home = environment.get(env_vars::HOME)?;
    Some(Path::new(home).join(".cache/palyra/declined-instructions"))
}

fn was_declined(digest: Digest, environment: &Environment) -> bool {
    let text = declined_file(environment).and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    text.lines().any(|line| line == digest.to_string())
}

fn decline(digest: Digest, environment: &Environment) {
    let Some(path) = declined_file(environment) else { return };
    let directory = path.parent().unwrap_or(&path).to_owned();
    // If it cannot be noted, the person is asked once more.
    let noted = std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::OpenOptions::new().create(true).append(true).open(&path))
        .and_then(|mut file| writeln!(file, "{digest}"));
    drop(noted);
}
