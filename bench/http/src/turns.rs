//! How subjects take turns: each of them once in a round, each measurement in new processes, so
//! that the luck of a process (where its memory lies) is not taken for its subject's. The
//! order moves on by one every other round and turns around in between, so that no subject
//! always goes first, or always after the same other.

use anyhow::Result;

use crate::measurement::{CALM, Measurement};

const TRIES: u32 = 3;

/// The measurements by subject and by round.
pub(crate) struct Rounds(Vec<Vec<Measurement>>);

impl Rounds {
    /// A figure of one subject, by round.
    pub(crate) fn of(&self, subject: usize, figure: fn(&Measurement) -> f64) -> Vec<f64> {
        self.0[subject].iter().map(figure).collect()
    }

    pub(crate) fn of_all(&self, figure: fn(&Measurement) -> f64) -> Vec<f64> {
        self.0.iter().flatten().map(figure).collect()
    }
}

/// Measures each subject, by its place in `names`, once in each round. Progress goes to standard
/// error.
pub(crate) async fn run(
    title: &str,
    rounds: u32,
    names: &[&str],
    measure: impl AsyncFn(usize) -> Result<Measurement>,
) -> Result<Rounds> {
    let mut found = vec![Vec::new(); names.len()];
    for round in 0..rounds as usize {
        eprintln!("{title}, round {} of {rounds}", round + 1);
        for subject in order(names.len(), round) {
            found[subject].push(calmest(names[subject], async || measure(subject).await).await?);
        }
    }
    Ok(Rounds(found))
}

/// Measures until other programs have little of the cores, or takes the measurement in which they
/// had least.
async fn calmest(name: &str, once: impl AsyncFn() -> Result<Measurement>) -> Result<Measurement> {
    let mut best = once().await?;
    for _ in 1..TRIES {
        if best.others <= CALM {
            break;
        }
        eprintln!("{name}: others had {:.0} % of the cores; again", best.others * 100.0);
        let again = once().await?;
        if again.others < best.others {
            best = again;
        }
    }
    Ok(best)
}

/// The order of `count` subjects in a round.
fn order(count: usize, round: usize) -> Vec<usize> {
    let mut order: Vec<_> = (0..count).map(|turn| (turn + round / 2) % count).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_subject_goes_first_equally_often() {
        let mut first = [0; 6];
        for round in 0..12 {
            let mut order = order(6, round);
            first[order[0]] += 1;
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3, 4, 5]);
        }
        assert_eq!(first, [2; 6]);
    }

    #[test]
    fn neighbours_go_before_and_after_each_other() {
        let orders = (0..12).map(|round| order(6, round));
        let before = orders.filter(|order| {
            order.iter().position(|&one| one == 2) < order.iter().position(|&one| one == 3)
        });
        assert_eq!(before.count(), 6);
    }
}
