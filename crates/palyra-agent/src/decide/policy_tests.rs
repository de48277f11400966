//! No name can change what kind of thing is judged, or how many.

use std::collections::BTreeSet;

use palyra_tools::{Roots, Workspace, builtin};
use proptest::prelude::{prop, prop_assert_eq, proptest};
use serde_json::json;

use super::*;

const ANYWHERE: Roots = Roots::Anywhere { except: Vec::new(), granted: Vec::new() };

/// A name of a file that the system accepts: any bytes but `/` and NUL.
fn names() -> impl proptest::strategy::Strategy<Value = Vec<Vec<u8>>> {
    let tricky = proptest::sample::select(b",:\\x2c.#?*|\n\t \"'{}[]@%\xff\xc3".to_vec());
    let byte = proptest::prop_oneof![tricky, b'a'..=b'z'];
    let name = prop::collection::vec(byte, 1..12);
    prop::collection::vec(name, 1..6)
}

fn path(workspace: &Workspace, name: &[u8]) -> WorkspacePath {
    let spelled: String = name.iter().map(|byte| format!("\\x{byte:02X}")).collect();
    workspace.path(&spelled).expect("a name that the system accepts")
}

proptest! {
    #[test]
    fn as_many_paths_are_judged_as_files_are_touched(names in names()) {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(folder.path(), &ANYWHERE, &[]).unwrap();
        let usable = names.iter().filter(|name| !matches!(name.as_slice(), b"." | b".."));
        let files: BTreeSet<WorkspacePath> = usable.map(|name| path(&workspace, name)).collect();
        let judged_names: Vec<String> = CallResource::files(files.iter().cloned())
            .iter()
            .flat_map(|resource| judged(resource, Confidentiality::Private))
            .map(|(resource, connection)| match (resource, connection) {
                (Resource::Path { name, location: Location::InsideWorkspace }, None) => name,
                other => panic!("{other:?}"),
            })
            .collect();
        let different: BTreeSet<&String> = judged_names.iter().collect();
        prop_assert_eq!(judged_names.len(), files.len());
        prop_assert_eq!(different.len(), files.len(), "two files under one name: {:?}", judged_names);
    }

    #[test]
    fn the_path_of_a_file_tool_is_one_path_whatever_it_says(text in "\\PC{1,40}") {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(folder.path(), &ANYWHERE, &[]).unwrap();
        let tools = builtin();
        for tool in tools.iter().filter(|tool| tool.declaration().name.as_str().starts_with("palyra.fs.")) {
            // The tool refuses what is no path; then nothing is judged.
            let Ok(resource) = tool.resource(&json!({"path": &text}), &workspace) else { continue };
            let found = judged(&resource, Confidentiality::Private);
            prop_assert_eq!(found.len(), 1, "{}", tool.declaration().name);
            let inside = matches!(&found[..], [(Resource::Path { location: Location::InsideWorkspace, .. }, None)]);
            prop_assert_eq!(inside, true, "{}", tool.declaration().name);
        }
    }

    #[test]
    fn a_request_is_judged_as_one_host_whatever_it_says(
        method in "\\PC{0,12}", scheme in "\\PC{0,12}", host in "\\PC{0,40}", port in 0_u16.., which in 0_usize..3,
    ) {
        let tricky = [host.clone(), format!("{host},b.example"), format!("files:{host},*")];
        let host = tricky[which].clone();
        let target = RequestTarget { method: method.clone(), scheme: scheme.clone(), host: host.clone(), port };
        let found = judged(&CallResource::Request(target), Confidentiality::Internal);
        let destination = Destination { name: host, clearance: Confidentiality::Internal };
        prop_assert_eq!(found, [(Resource::Host(destination), Some(Connection { scheme, port, method }))]);
    }

    #[test]
    fn the_name_of_a_tool_call_is_never_a_path_or_a_host(key in "\\PC{0,40}", prefix in 0_usize..4) {
        let prefix = ["", "files:", "url:GET:https:443:", "directory:"][prefix];
        let found = judged(&CallResource::tool(format!("{prefix}{key}")), Confidentiality::Private);
        prop_assert_eq!(found, [(Resource::Tool, None)]);
    }
}
