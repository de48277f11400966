//! `palyra skills …`: write, build, sign, install and watch over skills.
//!
//! What needs no daemon (new, build, run, test, keygen, pack, sign, verify, audit of a file, what publishers sign) works without one.

mod call;
mod cases;
mod change;
mod configure;
mod hooks;
mod info;
mod install;
mod keys;
mod list;
mod local;
mod make;
mod next;
mod pack;
mod publishers;
mod registry;
mod run;
mod shown;
mod statements;
mod test;

use std::io;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use palyra_client::command::{About, Command, SkillName};
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::launcher;

const EXAMPLES: &str = "\
From an empty folder to a tool in use:
  palyra skills new hello --lang rust
  palyra skills build hello
  palyra skills test hello
  palyra skills keygen publisher.key
  palyra skills pack hello --key publisher.key
  palyra skills trust hello publisher.key.pub
  palyra skills install hello-0.1.0.palyra-skill
  palyra run \"use hello.greet to greet Ada\"";

/// What to do with skills.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum SkillsCommand {
    /// Create a skill in a new folder
    New(make::NewArguments),
    /// Compile a skill's folder into WebAssembly
    Build(make::BuildArguments),
    /// Call a tool of a folder or an archive locally, without a daemon
    #[command(override_usage = run::USAGE)]
    Run(run::RunArguments),
    /// Run the test cases in a skill's `tests` folder
    Test(test::TestArguments),
    /// Create a key to sign skills with
    Keygen(keys::KeygenArguments),
    /// Pack a built folder into an archive
    Pack(pack::PackArguments),
    /// Sign an archive
    Sign(pack::SignArguments),
    /// Verify an archive and show who signed it
    Verify {
        /// The archive
        archive: PathBuf,
    },
    /// Audit an archive or an installed skill
    Audit {
        /// The archive, or the id of an installed skill
        #[arg(value_name = "ARCHIVE|SKILL")]
        subject: String,
    },
    /// Install a skill
    Install(install::InstallArguments),
    /// Update an installed skill
    Update(install::UpdateArguments),
    /// Remove a skill and its stored data
    Remove(change::SkillArgument),
    /// List installed skills
    List,
    /// Show a skill's capabilities, settings and audit
    Info(change::SkillArgument),
    /// Change a skill's settings, secrets and grants
    Set(configure::ConfigureArguments),
    /// Enable a skill
    Enable(change::ChangeArguments),
    /// Disable a skill
    Disable(change::ChangeArguments),
    /// Quarantine a skill until it is enabled with a reason
    Quarantine(change::ChangeArguments),
    /// Trust a publisher's key
    Trust(publishers::TrustArguments),
    /// Stop trusting a publisher
    Untrust(publishers::UntrustArguments),
    /// List publishers and their keys
    Publishers,
    /// As a publisher, rotate your key
    RotateKey(statements::RotateKeyArguments),
    /// As a publisher, revoke your own keys and archives
    Revoke(statements::RevokeArguments),
    /// Import a publisher's signed key rotation or revocation list
    Import {
        /// The file, as `palyra skills rotate-key` or `palyra skills revoke` wrote it
        file: PathBuf,
    },
    /// Revoke a key permanently, whatever publisher uses it
    RevokeKey(statements::RevokeKeyArguments),
    /// Call a tool of an installed skill outside any run
    Call(call::CallArguments),
    /// List and change which skills handle which events
    #[command(subcommand)]
    Hooks(hooks::HooksCommand),
    /// Maintain a skill registry in a directory
    #[command(subcommand)]
    Registry(registry::RegistryCommand),
}

pub(super) async fn execute(command: SkillsCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        SkillsCommand::New(given) => make::begin(&given, context),
        SkillsCommand::Build(given) => make::build(&given, context),
        SkillsCommand::Run(given) => run::execute(given, context).await,
        SkillsCommand::Test(given) => test::execute(&given, context).await,
        SkillsCommand::Keygen(given) => keys::execute(&given, context),
        SkillsCommand::Pack(given) => pack::pack_folder(&given, context),
        SkillsCommand::Sign(given) => pack::sign_archive(&given, context),
        SkillsCommand::RotateKey(given) => statements::rotate_key(&given, context),
        SkillsCommand::Revoke(given) => statements::revoke(&given, context),
        SkillsCommand::Verify { archive } => pack::verify_archive(&archive, context),
        SkillsCommand::Audit { subject } if pack::names_archive(&subject) => {
            pack::audit_archive(Path::new(&subject), context)
        }
        SkillsCommand::Registry(command) => registry::execute(command, context),
        command => in_daemon(command, context).await,
    }
}

async fn in_daemon(command: SkillsCommand, context: &Context) -> Result<ExitCode, CliError> {
    // A newcomer has no daemon yet; it starts like for `palyra run`.
    let (client, _, _) = launcher::ensure(context).await?;
    match command {
        SkillsCommand::Audit { subject } => {
            let detail = client.execute(&Command::SkillAudit(About::only(SkillName(subject)))).await?;
            info::show(&detail, context)?;
            Ok(ExitCode::Ok)
        }
        SkillsCommand::Install(given) => install::execute(&client, given, context).await,
        SkillsCommand::Update(given) => install::update(&client, given, context).await,
        SkillsCommand::Remove(given) => {
            change::execute(&client, Command::SkillRemove(About::only(SkillName(given.skill))), context).await
        }
        SkillsCommand::Info(given) => info::execute(&client, given.skill, context).await,
        SkillsCommand::Set(given) => configure::execute(&client, given, context).await,
        SkillsCommand::Enable(given) => change::execute(&client, Command::SkillEnable(given.about()), context).await,
        SkillsCommand::Disable(given) => change::execute(&client, Command::SkillDisable(given.about()), context).await,
        SkillsCommand::Quarantine(given) => {
            change::execute(&client, Command::SkillQuarantine(given.about()), context).await
        }
        SkillsCommand::Trust(given) => publishers::trust(&client, given, context).await,
        SkillsCommand::Untrust(given) => publishers::untrust(&client, given, context).await,
        SkillsCommand::Publishers => publishers::list(&client, context).await,
        SkillsCommand::Import { file } => statements::import(&client, &file, context).await,
        SkillsCommand::RevokeKey(given) => statements::revoke_key(&client, given, context).await,
        SkillsCommand::Call(given) => call::execute(&client, given, context).await,
        SkillsCommand::Hooks(command) => hooks::execute(&client, command, context).await,
        _ => list::execute(&client, context).await,
    }
}

/// Says which file could not be used.
fn file<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> CliError + 'a {
    move |source| CliError::File { doing: action, path: path.to_owned(), source }
}
