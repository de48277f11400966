//! Directories that package managers fill with what others wrote.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Names that nothing else has, wherever they stand, also above the workspace.
const ANYWHERE: [&[&str]; 24] = [
    &["node_modules"],
    &["bower_components"],
    &["jspm_packages"],
    &[".pnpm-store"],
    &[".yarn"],
    &["site-packages"],
    &["dist-packages"],
    &[".venv"],
    &[".tox"],
    &[".nox"],
    &[".eggs"],
    &[".bundle"],
    &[".cargo", "registry"],
    &[".cargo", "git"],
    &["pkg", "mod"],
    &[".gradle"],
    &[".m2"],
    &[".ivy2"],
    &[".nuget"],
    &[".terraform"],
    &["elm-stuff"],
    &["Carthage", "Checkouts"],
    &[".gem"],
    &[".npm"],
];

/// Names that a directory of somebody's own may have as well; they count inside of the workspace only.
const INSIDE: [&[&str]; 9] = [
    &["vendor"],
    &["third_party"],
    &["third-party"],
    &["thirdparty"],
    &["venv"],
    &["Pods"],
    &["target", "package"],
    &["_vendor"],
    &["vendored"],
];

/// The outermost such directory that a directory lies in, or that it is.
pub(super) fn directory_of(root: &Path, path: &Path) -> Option<PathBuf> {
    let parts: Vec<&OsStr> = path.iter().collect();
    let above = root.iter().count();
    let matches = |names: &[&str], end: usize| {
        let from = end.checked_sub(names.len())?;
        let found = parts.get(from..end)?;
        found.iter().zip(names).all(|(part, name)| part.eq_ignore_ascii_case(name)).then_some(from)
    };
    (1..=parts.len()).find_map(|end| {
        let anywhere = ANYWHERE.iter().any(|names| matches(names, end).is_some());
        let inside = || INSIDE.iter().any(|names| matches(names, end).is_some_and(|from| from >= above));
        (anywhere || inside()).then(|| parts.iter().take(end).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_package_managers_are_known() {
        let of = |root: &str, path: &str| directory_of(Path::new(root), Path::new(path));
        for (root, path, directory) in [
            ("/w", "/w/node_modules/x/README.md", "/w/node_modules"),
            ("/w", "/w/a/node_modules/x/node_modules/y/z.js", "/w/a/node_modules"),
            ("/w", "/w/Vendor/x.go", "/w/Vendor"),
            ("/w", "/w/target/package/x/lib.rs", "/w/target/package"),
            ("/home/a/.cargo/registry/src/x", "/home/a/.cargo/registry/src/x/README.md", "/home/a/.cargo/registry"),
            ("/w", "/w/.venv/lib/python3/site-packages/x.py", "/w/.venv"),
            ("/w/vendor/x", "/w/vendor/x/third_party/y", "/w/vendor/x/third_party"),
        ] {
            assert_eq!(of(root, path), Some(PathBuf::from(directory)), "{path}");
        }
        for (root, path) in [
            ("/w", "/w/src/vendors/x.rs"),
            ("/vendor/w", "/vendor/w/src/x.rs"),
            ("/w", "/w/target/debug/x"),
            ("/w", "/w/package/target/x"),
            ("/w", "/w/my_node_modules/x"),
            ("/home/a/.cargo", "/home/a/.cargo/config.toml"),
        ] {
            assert_eq!(of(root, path), None, "{path}");
        }
    }
}
