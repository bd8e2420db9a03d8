//! How the variants take turns: all of them once in each round, each in a new process, so
//! that the luck of a process (where its memory lies) is not taken for its variant's. The
//! order moves on by one from round to round and turns around in every other one, so that
//! none always goes first, or always after the same other.

use anyhow::Result;

use crate::cores::Pair;
use crate::round::{self, Found};
use crate::variants;

/// How servers and wrk run.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    /// Threads of the server, and of wrk.
    pub(crate) threads: usize,
    /// A core for each, or any for both.
    pub(crate) cores: Option<Pair>,
    pub(crate) rounds: u32,
    pub(crate) seconds: u32,
}

/// The results of a setup, by variant and by round.
pub(crate) struct Course {
    pub(crate) setup: Setup,
    pub(crate) found: [Vec<Found>; variants::ALL.len()],
}

impl Course {
    /// A figure of one variant, by round.
    pub(crate) fn of(&self, variant: usize, figure: fn(&Found) -> f64) -> Vec<f64> {
        self.found[variant].iter().map(figure).collect()
    }
}

/// Runs a setup. Progress goes to standard error.
pub(crate) async fn run(setup: Setup) -> Result<Course> {
    let mut found: [Vec<Found>; variants::ALL.len()] = Default::default();
    for round in 0..setup.rounds as usize {
        eprintln!("{}, round {} of {}", setup.name, round + 1, setup.rounds);
        for variant in order::<{ variants::ALL.len() }>(round) {
            found[variant].push(round::measure(&variants::ALL[variant], &setup).await?);
        }
    }
    Ok(Course { setup, found })
}

/// The order of so many variants in a round.
pub(crate) fn order<const ALL: usize>(round: usize) -> [usize; ALL] {
    let mut order = std::array::from_fn(|turn| (turn + round / 2) % ALL);
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_goes_first_equally_often() {
        const ALL: usize = variants::ALL.len();
        let mut first = [0; ALL];
        for round in 0..2 * ALL {
            let mut order = order::<ALL>(round);
            first[order[0]] += 1;
            order.sort_unstable();
            assert!(order.into_iter().eq(0..ALL));
        }
        assert_eq!(first, [2; ALL]);
    }

    #[test]
    fn neighbours_go_before_and_after_each_other() {
        let before = |round| {
            let order = order::<{ variants::ALL.len() }>(round);
            order.iter().position(|&variant| variant == variants::METERED)
                < order.iter().position(|&variant| variant == variants::QUANTILES)
        };
        let often = (0..12).filter(|&round| before(round)).count();
        assert_eq!(often, 6);
    }
}
