//! Whose files a guest's files become, and whom it sees as their owner.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};

use palyra_common::SandboxTier;

use crate::world::World;

#[test]
fn what_a_guest_makes_belongs_to_the_owner_of_the_workspace() {
    let mut world = World::new();
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let own = fs::metadata(&world.workspace).unwrap().uid();
    let owners = if root { vec![0, 4321] } else { vec![own] };
    for (round, owner) in owners.into_iter().enumerate() {
        world.workspace = world.path(&format!("workspace-{round}"));
        fs::create_dir(&world.workspace).unwrap();
        let given = world.workspace.join("given");
        fs::write(&given, "given\n").unwrap();
        fs::set_permissions(&given, fs::Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(&world.workspace, fs::Permissions::from_mode(0o700)).unwrap();
        if root {
            chown(&given, Some(owner), Some(owner)).unwrap();
            chown(&world.workspace, Some(owner), Some(owner)).unwrap();
        }
        for tier in [SandboxTier::B, SandboxTier::C] {
            let script = "cat given; mkdir made; echo new > made/file; echo more >> given; stat -c %u given made/file; id -u; id -G";
            let ran = world.run(tier, "sh", &["-c", script]);
            let lines: Vec<_> = ran.stdout.lines().collect();
            assert_eq!(ran.stderr, "", "{tier:?} {ran:?}");
            let [.., given_owner, made_owner, id, groups] = lines.as_slice() else { panic!("{ran:?}") };
            // To itself, the guest owns both.
            assert_eq!((given_owner, made_owner), (id, id), "{tier:?} {ran:?}");
            assert_ne!(*id, "0", "{tier:?} {ran:?}");
            if root {
                assert_eq!(groups, id, "supplementary groups were kept: {ran:?}");
            }
            let made = fs::metadata(world.workspace.join("made/file")).unwrap();
            assert_eq!((made.uid(), made.gid()), (owner, if root { owner } else { made.gid() }), "{tier:?}");
            fs::remove_dir_all(world.workspace.join("made")).unwrap();
        }
    }
}
