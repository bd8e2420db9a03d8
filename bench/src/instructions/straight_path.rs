//! The way that an operation takes through its function when nothing unusual
//! happens.

use std::collections::{HashSet, VecDeque};

use super::disassembly::Instruction;

/// How many instructions the shortest way to the return has that makes `adds`
/// adds and goes back `rounds` times to where a loop begins; the return itself
/// does not count. `None` where there is no such way.
pub(super) fn length(function: &[Instruction], adds: usize, rounds: usize) -> Option<usize> {
    let mut seen = HashSet::new();
    let mut open = VecDeque::from([(State::default(), 0)]);
    while let Some((state, length)) = open.pop_front() {
        if state.adds > adds || state.rounds > rounds || !seen.insert(state) {
            continue;
        }
        if *function.get(state.at)? == Instruction::Return {
            if (state.adds, state.rounds) == (adds, rounds) {
                return Some(length);
            }
            continue;
        }
        let next = steps(function, state.at).map(|step| state.after(function, step));
        open.extend(next.map(|state| (state, length + 1)));
    }
    None
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct State {
    at: usize,
    adds: usize,
    rounds: usize,
}

impl State {
    fn after(self, function: &[Instruction], Step { to, jumped }: Step) -> Self {
        let added = !jumped && function[to] == Instruction::Disarm;
        let went_back = jumped && to <= self.at && begins_loop(function, to, self.at);
        Self {
            at: to,
            adds: self.adds + usize::from(added),
            rounds: self.rounds + usize::from(went_back),
        }
    }
}

#[derive(Clone, Copy)]
struct Step {
    to: usize,
    jumped: bool,
}

fn steps(function: &[Instruction], at: usize) -> impl Iterator<Item = Step> {
    let (falls, target) = match function[at] {
        Instruction::Plain | Instruction::Disarm => (true, None),
        Instruction::Branch(target) => (true, Some(target)),
        Instruction::Jump(target) => (false, Some(target)),
        Instruction::Return | Instruction::Away => (false, None),
    };
    let next = (falls && at + 1 < function.len()).then_some(Step { to: at + 1, jumped: false });
    // Who jumps to the end of a restartable sequence gives up.
    let target = target.filter(|&to| function[to] != Instruction::Disarm);
    next.into_iter().chain(target.map(|to| Step { to, jumped: true }))
}

/// Whether every way to `from` goes through `to`, so that a jump back there is a
/// loop's, and not one to a part that the compiler has put before.
fn begins_loop(function: &[Instruction], to: usize, from: usize) -> bool {
    let mut seen = HashSet::from([to]);
    let mut open = vec![0];
    while let Some(at) = open.pop() {
        if at == from {
            return false;
        }
        if seen.insert(at) {
            open.extend(steps(function, at).map(|step| step.to));
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_skips_the_add_or_calls_is_no_straight_path() {
        use Instruction::*;
        let function = [Branch(6), Plain, Branch(4), Plain, Disarm, Branch(7), Away, Plain, Return];
        assert_eq!(length(&function, 1, 0), Some(7));
        assert_eq!(length(&function, 2, 0), None);
    }

    #[test]
    fn a_loop_is_gone_round_as_often_as_is_asked() {
        use Instruction::*;
        let function = [Branch(3), Plain, Branch(1), Plain, Return];
        assert_eq!(length(&function, 0, 0), Some(2));
        assert_eq!(length(&function, 0, 3), Some(10));
    }
}
