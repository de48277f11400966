//! The WIT is one description in two shapes: a folder and a single file.

use std::path::Path;

use wit_parser::Resolve;

#[test]
fn the_folder_and_the_single_file_say_the_same() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit");
    let mut from_folder = Resolve::default();
    from_folder.push_dir(&folder).unwrap();
    let mut from_file = Resolve::default();
    from_file.push_str("palyra-sdk.wit", palyra_plugins::SDK_WIT).unwrap();
    let names = |resolve: &Resolve| {
        let mut names: Vec<String> = resolve
            .packages
            .iter()
            .flat_map(|(_, package)| {
                let interfaces = package.interfaces.iter().map(|(name, id)| {
                    let functions: Vec<&String> = resolve.interfaces[*id].functions.keys().collect();
                    format!("{}/{name} {functions:?}", package.name)
                });
                let worlds = package.worlds.iter().map(|(name, id)| {
                    let world = &resolve.worlds[*id];
                    format!("{}/{name} {} {}", package.name, world.imports.len(), world.exports.len())
                });
                interfaces.chain(worlds).collect::<Vec<_>>()
            })
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(&from_folder), names(&from_file));
    assert_eq!(from_file.packages.len(), 3);
}
