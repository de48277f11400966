//! Changing `models.toml`: comments stay, the result is judged before it is written, the file is replaced at once.

use std::path::Path;

use palyra_common::config::replace_file;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, value};

use super::config::{Account, AccountKey, Accounts};
use super::error::AccountsError;
use super::name::{ModelName, check_name};
use super::read::{VERSION, check_url, read_text};
use crate::wire::PlaintextKey;

/// Adds an account to the file, which is created if there is none.
pub fn add_provider(path: &Path, name: &str, account: &Account) -> Result<Accounts, AccountsError> {
    check_name(name).map_err(|reason| argument(name, format!("a provider's name {reason}")))?;
    if let Some(url) = &account.base_url {
        check_url(url).map_err(|reason| argument(name, reason))?;
    }
    edit(path, |accounts, document| {
        if accounts.providers.contains_key(name) {
            return Err(AccountsError::ProviderExists { name: name.to_owned() });
        }
        section(document, "providers", path)?.insert(name, Item::Table(written(account)));
        Ok(())
    })
}

/// Takes an account out of the file. Routes that still name it refuse the edit by their line.
pub fn remove_provider(path: &Path, name: &str) -> Result<Accounts, AccountsError> {
    edit(path, |accounts, document| {
        known(accounts, name)?;
        section(document, "providers", path)?.remove(name);
        Ok(())
    })
}

/// Adds a key to an account.
pub fn add_key(path: &Path, provider: &str, key: &AccountKey) -> Result<Accounts, AccountsError> {
    check_name(&key.name).map_err(|reason| argument(&key.name, format!("a key's name {reason}")))?;
    edit(path, |accounts, document| {
        known(accounts, provider)?;
        let providers = section(document, "providers", path)?;
        let Some(table) = providers.get_mut(provider).and_then(Item::as_table_mut) else {
            return Err(inline(path, provider));
        };
        let keys = table.entry("keys").or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
        let Some(keys) = keys.as_array_of_tables_mut() else { return Err(inline(path, provider)) };
        keys.push(key_table(key));
        Ok(())
    })
}

/// Makes a model the first of the default route, in the place of the one that was. The models behind it stay: somebody put them there as its
/// fallbacks. With fallbacks given, those take their place.
pub fn set_default(path: &Path, model: &ModelName, fallbacks: &[ModelName]) -> Result<Accounts, AccountsError> {
    edit(path, |accounts, document| put_first(path, accounts, document, model, fallbacks))
}

/// Adds an account and makes a model of it the first of the default route, in one edit.
pub fn accept(
    path: &Path,
    account: &Account,
    model: &ModelName,
    fallbacks: &[ModelName],
) -> Result<Accounts, AccountsError> {
    check_name(&model.provider).map_err(|reason| argument(&model.provider, format!("a provider's name {reason}")))?;
    edit(path, |accounts, document| {
        if !accounts.providers.contains_key(&model.provider) {
            section(document, "providers", path)?.insert(&model.provider, Item::Table(written(account)));
            let mut accounts = accounts.clone();
            accounts.providers.insert(model.provider.clone(), account.clone());
            return put_first(path, &accounts, document, model, fallbacks);
        }
        put_first(path, accounts, document, model, fallbacks)
    })
}

fn put_first(
    path: &Path,
    accounts: &Accounts,
    document: &mut DocumentMut,
    model: &ModelName,
    fallbacks: &[ModelName],
) -> Result<(), AccountsError> {
    known(accounts, &model.provider)?;
    for fallback in fallbacks {
        known(accounts, &fallback.provider)?;
    }
    let behind = if fallbacks.is_empty() { accounts.routes.default.get(1..).unwrap_or_default() } else { fallbacks };
    let others = behind.iter().filter(|other| *other != model);
    let route: Array = std::iter::once(model).chain(others).map(ToString::to_string).collect();
    let routes = section(document, "routes", path)?;
    routes.set_implicit(false);
    match routes.get_mut("default").and_then(Item::as_value_mut) {
        Some(old) => {
            let decor = old.decor().clone();
            *old = route.into();
            *old.decor_mut() = decor;
        }
        None => {
            routes.insert("default", value(route));
        }
    }
    Ok(())
}

fn edit(
    path: &Path,
    change: impl FnOnce(&Accounts, &mut DocumentMut) -> Result<(), AccountsError>,
) -> Result<Accounts, AccountsError> {
    // A link keeps pointing to the file it pointed to: the file is replaced, not the link.
    let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let before = read_text(path)?.unwrap_or_else(|| format!("version = {VERSION}\n"));
    let accounts = Accounts::parse(&before, path)?;
    let mut document: DocumentMut = before.parse().map_err(|error: toml_edit::TomlError| AccountsError::Invalid {
        path: path.clone(),
        line: 1,
        reason: error.message().to_owned(),
    })?;
    change(&accounts, &mut document)?;
    let after = document.to_string();
    // What is written is what will be read; nothing is left to chance.
    let accounts = Accounts::parse(&after, path)?;
    if after != before || !path.exists() {
        replace_file(path, &after).map_err(|error| AccountsError::File {
            doing: "write",
            path: path.clone(),
            reason: error.to_string(),
        })?;
    }
    Ok(accounts)
}

fn section<'d>(document: &'d mut DocumentMut, name: &str, path: &Path) -> Result<&'d mut Table, AccountsError> {
    let mut empty = Table::new();
    empty.set_implicit(true);
    document.entry(name).or_insert(Item::Table(empty)).as_table_mut().ok_or_else(|| inline(path, name))
}

fn inline(path: &Path, what: &str) -> AccountsError {
    let reason = format!("`{what}` is written inline; write it as tables to have it edited");
    AccountsError::Invalid { path: path.to_owned(), line: 1, reason }
}

fn known(accounts: &Accounts, name: &str) -> Result<(), AccountsError> {
    if accounts.providers.contains_key(name) {
        return Ok(());
    }
    Err(AccountsError::unknown(name, accounts))
}

fn argument(given: &str, reason: String) -> AccountsError {
    AccountsError::Argument { given: given.to_owned(), reason }
}

/// An account as a person would write it.
fn written(account: &Account) -> Table {
    let mut table = Table::new();
    table.decor_mut().set_prefix("\n");
    table.insert("kind", value(account.kind.as_str()));
    if let Some(url) = &account.base_url {
        table.insert("base_url", value(url.as_str()));
    }
    if let Some(tokens) = account.context_tokens {
        table.insert("context_tokens", value(i64::from(tokens)));
    }
    if let Some(capabilities) = &account.capabilities {
        let names: Array = capabilities.iter().map(|capability| capability.as_str()).collect();
        table.insert("capabilities", value(names));
    }
    if account.plaintext_key == PlaintextKey::Allowed {
        table.insert("allow_plaintext_key", value(true));
    }
    if !account.timeouts.is_empty() {
        let said = account.timeouts.named().into_iter().filter_map(|(name, seconds)| Some((name, seconds?)));
        let said: InlineTable = said.map(|(name, seconds)| (name, i64::from(seconds))).collect();
        table.insert("timeouts", value(said));
    }
    if !account.keys.is_empty() {
        let keys: ArrayOfTables = account.keys.iter().map(key_table).collect();
        table.insert("keys", Item::ArrayOfTables(keys));
    }
    let mut models = Table::new();
    models.set_implicit(true);
    for (name, settings) in &account.models {
        let mut special = Table::new();
        if let Some(tokens) = settings.context_tokens {
            special.insert("context_tokens", value(i64::from(tokens)));
        }
        if let Some(capabilities) = &settings.capabilities {
            special.insert("capabilities", value(capabilities.iter().map(|one| one.as_str()).collect::<Array>()));
        }
        models.insert(name, Item::Table(special));
    }
    if !models.is_empty() {
        table.insert("models", Item::Table(models));
    }
    table
}

fn key_table(key: &AccountKey) -> Table {
    let mut table = Table::new();
    table.insert("name", value(key.name.as_str()));
    table.insert("key", value(key.key.to_string()));
    table
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
