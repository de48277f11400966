//! Addresses of repositories, as values: what an operator names and what git's configuration has are compared by host and path.

use std::fmt;
use std::path::PathBuf;

/// Where a repository was cloned from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remote {
    /// On another machine: the host in small letters, and the parts of the path.
    Host {
        /// Without port and user.
        host: String,
        /// Without `.git` at the end.
        path: Vec<String>,
    },
    /// On this machine.
    Directory(PathBuf),
}

impl Remote {
    /// Reads an address as git does: a URL, `user@host:path`, or a path on this machine.
    #[must_use]
    pub fn of_git(text: &str) -> Self {
        if let Some((scheme, rest)) = text.split_once("://") {
            if scheme.eq_ignore_ascii_case("file") {
                return Self::Directory(PathBuf::from(rest.trim_start_matches("localhost")));
            }
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            return Self::host(authority, path);
        }
        match text.split_once(':') {
            // A colon behind a slash is part of a path.
            Some((host, path)) if !host.contains('/') && !host.is_empty() => Self::host(host, path),
            _ => Self::Directory(PathBuf::from(text)),
        }
    }

    /// Reads what an operator writes: the same without a path on this machine, or `host/path`.
    #[must_use]
    pub(super) fn of_operator(text: &str) -> Option<Self> {
        let written_out = text.contains("://") || text.split_once(':').is_some_and(|(host, _)| !host.contains('/'));
        let remote = if written_out {
            Self::of_git(text)
        } else {
            let (host, path) = text.split_once('/').unwrap_or((text, ""));
            Self::host(host, path)
        };
        match &remote {
            Self::Host { host, .. } if host.contains('.') || host == "localhost" => Some(remote),
            Self::Host { .. } | Self::Directory(_) => None,
        }
    }

    fn host(authority: &str, path: &str) -> Self {
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let host = match host.rsplit_once(':') {
            Some((name, port)) if is_port(port) => name,
            _ => host,
        };
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let path = path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        Self::Host { host: host.trim_end_matches('.').to_ascii_lowercase(), path }
    }

    /// Whether another address is this one or lies below it, part by part.
    pub(super) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Host { host, path }, Self::Host { host: its_host, path: its_path }) => {
                let climbs = its_path.iter().any(|part| part == ".." || part == ".");
                host == its_host && its_path.starts_with(path) && !climbs
            }
            (Self::Host { .. } | Self::Directory(_), _) => false,
        }
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whoever wrote the configuration of a repository chose this text.
        let plain = |text: &str| -> String { text.chars().filter(|c| !c.is_control()).take(200).collect() };
        match self {
            Self::Host { host, path } => {
                let path: String = path.iter().map(|part| format!("/{part}")).collect();
                write!(f, "{}{}", plain(host), plain(&path))
            }
            Self::Directory(path) => f.write_str(&plain(&path.display().to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_repository_has_many_spellings() {
        for text in [
            "https://github.com/me/x.git",
            "https://GitHub.com/me/x",
            "https://token@github.com:443/me/x/",
            "git@github.com:me/x.git",
            "ssh://git@github.com:22/me/x.git",
        ] {
            assert_eq!(Remote::of_git(text).to_string(), "github.com/me/x", "{text}");
        }
        for text in ["/srv/git/x.git", "../x", "file:///srv/git/x.git", "./a:b"] {
            assert!(matches!(Remote::of_git(text), Remote::Directory(_)), "{text}");
        }
    }

    #[test]
    fn an_operator_names_a_host_an_owner_or_a_repository() {
        let covers = |named: &str, remote: &str| Remote::of_operator(named).unwrap().covers(&Remote::of_git(remote));
        assert!(covers("github.com/me", "git@github.com:me/x.git"));
        assert!(covers("github.com/me/x", "https://github.com/me/x.git"));
        assert!(covers("git.example.org", "https://git.example.org/a/b"));
        assert!(covers("https://github.com/me", "ssh://git@github.com/me/x"));
        assert!(!covers("github.com/me", "https://github.com/me-too/x"));
        assert!(!covers("github.com/me", "https://github.com.evil.example/me/x"));
        assert!(!covers("github.com/me", "https://evil.example/github.com/me/x"));
        assert!(!covers("github.com/me", "https://github.com/me/../eve/x"));
        assert!(!covers("github.com/me", "https://github.com@evil.example/me/x"));
        assert_eq!(Remote::of_operator("me"), None);
    }
}
