//! Symbolic links of a workspace, resolved in both directions: where a path leads, and by which other paths a file is reached.
//!
//! A file is stored under one path and may be executed under another: `docs/c/config.toml` is `.cargo/config.toml` where `.cargo` is a link to `docs/c`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Links that are followed one after the other; more are a circle. The kernel's own limit.
const FOLLOWED: usize = 40;
/// Most paths of one file that are looked at.
const PATHS: usize = 4_096;

/// The links of a workspace, by relative paths. A link that was replaced during a run has all its targets.
#[derive(Debug, Clone, Default)]
pub(super) struct Links {
    targets: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    /// The same from the other end, resolved; filled by [`Links::resolve_all`].
    leading_to: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
}

/// By which paths a file is reached.
pub(super) enum Paths {
    /// All of them, its own first.
    All(Vec<PathBuf>),
    /// More than anybody looks at.
    TooMany,
}

impl Links {
    /// Adds a link. `target` is what it says; the workspace's own absolute path is `root`. One that leads outside of the workspace is of no interest.
    pub(super) fn add(&mut self, link: PathBuf, target: &Path, root: &Path) {
        let Some(target) = relative_target(&link, target, root) else { return };
        self.targets.entry(link).or_default().insert(target);
    }

    /// Takes over what another survey found.
    pub(super) fn join(&mut self, other: &Self) {
        for (link, targets) in &other.targets {
            self.targets.entry(link.clone()).or_default().extend(targets.iter().cloned());
        }
    }

    /// To be called when all links are added.
    pub(super) fn resolve_all(&mut self) {
        self.leading_to.clear();
        for (link, targets) in &self.targets {
            for target in targets {
                let Some(real) = self.resolved(target) else { continue };
                self.leading_to.entry(real).or_default().insert(link.clone());
            }
        }
    }

    /// Where a path leads, part by part as the kernel follows it; `None` if it leaves the workspace or goes round in a circle.
    pub(super) fn resolved(&self, path: &Path) -> Option<PathBuf> {
        let mut left: Vec<Component<'_>> = path.components().rev().collect();
        let (mut here, mut followed) = (PathBuf::new(), 0);
        while let Some(part) = left.pop() {
            match part {
                Component::CurDir => continue,
                Component::ParentDir => {
                    if !here.pop() {
                        return None;
                    }
                    continue;
                }
                Component::Prefix(_) | Component::RootDir => return None,
                Component::Normal(name) => here.push(name),
            }
            let Some(targets) = self.targets.get(&here) else { continue };
            followed += 1;
            if followed > FOLLOWED {
                return None;
            }
            // Of several targets only the last is looked at on the way; each one is by itself.
            let target = targets.last()?;
            left.extend(target.components().rev());
            here.clear();
        }
        Some(here)
    }

    /// The paths by which a file, stored at `path`, is reached.
    pub(super) fn paths_of(&self, path: &Path) -> Paths {
        let mut found = vec![path.to_owned()];
        let mut known = BTreeSet::from([path.to_owned()]);
        // The links that led to each, so that no circle is followed round and round.
        let mut through: Vec<Vec<&PathBuf>> = vec![Vec::new()];
        let mut next = 0;
        while let (Some(here), Some(links)) = (found.get(next).cloned(), through.get(next).cloned()) {
            next += 1;
            for above in here.ancestors() {
                let Some(leading) = self.leading_to.get(above) else { continue };
                let rest = here.strip_prefix(above).unwrap_or_else(|_| Path::new(""));
                for link in leading.iter().filter(|link| !links.contains(link)) {
                    let other = joined(link, rest);
                    if !known.insert(other.clone()) {
                        continue;
                    }
                    if found.len() == PATHS {
                        return Paths::TooMany;
                    }
                    found.push(other);
                    through.push(links.iter().copied().chain([link]).collect());
                }
            }
        }
        Paths::All(found)
    }
}

/// `join` without a slash behind a path that nothing is joined to.
fn joined(path: &Path, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() { path.to_owned() } else { path.join(rest) }
}

/// What a link says, from the workspace's root on; `None` if it leads outside.
fn relative_target(link: &Path, target: &Path, root: &Path) -> Option<PathBuf> {
    match target.strip_prefix(root) {
        Ok(inside) => Some(inside.to_owned()),
        Err(_) if target.is_absolute() => None,
        Err(_) => Some(link.parent().unwrap_or_else(|| Path::new("")).join(target)),
    }
}

/// A relative path without `.` and `..`; `None` if it leads above where it begins.
pub(super) fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => normal.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !normal.pop() {
                    return None;
                }
            }
            Component::Prefix(_) | Component::RootDir => return None,
        }
    }
    Some(normal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(all: &[(&str, &str)]) -> Links {
        let mut links = Links::default();
        for (link, target) in all {
            links.add(PathBuf::from(link), Path::new(target), Path::new("/w"));
        }
        links.resolve_all();
        links
    }

    fn paths(links: &Links, path: &str) -> Vec<String> {
        let Paths::All(found) = links.paths_of(Path::new(path)) else { panic!("too many") };
        found.iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn a_file_is_reached_through_every_link_above_it() {
        /// Links, and the paths by which they lead to the file.
        type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);
        let cases: [Case<'_>; 9] = [
            (&[], &[]),
            (&[(".cargo", "docs/c")], &[".cargo/config.toml"]),
            (&[(".cargo", "/w/docs/c")], &[".cargo/config.toml"]),
            (&[("sub/.cargo", "../docs/../docs/c/")], &["sub/.cargo/config.toml"]),
            (&[(".cargo", "lib/../c"), ("lib", "docs/x")], &[".cargo/config.toml"]),
            (&[(".cargo/config.toml", "../docs/c/config.toml")], &[".cargo/config.toml"]),
            // One link leads to another, or through it.
            (&[(".cargo", "a"), ("a", "docs/c")], &[".cargo/config.toml", "a/config.toml"]),
            (&[(".cargo", "b/c"), ("b", "docs")], &[".cargo/config.toml", "b/c/config.toml"]),
            (&[("elsewhere", "/etc"), ("above", "../../x")], &[]),
        ];
        for (all, expected) in cases {
            let mut found = paths(&links(all), "docs/c/config.toml");
            assert_eq!(found.remove(0), "docs/c/config.toml");
            found.sort();
            assert_eq!(found, expected, "{all:?}");
        }
    }

    #[test]
    fn circles_end_and_too_many_paths_are_said() {
        let circle = links(&[("a/again", ".."), ("b", "b"), ("x", "y"), ("y", "x")]);
        assert!(paths(&circle, "a/f").contains(&"a/again/a/f".to_owned()));
        let many: Vec<(String, String)> = (0..20).map(|number| (format!("d{number}"), ".".to_owned())).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|(link, target)| (link.as_str(), target.as_str())).collect();
        assert!(matches!(links(&many).paths_of(Path::new("f")), Paths::TooMany));
    }

    #[test]
    fn a_path_is_resolved_through_links() {
        let links = links(&[("a", "docs/c"), ("b", "a")]);
        assert_eq!(links.resolved(Path::new("b/x")).unwrap(), Path::new("docs/c/x"));
        assert_eq!(links.resolved(Path::new("../x")), None);
    }
}
