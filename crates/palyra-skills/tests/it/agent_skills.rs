//! Folders with a `SKILL.md`: disclosed step by step, and never further than the folder.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use palyra_skills::{AgentSkill, ResourceKind, discover_agent_skills};

const TEXT: &str = "---\nname: pdf-forms\ndescription: Fills in forms.\nallowed-tools: Read\n---\n\n# Forms\n\nSee references/FORMS.md.\n";

fn folder(root: &Path, name: &str, text: &str) -> std::path::PathBuf {
    let folder = root.join(name);
    fs::create_dir_all(folder.join("scripts")).unwrap();
    fs::create_dir_all(folder.join("references")).unwrap();
    fs::write(folder.join("SKILL.md"), text).unwrap();
    fs::write(folder.join("scripts/fill.py"), "print(1)\n").unwrap();
    fs::write(folder.join("references/FORMS.md"), "more\n").unwrap();
    fs::write(folder.join("LICENSE.txt"), "free\n").unwrap();
    folder
}

#[test]
fn metadata_first_then_instructions_then_files() {
    let place = tempfile::tempdir().unwrap();
    let skill = AgentSkill::open(&folder(place.path(), "pdf-forms", TEXT)).unwrap();
    assert_eq!(skill.metadata().description, "Fills in forms.");
    assert_eq!(skill.metadata().allowed_tools, ["Read"]);
    assert_eq!(skill.instructions().unwrap(), "# Forms\n\nSee references/FORMS.md.");
    let resources = skill.resources().unwrap();
    let listed: Vec<(&str, ResourceKind)> = resources.iter().map(|file| (file.path.as_str(), file.kind)).collect();
    assert_eq!(
        listed,
        [
            ("LICENSE.txt", ResourceKind::Asset),
            ("references/FORMS.md", ResourceKind::Reference),
            ("scripts/fill.py", ResourceKind::Script)
        ]
    );
    assert_eq!(skill.read("scripts/fill.py").unwrap(), b"print(1)\n");
    let before = skill.digest().unwrap();
    fs::write(skill.folder().join("scripts/fill.py"), "print(2)\n").unwrap();
    assert_ne!(skill.digest().unwrap(), before);
}

#[test]
fn paths_out_of_the_folder_are_refused() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("secret"), "x").unwrap();
    let skill = AgentSkill::open(&folder(place.path(), "pdf-forms", TEXT)).unwrap();
    for path in
        ["../secret", "scripts/../../secret", "/etc/passwd", "", ".", "scripts//fill.py", "scripts\\fill.py", "a\0b"]
    {
        assert_eq!(skill.read(path).unwrap_err().code(), "agent_skill_invalid", "{path:?}");
    }
    assert_eq!(skill.read("scripts").unwrap_err().code(), "skill_file_unusable");
    symlink("../../secret", skill.folder().join("scripts/link")).unwrap();
    symlink(place.path(), skill.folder().join("out")).unwrap();
    assert_eq!(skill.read("scripts/link").unwrap_err().code(), "skill_file_unusable");
    assert_eq!(skill.read("out/secret").unwrap_err().code(), "skill_file_unusable");
    assert_eq!(skill.resources().unwrap_err().code(), "agent_skill_invalid");
    assert_eq!(skill.digest().unwrap_err().code(), "agent_skill_invalid");
}

#[test]
fn folders_that_are_none_are_refused_and_do_not_hide_others() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("skills");
    folder(&root, "pdf-forms", TEXT);
    folder(&root, "other-name", TEXT);
    folder(&root, "no-front-matter", "# Hello\n");
    folder(&root, "not-text", "---\n");
    fs::write(root.join("not-text/SKILL.md"), b"---\n\xff\n---\n").unwrap();
    folder(&root, "large", &format!("{TEXT}{}", "x".repeat(300 << 10)));
    fs::create_dir_all(root.join("linked")).unwrap();
    symlink(root.join("pdf-forms/SKILL.md"), root.join("linked/SKILL.md")).unwrap();
    symlink(root.join("pdf-forms"), root.join("link-to-folder")).unwrap();
    fs::create_dir_all(root.join("just-a-folder")).unwrap();
    let found = discover_agent_skills(&root).unwrap();
    let good: Vec<&str> = found.iter().flatten().map(|skill| skill.metadata().name.as_str()).collect();
    assert_eq!((good, found.len()), (vec!["pdf-forms"], 7));
    assert!(discover_agent_skills(&place.path().join("missing")).unwrap().is_empty());
}
