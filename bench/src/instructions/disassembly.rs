//! A function in objdump's disassembly.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// An instruction, by its successors.
#[derive(Debug, PartialEq)]
pub(super) enum Instruction {
    /// The next one.
    Plain,
    /// The next one, as the end of a restartable sequence: an add was made if it is
    /// reached from the instruction before.
    Disarm,
    /// Another one of the function, by its place.
    Jump(usize),
    /// Either.
    Branch(usize),
    Return,
    /// Out of the function: a call, a jump into another one, a trap.
    Away,
}

/// A function of a program, by its name within the crate.
pub(super) fn function(program: &Path, name: &str) -> Result<Vec<Instruction>> {
    let output = Command::new("objdump")
        .args(["--disassemble", "--no-show-raw-insn", "--demangle"])
        .arg(program)
        .output()
        .context("starting objdump")?;
    ensure!(output.status.success(), "objdump: {}", output.status);
    let found = parse(&String::from_utf8_lossy(&output.stdout), name);
    ensure!(!found.is_empty(), "objdump shows no function {name}");
    Ok(found)
}

/// The function and those that it ends in by a jump instead of a return.
fn parse(text: &str, name: &str) -> Vec<Instruction> {
    let heading = format!("::{name}>:");
    let mut parts = body(text, |line| line.ends_with(&heading));
    let mut at = 0;
    while let Some(&(_, part)) = parts.get(at) {
        at += 1;
        let ends_in = part.strip_prefix("jmp").and_then(target);
        let Some(next) = ends_in.filter(|next| parts.iter().all(|(other, _)| other != next)) else {
            continue;
        };
        parts.extend(body(text, |line| line.starts_with(&format!("{next:016x} <"))));
    }
    let mut before = None;
    let instructions = parts.iter().map(|&(_, text)| {
        before = loaded_descriptor(text).or(before);
        if before.is_some_and(|register| is_store_of(text, register)) {
            return Instruction::Disarm;
        }
        instruction(text, |at| parts.iter().position(|&(other, _)| other == at))
    });
    instructions.collect()
}

/// Where a thread's area holds the descriptor of its sequence. An add loads that first, and stores it
/// again at its end.
const DESCRIPTOR: &str = "%fs:0x8(";

/// The register that receives the descriptor.
fn loaded_descriptor(text: &str) -> Option<&str> {
    let operands = text.strip_prefix("mov ")?.trim_start().strip_prefix(DESCRIPTOR)?;
    operands.split_once("),").map(|(_, register)| register)
}

fn is_store_of(text: &str, register: &str) -> bool {
    let operands = text.strip_prefix("mov ").map(str::trim_start);
    let place = operands.and_then(|operands| operands.strip_prefix(register));
    place.is_some_and(|place| place.trim_start_matches(',').starts_with(DESCRIPTOR))
}

/// The lines of a function, by its heading.
fn body(text: &str, is_heading: impl Fn(&str) -> bool) -> Vec<(u64, &str)> {
    let lines = text.lines().skip_while(|line| !is_heading(line)).skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    lines.filter_map(address_and_text).collect()
}

/// The parts of a line such as `2a4e9: mov 0x20(%rdi),%eax # 98600 <table>`, without the comment.
fn address_and_text(line: &str) -> Option<(u64, &str)> {
    let (at, text) = line.split_once(":\t")?;
    let text = text.split('#').next()?.trim();
    Some((u64::from_str_radix(at.trim(), 16).ok()?, text))
}

fn instruction(text: &str, place: impl Fn(u64) -> Option<usize>) -> Instruction {
    let (name, operand) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match (name, target(operand).and_then(place)) {
        ("ret", _) => Instruction::Return,
        ("jmp", Some(target)) => Instruction::Jump(target),
        ("call" | "jmp" | "ud1" | "ud2" | "int3" | "hlt", _) => Instruction::Away,
        // A branch out of the function is cold.
        (name, Some(target)) if name.starts_with('j') => Instruction::Branch(target),
        _ => Instruction::Plain,
    }
}

/// The address that an operand begins with.
fn target(operand: &str) -> Option<u64> {
    u64::from_str_radix(operand.split_whitespace().next()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_found_among_others_with_its_jumps_as_places() {
        let text = "\
0000000000000010 <operations::other>:
      10:\tret

0000000000000020 <operations::add>:
      20:\tmov    %fs:0x8(%rcx),%r9
      21:\tjae    10 <operations::other>
      22:\tje     25 <operations::add+0x5>
      23:\tmov    %rdx,%fs:0x8(%rcx)        # 98600 <FN+0x40>
      24:\tadd    %rsi,(%rbx,%rdx,1)
      25:\tmov    %r9,%fs:0x8(%rcx)
      26:\tjmp    22 <operations::add+0x2>
      27:\tcall   *0x6bb53(%rip)        # 960f0 <_DYNAMIC+0x300>

0000000000000030 <operations::third>:
      30:\tret
";
        let expected = [
            Instruction::Plain,
            Instruction::Plain,
            Instruction::Branch(5),
            Instruction::Plain,
            Instruction::Plain,
            Instruction::Disarm,
            Instruction::Jump(2),
            Instruction::Away,
        ];
        assert_eq!(parse(text, "add"), expected);
        let ends_in_third = text.replace("22 <operations::add+0x2>", "30 <operations::third>");
        let mut expected = expected;
        expected[6] = Instruction::Jump(8);
        let found = parse(&ends_in_third, "add");
        assert_eq!(found[..8], expected);
        assert_eq!(found[8..], [Instruction::Return]);
        assert!(parse(text, "none").is_empty());
    }
}
