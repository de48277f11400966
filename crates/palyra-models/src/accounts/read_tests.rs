use palyra_common::ToStableError as _;

use super::*;

const FILE: &str = r#"
version = 1

[providers.anthropic]
kind = "anthropic"
[[providers.anthropic.keys]]
name = "main"
key = "env:ANTHROPIC_API_KEY"
[[providers.anthropic.keys]]
name = "spare"
key = "file:spare.key"

[providers.local]
kind = "openai-compatible"
base_url = "http://127.0.0.1:8080/v1"
context_tokens = 16384
[providers.local.models."qwen3:8b"]
context_tokens = 40960
[providers.local.models.llava]
capabilities = ["tools", "images"]

[routes]
default = ["anthropic/claude-sonnet-4-5", "local/qwen3:8b"]
low_cost = ["local/qwen3:8b"]
[routes.tasks]
summary = ["local/qwen3:8b"]
[routes.agents]
reviewer = ["anthropic/claude-opus-4-1"]
"#;

fn parse(text: &str) -> Result<Accounts, AccountsError> {
    Accounts::parse(text, Path::new("/c/models.toml"))
}

#[test]
fn the_whole_form_is_read() {
    let accounts = parse(FILE).unwrap();
    let anthropic = accounts.providers.get("anthropic").unwrap();
    assert_eq!(anthropic.kind, ProviderKind::Anthropic);
    assert_eq!(anthropic.keys.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["main", "spare"]);
    assert_eq!(anthropic.keys.get(1).unwrap().key, SecretRef::File("/c/spare.key".into()), "anchored at the file");
    assert_eq!(anthropic.window_of("claude-sonnet-4-5"), 200_000);
    assert!(anthropic.capabilities_of("x").contains(&Capability::Images));
    let local = accounts.providers.get("local").unwrap();
    assert_eq!((local.window_of("other"), local.window_of("qwen3:8b")), (16_384, 40_960));
    assert!(!local.capabilities_of("qwen3:8b").contains(&Capability::Images));
    assert_eq!(local.capabilities_of("llava"), [Capability::Tools, Capability::Images]);
    assert_eq!(local.destination(), "http://127.0.0.1:8080/v1");
    let lists: Vec<(String, usize)> = accounts.routes.lists().map(|(name, list)| (name, list.len())).collect();
    let expected = [("default", 2), ("low_cost", 1), ("tasks.summary", 1), ("agents.reviewer", 1)];
    assert_eq!(lists, expected.map(|(name, length)| (name.to_owned(), length)));
}

#[test]
fn a_file_that_says_nothing_is_in_order_and_none_is_too() {
    assert_eq!(parse("version = 1").unwrap(), Accounts::default());
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(Accounts::load(&directory.path().join("none.toml")).unwrap(), Accounts::default());
    let error = Accounts::load(directory.path()).unwrap_err();
    assert_eq!(error.to_stable().code, "models_file_unusable");
}

#[test]
fn each_mistake_is_named_by_its_line() {
    let local = "version = 1\n[providers.local]\nkind = 'ollama'\n";
    let route = |line: &str| format!("{local}[routes]\n{line}\n");
    for (text, line, reason) in [
        (String::new(), 1, "the file must begin with `version = 1`"),
        ("version = 2".to_owned(), 1, "`version` is 2; this build reads version 1"),
        ("version = 1\n[provider.x]".to_owned(), 2, "unknown key `provider`; did you mean `providers`?"),
        (format!("{local}base_ulr = 'x'"), 4, "unknown key `providers.local.base_ulr`; did you mean `base_url`?"),
        (format!("{local}context_tokens = 'many'"), 4, "must be a whole number of at least 1024"),
        (format!("{local}timeouts = 5"), 4, "`providers.local.timeouts` must be a table"),
        (format!("{local}timeouts = {{ first_bite_seconds = 5 }}"), 4, "did you mean `first_byte_seconds`?"),
        (format!("{local}timeouts = {{ connect_seconds = 0 }}"), 4, "a whole number of seconds from 1 to 86400"),
        (format!("{local}timeouts = {{ connect_seconds = 1.5 }}"), 4, "a whole number of seconds from 1 to 86400"),
        (
            format!("{local}[providers.local.timeouts]\ntotal_seconds = 5\nfirst_byte_seconds = 9"),
            6,
            "`providers.local.timeouts.first_byte_seconds` is longer than `total_seconds`",
        ),
        (format!("{local}capabilities = ['magic']"), 4, "`magic` is not one of "),
        (format!("{local}base_url = 'ftp://x'"), 4, "is not an address such as"),
        (format!("{local}base_url = 'http://me:hunter2@x'"), 4, "may not carry a user name or a password"),
        ("version = 1\n[providers.x]\nkind = 'antropic'".to_owned(), 3, "did you mean `anthropic`?"),
        ("version = 1\n[providers.x]\nbase_url = 'http://h'".to_owned(), 3, "`providers.x.kind` is missing"),
        ("version = 1\n[providers.x]\nkind = 'openai_compatible'".to_owned(), 3, "only you know where the server is"),
        ("version = 1\n[providers.x]\nkind = 'gemini'".to_owned(), 3, "key = \"env:GEMINI_API_KEY\""),
        ("version = 1\n[providers.'Big One']\nkind = 'ollama'".to_owned(), 2, "1 to 32 of the characters"),
        (format!("{local}keys = [{{ name = 'a', key = 'hunter2' }}]"), 4, "a secret must be a reference"),
        (
            format!("{local}keys = [{{ name = 'a', key = 'env:A' }}, {{ name = 'a', key = 'env:B' }}]"),
            4,
            "is `a` twice",
        ),
        (route("default = []"), 5, "`routes.default` is empty"),
        (route("default = ['qwen3']"), 5, "names `qwen3`: it names no provider"),
        (route("default = ['locl/qwen3']"), 5, "did you mean `local`?"),
        (route("default = ['local/a', 'local/a']"), 5, "names `local/a` twice"),
        (route("defualt = ['local/a']"), 5, "unknown key `routes.defualt`; did you mean `default`?"),
        (route("tasks = { sumary = ['local/a'] }"), 5, "did you mean `summary`?"),
        ("version = 1\n[providers\n".to_owned(), 2, "not valid TOML"),
    ] {
        let error = parse(&text).unwrap_err();
        let shown = error.to_string();
        assert!(shown.starts_with(&format!("/c/models.toml:{line}: ")) && shown.contains(reason), "{text}\n{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
        assert_eq!(error.to_stable().code, "models_file_invalid");
    }
}

proptest::proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "(version = 1\n)?[\\[\\]a-z.'\"=\n {},0-9é]{0,200}") {
        let _ = parse(&text);
    }
}
