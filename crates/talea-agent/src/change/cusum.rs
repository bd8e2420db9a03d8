//! A sequential test: whether observations in ordered classes moved to higher ones, and since when.
//!
//! It is Page's CUSUM (E. S. Page, "Continuous Inspection Schemes", 1954), one for each of a few alternatives. Each step
//! adds the logarithm of the likelihood ratio of an alternative to what is usual, and a sum never falls below 0. The
//! step after which the sum last was 0 is the most likely one of the change.
//!
//! 1. A likelihood ratio has the mean 1 as long as all is usual, so a sum exceeds `h` at most once in `exp(h)` steps in
//!    the mean (G. Lorden, "Procedures for Reacting to a Change in Distribution", 1971). Cutting a step's sum off at
//!    the top only lowers that mean.
//! 2. Each ratio grows from class to class. So what holds for the usual distribution holds for any that has less above
//!    each bound (stochastic dominance): a service that becomes faster gives no alarm.

/// The share of what is above a class's lower bound, as an alternative has it instead of the usual one.
#[derive(Clone, Copy, Debug)]
enum Alternative {
    /// The usual one to this power (Lehmann's alternative): all becomes slower, the tail above all.
    Power(f64),
    /// This share of all goes to where so little is usually.
    Tail { share: f64, usually: f64 },
}

const ALTERNATIVES: [Alternative; 6] = [
    Alternative::Power(0.65),
    Alternative::Power(0.4),
    Alternative::Power(0.15),
    Alternative::Tail { share: 0.03, usually: 0.003 },
    Alternative::Tail { share: 0.1, usually: 0.01 },
    Alternative::Tail { share: 0.4, usually: 0.03 },
];

/// How many sums there are, each of which may give a false alarm.
pub(super) const SUMS: usize = ALTERNATIVES.len();

/// No single step has more than this part of what an alarm takes: a stall of a few seconds is none.
const LEAST_STEPS: f64 = 4.0;

impl Alternative {
    fn above(self, usual: f64) -> f64 {
        match self {
            Self::Power(power) => usual.powf(power),
            Self::Tail { share, usually } => {
                (1.0 - share) * usual + share * (usual / usually).min(1.0)
            }
        }
    }
}

/// The logarithms of the likelihood ratios of each alternative, by class.
#[derive(Clone, Debug, Default)]
pub(super) struct Ratios(Vec<[f64; SUMS]>);

impl Ratios {
    /// Of classes by the share that is usually above the upper bound of each; these fall, and the last class is what is
    /// above the last bound.
    pub(super) fn of(above: &[f64]) -> Self {
        let mut ratios = Vec::with_capacity(above.len() + 1);
        let mut higher = 1.0;
        for lower in above.iter().copied().chain([0.0]) {
            ratios.push(
                ALTERNATIVES
                    .map(|it| ((it.above(higher) - it.above(lower)) / (higher - lower)).ln()),
            );
            higher = lower;
        }
        Self(ratios)
    }

    /// The ratio of all observations of a step, by how many are in each class.
    fn of_step(&self, counts: &[f64]) -> [f64; SUMS] {
        let mut sums = [0.0; SUMS];
        for (count, ratios) in counts.iter().zip(&self.0) {
            if *count > 0.0 {
                sums.iter_mut().zip(ratios).for_each(|(sum, ratio)| *sum += count * ratio);
            }
        }
        sums
    }
}

/// The sums of a test, each with the step at which it left 0.
#[derive(Clone, Debug, Default)]
pub(super) struct Cusum {
    sums: [(f64, i64); SUMS],
}

/// An alarm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Alarm {
    alternative: usize,
    /// The first step of the change.
    pub(super) since: i64,
}

impl Cusum {
    /// Adds a step, by its time and its counts by class; an alarm if a sum exceeds the threshold.
    pub(super) fn add(
        &mut self,
        time: i64,
        counts: &[f64],
        ratios: &Ratios,
        threshold: f64,
    ) -> Option<Alarm> {
        let most = threshold / LEAST_STEPS;
        let step = ratios.of_step(counts);
        for ((sum, since), ratio) in self.sums.iter_mut().zip(step) {
            if *sum == 0.0 {
                *since = time;
            }
            *sum = (*sum + ratio.min(most)).max(0.0);
        }
        let (alternative, (sum, since)) =
            self.sums.into_iter().enumerate().max_by(|one, other| one.1.0.total_cmp(&other.1.0))?;
        (sum > threshold).then_some(Alarm { alternative, since })
    }
}

/// The same test the other way round: whether what an alarm found has ended.
#[derive(Clone, Debug)]
pub(super) struct Recovery {
    alarm: Alarm,
    sum: f64,
}

impl Recovery {
    pub(super) fn from(alarm: Alarm) -> Self {
        Self { alarm, sum: 0.0 }
    }

    pub(super) fn since(&self) -> i64 {
        self.alarm.since
    }

    /// Adds a step; whether all is usual again.
    pub(super) fn add(&mut self, counts: &[f64], ratios: &Ratios, threshold: f64) -> bool {
        let most = threshold / LEAST_STEPS;
        let ratio = ratios.of_step(counts)[self.alarm.alternative];
        self.sum = (self.sum - ratio.max(-most)).max(0.0);
        self.sum > threshold
    }
}
