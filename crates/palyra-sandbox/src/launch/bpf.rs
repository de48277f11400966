//! From the readable filter to the program the kernel runs.
//!
//! The kernel tries a new filter with every call number, to learn which calls need no second look, and runs it for each call that does. A list
//! that is compared entry by entry, as libraries make it, costs a millisecond to install; a search tree over the numbers costs a tenth of that.
//!
//! INVARIANT: each branch ends with an answer, so pieces can be put one after another. A denial beats a permission; a call in no list does
//! not exist.

use std::collections::BTreeMap;
use std::io;

use crate::plan::{CallRule, Condition, FilterProfile, Test};
use crate::sys::{self, Instruction};

/// A filter as the kernel takes it.
pub(crate) type BpfProgram = Vec<Instruction>;

const LOAD_WORD: u16 = 0x20;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const AND: u16 = 0x54;
const RETURN: u16 = 0x06;

const ALLOW: u32 = 0x7fff_0000;
const NOT_PERMITTED: u32 = 0x0005_0000 | 1;
const NO_SUCH_CALL: u32 = 0x0005_0000 | 38;
const NOT_SUPPORTED: u32 = 0x0005_0000 | 95;
const SUPERVISED: u32 = 0x7fc0_0000;
const KILL_PROCESS: u32 = 0x8000_0000;

/// Offsets in what the kernel shows to a filter.
const CALL_NUMBER: u32 = 0;
const MACHINE: u32 = 4;
const FIRST_ARGUMENT: u32 = 16;

#[cfg(target_arch = "x86_64")]
const THIS_MACHINE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const THIS_MACHINE: u32 = 0xc000_00b7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the filter knows no machine but x86-64 and arm64");

/// What happens to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Leaf {
    Answer(u32),
    /// The first list all of whose conditions hold gives the answer, else there is another.
    Conditional(Vec<(Vec<Condition>, u32)>, u32),
}

/// Compiles a profile.
pub(crate) fn compile(profile: FilterProfile) -> io::Result<BpfProgram> {
    let filter = profile.filter();
    let mut leaves: BTreeMap<u32, Leaf> = BTreeMap::new();
    for (number, _) in numbered(&filter.allowed)? {
        leaves.insert(number, Leaf::Answer(ALLOW));
    }
    let special =
        [(&filter.denied, NOT_PERMITTED), (&filter.unsupported, NOT_SUPPORTED), (&filter.supervised, SUPERVISED)];
    for (rules, refusal) in special {
        for (number, rule) in numbered(rules)? {
            let known = leaves.remove(&number).unwrap_or(Leaf::Answer(NO_SUCH_CALL));
            let leaf = match (known, rule.when.is_empty()) {
                (Leaf::Answer(NOT_PERMITTED), _) => Leaf::Answer(NOT_PERMITTED),
                (_, true) => Leaf::Answer(refusal),
                (Leaf::Answer(answer), false) => Leaf::Conditional(vec![(rule.when.clone(), refusal)], answer),
                (Leaf::Conditional(mut lists, answer), false) => {
                    lists.push((rule.when.clone(), refusal));
                    Leaf::Conditional(lists, answer)
                }
            };
            leaves.insert(number, leaf);
        }
    }
    let mut program = vec![
        load(MACHINE),
        jump_if(JUMP_IF_EQUAL, THIS_MACHINE, 1, 0),
        // A call by the rules of another machine would be read by the wrong table.
        answer(KILL_PROCESS),
        load(CALL_NUMBER),
    ];
    program.extend(tree(&ranges(&leaves))?);
    Ok(program)
}

fn numbered(rules: &[CallRule]) -> io::Result<Vec<(u32, &CallRule)>> {
    rules
        .iter()
        .filter_map(|rule| sys::number(rule.call).map(|number| (number, rule)))
        .map(|(number, rule)| Ok((u32::try_from(number).map_err(io::Error::other)?, rule)))
        .collect()
}

/// Where something begins to happen, up to the next entry; what is between the named calls does not exist.
fn ranges(leaves: &BTreeMap<u32, Leaf>) -> Vec<(u32, Leaf)> {
    let nothing = Leaf::Answer(NO_SUCH_CALL);
    let mut ranges: Vec<(u32, Leaf)> = vec![(0, nothing.clone())];
    let mut add = |from: u32, leaf: &Leaf| match ranges.last_mut() {
        Some((_, last)) if last == leaf => {}
        Some((at, last)) if *at == from => *last = leaf.clone(),
        _ => ranges.push((from, leaf.clone())),
    };
    for (number, leaf) in leaves {
        add(*number, leaf);
        if !leaves.contains_key(&number.saturating_add(1)) {
            add(number.saturating_add(1), &nothing);
        }
    }
    ranges
}

/// A search tree over the ranges.
fn tree(ranges: &[(u32, Leaf)]) -> io::Result<BpfProgram> {
    let (left, right) = match ranges {
        [] => return Err(io::Error::other("a filter without calls")),
        [(_, Leaf::Answer(value))] => return Ok(vec![answer(*value)]),
        [(_, Leaf::Conditional(lists, otherwise))] => return conditional(lists, *otherwise),
        _ => ranges.split_at(ranges.len() / 2),
    };
    let from = right.first().map_or(0, |(from, _)| *from);
    let (left, right) = (tree(left)?, tree(right)?);
    let mut program = match u8::try_from(left.len()) {
        Ok(length) => vec![jump_if(JUMP_IF_AT_LEAST, from, length, 0)],
        // A conditional jump reaches 255 instructions, a plain one any number.
        Err(_) => {
            let length = u32::try_from(left.len()).map_err(io::Error::other)?;
            vec![
                jump_if(JUMP_IF_AT_LEAST, from, 0, 1),
                Instruction { code: JUMP, if_true: 0, if_false: 0, value: length },
            ]
        }
    };
    program.extend(left);
    program.extend(right);
    Ok(program)
}

fn conditional(lists: &[(Vec<Condition>, u32)], otherwise: u32) -> io::Result<BpfProgram> {
    let mut program = Vec::new();
    for (list, refusal) in lists {
        let mut piece: BpfProgram = vec![answer(*refusal)];
        // From the last condition to the first: each jumps over what follows it if it does not hold.
        for condition in list.iter().rev() {
            let past = u8::try_from(piece.len()).map_err(io::Error::other)?;
            let mut test = vec![load(FIRST_ARGUMENT + 8 * u32::from(condition.argument))];
            match condition.test {
                Test::Equals(value) => test.push(jump_if(JUMP_IF_EQUAL, value, 0, past)),
                Test::Differs(value) => test.push(jump_if(JUMP_IF_EQUAL, value, past, 0)),
                Test::Masked { mask, value } => {
                    test.push(Instruction { code: AND, if_true: 0, if_false: 0, value: mask });
                    test.push(jump_if(JUMP_IF_EQUAL, value, 0, past));
                }
            }
            test.extend(piece);
            piece = test;
        }
        program.extend(piece);
    }
    program.push(answer(otherwise));
    Ok(program)
}

fn load(offset: u32) -> Instruction {
    Instruction { code: LOAD_WORD, if_true: 0, if_false: 0, value: offset }
}

fn answer(value: u32) -> Instruction {
    Instruction { code: RETURN, if_true: 0, if_false: 0, value }
}

fn jump_if(code: u16, value: u32, if_true: u8, if_false: u8) -> Instruction {
    Instruction { code, if_true, if_false, value }
}

#[cfg(test)]
#[path = "bpf_tests.rs"]
mod bpf_tests;
