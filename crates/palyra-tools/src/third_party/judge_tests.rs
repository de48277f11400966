use super::*;

fn trusted(entries: &[&str]) -> TrustedTrees {
    let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
    TrustedTrees::read(&entries, None).unwrap()
}

fn repository(directory: &str, nested: bool, remotes: &[&str]) -> Repository {
    let origin = match remotes {
        [] => RepositoryOrigin::Local,
        ["?"] => RepositoryOrigin::Unknown,
        remotes => RepositoryOrigin::Remotes(remotes.iter().map(|remote| Remote::of_git(remote)).collect()),
    };
    Repository { directory: directory.into(), nested, origin }
}

/// The reason for a file in `/w`, in a word.
fn reason(path: &str, repositories: &[Repository], entries: &[&str]) -> &'static str {
    let facts = Facts {
        root: Path::new("/w"),
        directory: Path::new(path).parent().unwrap(),
        is_ours: true,
        is_marked: false,
        repositories,
    };
    match judge(&facts, &trusted(entries)) {
        None => "own",
        Some(ThirdParty::OtherUser) => "user",
        Some(ThirdParty::Download) => "download",
        Some(ThirdParty::Dependency(_)) => "dependency",
        Some(ThirdParty::NestedRepository(_)) => "nested",
        Some(ThirdParty::Clone { .. }) => "clone",
        Some(ThirdParty::Unknown) => "unknown",
    }
}

#[test]
fn a_file_is_the_users_own_unless_a_fact_says_otherwise() {
    assert_eq!(reason("/w/src/a.rs", &[], &[]), "own");
    let own = [repository("/w", false, &[])];
    assert_eq!(reason("/w/src/a.rs", &own, &[]), "own");
    let facts =
        Facts { root: "/w".as_ref(), directory: "/w".as_ref(), is_ours: true, is_marked: true, repositories: &[] };
    assert_eq!(
        judge(&facts, &trusted(&["/w"])),
        Some(ThirdParty::Download),
        "only an endorsement speaks for a download"
    );
    let facts = Facts { is_ours: false, is_marked: false, ..facts };
    assert_eq!(judge(&facts, &trusted(&["/w"])), Some(ThirdParty::OtherUser));
}

#[test]
fn who_names_a_directory_does_not_speak_for_the_dependencies_in_it() {
    let path = "/w/node_modules/left/README.md";
    assert_eq!(reason(path, &[], &[]), "dependency");
    assert_eq!(reason(path, &[], &["/w"]), "dependency");
    assert_eq!(reason(path, &[], &["/w/node_modules"]), "own");
    assert_eq!(reason(path, &[], &["/w/node_modules/left"]), "own");
    assert_eq!(reason(path, &[], &["/w/node_modules/le"]), "dependency");
}

#[test]
fn a_clone_is_its_owners_until_the_operator_names_all_its_remotes() {
    let path = "/w/README.md";
    let clone = [repository("/w", false, &["https://github.com/me/x", "git@git.example.org:team/x"])];
    assert_eq!(reason(path, &clone, &[]), "clone");
    assert_eq!(reason(path, &clone, &["github.com/me"]), "clone", "what was merged from the other may be anybody's");
    assert_eq!(reason(path, &clone, &["github.com/me", "git.example.org/team"]), "own");
    assert_eq!(reason(path, &clone, &["/w"]), "own");
    assert_eq!(reason(path, &[repository("/w", false, &["?"])], &["github.com/me"]), "clone");
}

#[test]
fn every_repository_on_the_way_counts() {
    let path = "/w/lib/dep/README.md";
    let own = repository("/w", false, &[]);
    assert_eq!(reason(path, &[own.clone(), repository("/w/lib/dep", true, &[])], &[]), "nested");
    let named = repository("/w/lib/dep", true, &["https://github.com/me/dep"]);
    assert_eq!(reason(path, &[own.clone(), named.clone()], &["github.com/me"]), "own");
    // A repository that says it is the user's, inside of one that is not, is whatever its surroundings are.
    let clone = repository("/w", false, &["https://github.com/eve/x"]);
    assert_eq!(reason(path, &[clone, named], &["github.com/me"]), "clone");
    assert_eq!(reason(path, &[own, repository("/w/lib/dep", true, &["?"])], &["/w/lib"]), "own");
}
