//! Useful work still works inside tier C.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use palyra_common::SandboxTier;
use palyra_sandbox::{Ability, Cgroups, Grant, Place, Privilege};

use crate::world::{Ran, World};

/// A grant with room for a compiler.
fn grant(world: &World) -> Grant {
    let mut grant = world.grant(SandboxTier::C);
    grant.limits.memory_bytes = 4 << 30;
    grant.limits.wall = Duration::from_secs(300);
    grant.limits.cpu = Duration::from_secs(300);
    grant
}

fn shell(world: &World, grant: &Grant, script: &str) -> Ran {
    let ran = world.run_with(grant, &world.invocation("sh", &["-ec", script]), "").unwrap();
    assert!(ran.report.exit.success(), "{ran:?}");
    ran
}

fn write(world: &World, name: &str, content: &str) {
    let path = world.workspace.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

#[test]
fn plain_python_runs_its_unit_tests() {
    let world = World::new();
    write(
        &world,
        "test_sum.py",
        "import multiprocessing, tempfile, unittest\n\nclass Sums(unittest.TestCase):\n    def test_sum(self):\n        with tempfile.TemporaryFile() as file:\n            file.write(b'x')\n        with multiprocessing.Pool(2) as pool:\n            self.assertEqual(sum(pool.map(abs, [-1, -2])), 3)\n",
    );
    let ran = shell(&world, &grant(&world), "/usr/bin/python3 -m unittest 2>&1");
    assert!(ran.stdout.contains("Ran 1 test") && ran.stdout.contains("OK"), "{ran:?}");
}

#[test]
fn plain_git_commits() {
    let world = World::new();
    write(&world, "file", "content");
    let script = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
        git init -q . && git add file && git commit -q -m first && git status --porcelain && git log --format=%s && git gc -q && git fsck --no-progress";
    let ran = shell(&world, &grant(&world), script);
    assert_eq!(ran.stdout, "first\n", "{ran:?}");
}

#[test]
fn plain_git_commits_without_an_identity_and_prefers_the_repositorys() {
    let script = "git init -q . && git add file && git commit -q -m first && git config user.name Ada && git config user.email ada@example.org
        git commit -q --allow-empty -m second && git log --format='%an <%ae>'; git config --global user.name Eve; git config --global user.name; rm -rf .git";
    let mut world = World::new();
    write(&world, "file", "content");
    for isolation in [true, false] {
        if !isolation {
            // In tier B the private directory is then on the disk.
            world.host.isolation = Ability::Fails("forbidden by the test".to_owned());
        }
        for tier in if isolation { vec![SandboxTier::B, SandboxTier::C] } else { vec![SandboxTier::B] } {
            let ran = shell(&world, &Grant { tier, ..grant(&world) }, script);
            assert_eq!(ran.stdout, "Ada <ada@example.org>\nPalyra agent <agent@localhost>\nEve\n", "{tier:?} {ran:?}");
        }
    }
}

#[test]
fn plain_directories_get_the_set_group_id_bit_and_files_do_not() {
    let mut world = World::new();
    let script = "mkdir d && touch f && ln -s f link && ln -s d way
        for mode in g+s 2775 02750; do chmod $mode d && stat -c %a d; done
        (cd d && chmod g-s . && chmod g+s . && mkdir inside && stat -c %a . inside | cut -c1)
        chmod 0755 d && chmod g+s way && stat -c %a d
        for name in f link missing; do chmod g+s $name 2>&1 | sed 's/.*: //'; done; chmod 4755 d 2>&1 | sed 's/.*: //'
        git init -q --shared=group shared && stat -c %a shared/.git | cut -c1
        /usr/bin/python3 -c 'import os; d = os.open(\"d\", os.O_RDONLY); os.fchmod(d, 0o2711); print(oct(os.fstat(d).st_mode), flush=True); os.fchmod(os.open(\"f\", os.O_RDONLY), 0o2711)' 2>&1 | sed 's/: .*//' | grep -v '^ '
        stat -c %a f | cut -c1; rm -rf d f link way shared";
    for counted in [true, false] {
        if !counted {
            world.host.cgroups = Cgroups::None("forbidden by the test".to_owned());
        }
        if world.host.privilege == Privilege::Root {
            // There the guest has an id of its own, which the first process has no rights over.
            let ran =
                shell(&world, &grant(&world), "mkdir d; chmod g+s d 2>&1 | sed 's/.*: //'; stat -c %a d; rmdir d");
            assert_eq!(ran.stdout, "Operation not permitted\n755\n", "{ran:?}");
            continue;
        }
        let ran = shell(&world, &grant(&world), script);
        let expected = "2755\n2775\n2750\n2\n2\n2755\nOperation not permitted\nOperation not permitted\nNo such file or directory\nOperation not permitted\n2\n0o42711\nTraceback (most recent call last):\nPermissionError\n6\n";
        assert_eq!(ran.stdout, expected, "{ran:?}");
    }
}

#[test]
fn plain_terminals_can_be_opened_up_to_a_bound() {
    let world = World::new();
    let script = "import os, pty\npid, master = pty.fork()\nif pid == 0:\n    os.execvp('tty', ['tty'])\nprint(os.read(master, 100).decode().strip()); os.waitpid(pid, 0)\nopened = 0\ntry:\n    while opened < 200: os.openpty(); opened += 1\nexcept OSError: pass\nprint(30 <= opened <= 64)\n";
    let ran = shell(&world, &grant(&world), &format!("/usr/bin/python3 -c \"{script}\""));
    assert_eq!(ran.stdout, "/dev/pts/0\nTrue\n", "{ran:?}");
}

#[test]
fn plain_address_sanitizer_finds_what_it_looks_for() {
    let mut world = World::new();
    write(
        &world,
        "good.c",
        "#include <stdlib.h>\nint main(void) { volatile char *p = malloc(8); p[0] = 1; return 0; }\n",
    );
    write(
        &world,
        "bad.c",
        "#include <stdlib.h>\nint main(void) { volatile char *p = malloc(8); p[8] = 1; return 0; }\n",
    );
    let script = "cc -g -fsanitize=address -o good good.c && cc -g -fsanitize=address -o bad bad.c
        ./good && echo clean; ./bad 2> report || echo found; grep -c heap-buffer-overflow report";
    for counted in [true, false] {
        if !counted {
            world.host.cgroups = Cgroups::None("forbidden by the test".to_owned());
        }
        let ran = shell(&world, &grant(&world), script);
        assert!(ran.stdout.starts_with("clean\nfound\n"), "{ran:?}");
    }
}

#[test]
fn plain_memory_files_are_made_and_executed() {
    let mut world = World::new();
    let script = "import os\ntry:\n    fd = os.memfd_create('x', 0)\nexcept OSError as error:\n    print(error.errno); raise SystemExit\nos.write(fd, open('/bin/true', 'rb').read())\nprogram = os.open(f'/proc/self/fd/{fd}', os.O_RDONLY)\nos.close(fd)\npid = os.fork()\nif pid == 0: os.execve(program, ['true'], {})\nprint(os.waitpid(pid, 0)[1])\n";
    let run = |world: &World| shell(world, &grant(world), &format!("/usr/bin/python3 -c \"{script}\"")).stdout;
    assert_eq!(run(&world), "0\n");
    world.host.cgroups = Cgroups::None("forbidden by the test".to_owned());
    assert_eq!(run(&world), "0\n");
}

#[test]
fn plain_node_runs_its_tests() {
    let world = World::new();
    write(
        &world,
        "sum.test.js",
        "const test = require('node:test'); const assert = require('node:assert');\ntest('sum', () => assert.equal(1 + 2, 3));\ntest('worker', async () => { const { Worker } = require('node:worker_threads');\n  await new Promise((done) => new Worker('process.exit(0)', { eval: true }).on('exit', done)); });\n",
    );
    let ran = shell(&world, &grant(&world), "node --test");
    assert!(ran.stdout.contains("pass 2") && ran.stdout.contains("fail 0"), "{ran:?}");
}

#[test]
fn plain_make_compiles_and_runs() {
    let world = World::new();
    write(&world, "main.c", "#include <stdio.h>\nint main(void) { puts(\"built\"); return 0; }\n");
    write(&world, "Makefile", "main: main.c\n\tcc -O2 -o $@ $<\n\ntest: main\n\t./main\n");
    let ran = shell(&world, &grant(&world), "make -s -j2 test");
    assert_eq!(ran.stdout, "built\n", "{ran:?}");
}

fn sysroot() -> PathBuf {
    let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--print", "sysroot"])
        .output()
        .unwrap();
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

fn cargo_home() -> PathBuf {
    std::env::var_os("CARGO_HOME")
        .map_or_else(|| Path::new(&std::env::var_os("HOME").unwrap()).join(".cargo"), PathBuf::from)
}

fn rustup_home() -> PathBuf {
    std::env::var_os("RUSTUP_HOME")
        .map_or_else(|| Path::new(&std::env::var_os("HOME").unwrap()).join(".rustup"), PathBuf::from)
}

#[test]
fn cargo_builds_with_its_registry_read_only() {
    let world = World::new();
    let toolchain = sysroot();
    let registry = cargo_home().join("registry");
    // A dependency that this workspace has as well is in the cache of whoever runs these tests.
    let lock = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock")).unwrap();
    let after = lock.split("name = \"hex\"\nversion = \"").nth(1).unwrap();
    let version = after.split('"').next().unwrap();
    write(
        &world,
        "Cargo.toml",
        &format!(
            "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\nhex = \"={version}\"\n"
        ),
    );
    write(&world, "src/main.rs", "fn main() { println!(\"{}\", hex::encode(\"hello\")); }\n");
    write(&world, "build.rs", "fn main() { println!(\"cargo::rerun-if-changed=build.rs\"); }\n");
    let mut grant = grant(&world);
    grant.read_only.push(Place::look(&toolchain).unwrap());
    grant.read_only.push(Place::look(&registry).unwrap());
    grant.program_path.insert(0, toolchain.join("bin"));
    let home = world.invocation("sh", &[]).working_directory.join(".cargo-home");
    let script = format!(
        "mkdir -p {home} && ln -s {registry} {home}/registry && export CARGO_HOME={home} && cargo build --offline -q && ./target/debug/small && cargo test --offline -q > /dev/null",
        home = home.display(),
        registry = registry.display()
    );
    let ran = shell(&world, &grant, &script);
    assert_eq!(ran.stdout, "68656c6c6f\n", "{ran:?}");
    let hostile =
        world.run_with(&grant, &world.invocation("touch", &[registry.join("evil").to_str().unwrap()]), "").unwrap();
    assert!(!hostile.report.exit.success(), "{hostile:?}");
}

/// The environment that a user with the standard installation has; the toolchain is chosen by the proxy.
#[test]
fn cargo_runs_through_the_rustup_proxy() {
    let (cargo, rustup) = (cargo_home(), rustup_home());
    if !cargo.join("bin/rustup").exists() {
        println!("rustup is not installed");
        return;
    }
    let world = World::new();
    write(&world, "Cargo.toml", "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2024\"\n");
    write(&world, "src/lib.rs", "#[test]\nfn holds() { assert_eq!(1 + 1, 2); }\n");
    let mut grant = grant(&world);
    for shared in [cargo.join("bin"), cargo.join("registry"), rustup.clone()] {
        grant.read_only.extend(Place::look(&shared).ok());
    }
    grant.program_path.insert(0, cargo.join("bin"));
    grant.environment = vec!["CARGO_HOME".to_owned(), "RUSTUP_HOME".to_owned()];
    let mut invocation = world.invocation("cargo", &["test", "--offline"]);
    invocation.environment = vec![
        ("CARGO_HOME".to_owned(), cargo.display().to_string()),
        ("RUSTUP_HOME".to_owned(), rustup.display().to_string()),
    ];
    let ran = world.run_with(&grant, &invocation, "").unwrap();
    assert!(ran.report.exit.success() && ran.stdout.contains("1 passed"), "{ran:?}");
}
