use palyra_common::ToStableError as _;

use super::*;
use crate::accounts::ProviderKind;

fn anthropic() -> Account {
    let key = AccountKey { name: "main".to_owned(), key: "env:ANTHROPIC_API_KEY".parse().unwrap() };
    Account { keys: vec![key], ..Account::new(ProviderKind::Anthropic) }
}

#[test]
fn a_first_account_makes_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("palyra").join("models.toml");
    let model = ModelName::new("anthropic", "claude-sonnet-4-5");
    let accounts = accept(&path, &anthropic(), &model, &[]).unwrap();
    assert_eq!(accounts.routes.default, [model]);
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        "version = 1\n\n[providers.anthropic]\nkind = \"anthropic\"\n\n[[providers.anthropic.keys]]\nname = \"main\"\n\
         key = \"env:ANTHROPIC_API_KEY\"\n\n[routes]\ndefault = [\"anthropic/claude-sonnet-4-5\"]\n"
    );
    assert_eq!(Accounts::load(&path).unwrap(), accounts);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn edits_keep_comments_and_the_rest_of_the_route() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("models.toml");
    let before = "# mine\nversion = 1\n[providers.local] # at home\nkind = \"ollama\"\n\n[routes]\n# order matters\ndefault = [\"local/qwen3\"] # for now\n";
    std::fs::write(&path, before).unwrap();
    add_provider(&path, "anthropic", &anthropic()).unwrap();
    let model = ModelName::new("anthropic", "claude-sonnet-4-5");
    let local = ModelName::new("local", "qwen3");
    let accounts = set_default(&path, &model, &[]).unwrap();
    assert_eq!(
        accounts.routes.default,
        std::slice::from_ref(&model),
        "what was the default is no fallback unless somebody says so"
    );
    let accounts = set_default(&path, &model, std::slice::from_ref(&local)).unwrap();
    assert_eq!(accounts.routes.default, [model.clone(), local.clone()]);
    let spare = AccountKey { name: "spare".to_owned(), key: "file:/k".parse().unwrap() };
    let accounts = add_key(&path, "anthropic", &spare).unwrap();
    assert_eq!(accounts.providers.get("anthropic").unwrap().keys.len(), 2);
    let other = ModelName::new("anthropic", "claude-opus-4-5");
    let again = set_default(&path, &other, &[]).unwrap();
    assert_eq!(again.routes.default, [other, local], "configured fallbacks stay");
    let text = std::fs::read_to_string(&path).unwrap();
    for kept in ["# mine", "# at home", "# order matters", "# for now"] {
        assert!(text.contains(kept), "{text}");
    }
}

#[test]
fn what_cannot_be_meant_leaves_the_file_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("models.toml");
    std::fs::write(&path, "version = 1\n[providers.local]\nkind = \"ollama\"\n[routes]\ndefault = [\"local/q\"]\n")
        .unwrap();
    let before = std::fs::read_to_string(&path).unwrap();
    let code = |result: Result<Accounts, AccountsError>| result.unwrap_err().to_stable().code;
    assert_eq!(code(add_provider(&path, "local", &anthropic())), "model_provider_exists");
    assert_eq!(code(add_provider(&path, "Big One", &anthropic())), "model_name_invalid");
    assert_eq!(code(add_provider(&path, "x", &Account::new(ProviderKind::Gemini))), "models_file_invalid");
    assert_eq!(code(set_default(&path, &ModelName::new("locl", "q"), &[])), "model_provider_not_found");
    let still_named = remove_provider(&path, "local").unwrap_err();
    assert!(still_named.to_string().contains("`routes.default` names the provider `local`"), "{still_named}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
}
