//! The path of an operation through its function when nothing unusual happens.

use std::collections::{HashSet, VecDeque};

use super::disassembly::Instruction;

/// The number of instructions on the shortest path to a return that makes one add in a restartable
/// sequence, without the return itself. `None` if there is no such path.
pub(super) fn length(function: &[Instruction]) -> Option<usize> {
    let mut seen = HashSet::new();
    let mut open = VecDeque::from([(0, false, 0)]);
    while let Some((at, added, length)) = open.pop_front() {
        if !seen.insert((at, added)) {
            continue;
        }
        let (falls, target) = match *function.get(at)? {
            Instruction::Plain | Instruction::Disarm => (true, None),
            Instruction::Branch(target) => (true, Some(target)),
            Instruction::Jump(target) => (false, Some(target)),
            Instruction::Return if added => return Some(length),
            Instruction::Return | Instruction::Away => (false, None),
        };
        if let (true, Some(next)) = (falls, function.get(at + 1)) {
            match (added, *next == Instruction::Disarm) {
                // A second add.
                (true, true) => {}
                (_, adds) => open.push_back((at + 1, added || adds, length + 1)),
            }
        }
        // A jump to the end of a restartable sequence aborts it.
        if let Some(to) = target.filter(|&to| function[to] != Instruction::Disarm) {
            open.push_back((to, added, length + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_straight_path_makes_one_add_and_calls_nothing() {
        use Instruction::*;
        let function = [Branch(6), Plain, Branch(4), Plain, Disarm, Branch(7), Away, Plain, Return];
        assert_eq!(length(&function), Some(7));
        assert_eq!(length(&[Plain, Disarm, Plain, Disarm, Return]), None, "two adds");
        assert_eq!(length(&[Branch(2), Plain, Return]), None, "no add");
    }
}
