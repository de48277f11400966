use super::*;

fn parse(text: &str) -> Result<McpConfig, McpError> {
    McpConfig::parse(text, Path::new("servers.toml"))
}

fn files_server() -> ServerConfig {
    ServerConfig::stdio(StdioConfig {
        command: "npx".to_owned(),
        args: vec!["-y".to_owned(), "a \"quoted\" one".to_owned()],
        env: vec!["PATH".to_owned()],
        cwd: None,
    })
}

#[test]
fn what_is_not_understood_is_refused() {
    for (text, words) in [
        ("", "version"),
        ("version = 2", "version is 2"),
        ("version = 1\nsevers = {}", "severs"),
        ("version = 1\n[servers.a]", "either"),
        ("version = 1\n[servers.a.stdio]\ncommand = 'x'\n[servers.a.http]\nurl = 'https://x'", "either"),
        ("version = 1\n[servers.a.stdio]\ncommand = 'x'\nenvironment = []", "environment"),
        ("version = 1\n[servers.a.stdio]\ncommand = ' '", "empty"),
        ("version = 1\n[servers.a.stdio]\ncommand = 'x'\nenv = ['A=1']", "not values"),
        ("version = 1\n[servers.a.stdio]\ncommand = 'x'\ncwd = 'here'", "absolute"),
        ("version = 1\n[servers.A.stdio]\ncommand = 'x'", "not a valid server name"),
        ("version = 1\n[servers.a.http]\nurl = 'http://example.com/mcp'", "plain http"),
        ("version = 1\n[servers.a.http]\nurl = 'file:///etc/passwd'", "no host"),
        ("version = 1\n[servers.a.http]\nurl = 'ftp://x.example'", "neither"),
        ("version = 1\n[servers.a.http]\nurl = 'https://me:pw@x.example'", "password"),
        ("version = 1\n[servers.a.http]\nurl = 'https://x'\nheaders = { A = 'hunter2' }", "reference"),
        ("version = 1\n[servers.a.http]\nurl = 'https://x'\nheaders = { Mcp-Session-Id = 'env:A' }", "protocol sets"),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
        assert!(!error.contains("hunter2") || !text.contains("pw@"), "{error}");
    }
}

#[test]
fn this_machine_may_be_reached_without_tls() {
    for url in ["http://127.0.0.1:8000/mcp", "http://[::1]/mcp", "http://LOCALHOST/x", "https://x.example/mcp"] {
        let config = HttpConfig { url: url.to_owned(), headers: BTreeMap::new() };
        assert!(config.parsed_url().is_ok(), "{url}");
    }
    for url in ["http://127.0.0.1.example.com/", "http://localhost.example.com", "http://10.0.0.1/"] {
        let config = HttpConfig { url: url.to_owned(), headers: BTreeMap::new() };
        assert!(config.parsed_url().is_err(), "{url}");
    }
}

#[test]
fn a_server_with_an_address_of_this_machine_is_local_with_tls_too() {
    let http = |url: &str| TransportConfig::Http(HttpConfig { url: url.to_owned(), headers: BTreeMap::new() });
    for url in ["http://127.0.0.1:8000/mcp", "https://127.0.0.1:8443/mcp", "https://[::1]/mcp", "https://LOCALHOST/x"] {
        assert!(http(url).is_local(), "{url}");
    }
    for url in ["https://x.example/mcp", "https://localhost.example.com/", "https://10.0.0.1/"] {
        assert!(!http(url).is_local(), "{url}");
    }
}

#[test]
fn edits_keep_comments_and_other_servers() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("mcp").join("servers.toml");
    let files = ServerName::new("files").unwrap();
    let web = ServerName::new("web").unwrap();
    add(&path, &files, &files_server()).unwrap();
    let with_comment = format!("# mine\n{}", std::fs::read_to_string(&path).unwrap());
    std::fs::write(&path, with_comment).unwrap();
    let http = ServerConfig::http(HttpConfig {
        url: "https://x.example/mcp".to_owned(),
        headers: BTreeMap::from([("Authorization".to_owned(), "env:TOKEN".parse().unwrap())]),
    });
    add(&path, &web, &http).unwrap();
    let config = McpConfig::load(&path).unwrap();
    assert_eq!(config.servers.get("files"), Some(&files_server()));
    assert_eq!(config.servers.get("web"), Some(&http));
    assert!(matches!(add(&path, &web, &http), Err(McpError::ServerExists { .. })));
    let mistyped = ServerName::new("flies").unwrap();
    assert_eq!(
        remove(&path, &mistyped).unwrap_err().to_string(),
        "there is no MCP server `flies`; did you mean `files`?"
    );
    remove(&path, &files).unwrap();
    assert!(matches!(remove(&path, &files), Err(McpError::ServerNotFound { .. })));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("# mine\n") && !text.contains("npx"), "{text}");
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
}
