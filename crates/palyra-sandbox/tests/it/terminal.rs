//! A guest with a terminal.

use std::fs;
use std::io::{Read as _, Write as _};

use palyra_common::SandboxTier;
use palyra_sandbox::{Exit, Stdio, TerminalSize};

use crate::world::World;

#[test]
fn a_terminal_has_a_size_a_session_and_an_interrupt_key() {
    let world = World::new();
    for tier in [SandboxTier::B, SandboxTier::C] {
        let mut invocation = world.invocation(
            "sh",
            &["-c", "tty -s && stty size && echo $TERM && read line && echo got:$line; exec sleep 100"],
        );
        invocation.terminal = Some(TerminalSize { rows: 33, columns: 101 });
        let plan = world.plan(&world.grant(tier), &invocation);
        let mut child = world.sandbox.spawn_blocking(&plan, Stdio::default()).unwrap();
        let mut terminal = fs::File::from(child.terminal.take().unwrap());
        let mut seen = String::new();
        let mut until = |text: &str, terminal: &mut fs::File| {
            let mut piece = [0; 256];
            while !seen.contains(text) {
                let length = terminal.read(&mut piece).unwrap();
                seen.push_str(&String::from_utf8_lossy(&piece[..length]));
            }
        };
        until("33 101", &mut terminal);
        until("xterm-256color", &mut terminal);
        terminal.write_all(b"hello\n").unwrap();
        until("got:hello", &mut terminal);
        // Control-C reaches the foreground of the session.
        terminal.write_all(&[3]).unwrap();
        let report = child.wait_blocking().unwrap();
        assert_eq!(report.exit, Exit::Signal(2), "{tier:?}");
    }
}
