//! The compiled filter says of every call what the readable one says.

use super::{
    ALLOW, AND, BpfProgram, CALL_NUMBER, JUMP, JUMP_IF_AT_LEAST, JUMP_IF_EQUAL, KILL_PROCESS, LOAD_WORD, MACHINE,
    NO_SUCH_CALL, NOT_PERMITTED, NOT_SUPPORTED, RETURN, SUPERVISED, THIS_MACHINE, compile,
};
use crate::plan::{CallRule, Filter, FilterProfile, Test};
use crate::sys;

/// Runs a program as the kernel would.
fn run(program: &BpfProgram, machine: u32, number: u32, arguments: [u32; 6]) -> u32 {
    let (mut at, mut value) = (0_usize, 0_u32);
    loop {
        let one = program[at];
        at += 1;
        match one.code {
            LOAD_WORD => {
                value = match one.value {
                    CALL_NUMBER => number,
                    MACHINE => machine,
                    offset => arguments[usize::try_from((offset - 16) / 8).unwrap()],
                }
            }
            AND => value &= one.value,
            JUMP => at += usize::try_from(one.value).unwrap(),
            JUMP_IF_EQUAL => at += usize::from(if value == one.value { one.if_true } else { one.if_false }),
            JUMP_IF_AT_LEAST => at += usize::from(if value >= one.value { one.if_true } else { one.if_false }),
            RETURN => return one.value,
            other => panic!("unknown code {other}"),
        }
    }
}

/// What the lists say of one call, read from top to bottom.
fn read(filter: &Filter, arguments: [u32; 6]) -> u32 {
    let applies = |rule: &CallRule| {
        rule.when.iter().all(|condition| {
            let value = arguments[usize::from(condition.argument)];
            match condition.test {
                Test::Equals(wanted) => value == wanted,
                Test::Differs(wanted) => value != wanted,
                Test::Masked { mask, value: wanted } => value & mask == wanted,
            }
        })
    };
    if filter.denied.iter().any(applies) {
        NOT_PERMITTED
    } else if filter.unsupported.iter().any(applies) {
        NOT_SUPPORTED
    } else if filter.supervised.iter().any(applies) {
        SUPERVISED
    } else if filter.allowed.iter().any(applies) {
        ALLOW
    } else {
        NO_SUCH_CALL
    }
}

/// The part of a filter that is about one call.
fn about(filter: &Filter, number: u32) -> Filter {
    let part = |rules: &[CallRule]| {
        rules.iter().filter(|rule| sys::number(rule.call) == Some(i64::from(number))).cloned().collect()
    };
    Filter {
        denied: part(&filter.denied),
        unsupported: part(&filter.unsupported),
        supervised: part(&filter.supervised),
        allowed: part(&filter.allowed),
    }
}

/// Every value that some condition asks about, its neighbours and a few others.
fn interesting(filter: &Filter) -> Vec<u32> {
    let mut values = vec![0, 1, 2, 3, 6, 10, 16, 17, 262, 0x8000_0000, u32::MAX];
    for condition in
        filter.denied.iter().chain(&filter.unsupported).chain(&filter.supervised).flat_map(|rule| &rule.when)
    {
        let (Test::Equals(value) | Test::Differs(value) | Test::Masked { value, .. }) = condition.test;
        values.extend([value, value.wrapping_add(1), value.wrapping_sub(1), value | 0x11]);
        if let Test::Masked { mask, .. } = condition.test {
            values.extend([mask, !mask]);
        }
    }
    values.sort_unstable();
    values.dedup();
    values
}

#[test]
fn compiled_and_readable_agree_on_every_call() {
    for profile in FilterProfile::all() {
        let (program, filter) = (compile(profile).unwrap(), profile.filter());
        let values = interesting(&filter);
        for number in (0..600).chain([0x3fff_ffff, 0x4000_0000, 0x4000_0027, u32::MAX]) {
            let about = about(&filter, number);
            let special = about.denied.iter().chain(&about.unsupported).chain(&about.supervised);
            let conditional = special.into_iter().any(|rule| !rule.when.is_empty());
            // Conditions look at up to two arguments at once; two values in turn through all six cover them.
            let pairs: Vec<(u32, u32)> = if conditional {
                // All values with themselves and with a few others: the longest list of conditions on two arguments has two values each.
                let few = [0, 1, 2, 3, 0o100, 0o4000, 0o2000_0000, u32::MAX];
                values.iter().flat_map(|a| few.iter().chain([a]).map(move |b| (*a, *b))).collect()
            } else {
                vec![(0, 0), (u32::MAX, u32::MAX)]
            };
            for (a, b) in pairs {
                for arguments in [[a, b, a, b, a, b], [a, b, b, a, a, b]] {
                    let (ours, wanted) = (run(&program, THIS_MACHINE, number, arguments), read(&about, arguments));
                    assert_eq!(ours, wanted, "{profile:?}: call {number} with {arguments:x?}");
                }
            }
        }
    }
}

#[test]
fn another_machines_calls_kill_and_programs_are_short() {
    for profile in FilterProfile::all() {
        let program = compile(profile).unwrap();
        assert_eq!(run(&program, 0x4000_0003, 1, [0; 6]), KILL_PROCESS);
        assert!(program.len() < 1200, "{}", program.len());
    }
}
