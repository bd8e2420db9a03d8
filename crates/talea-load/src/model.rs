//! Load models: a request is made when a client is free (closed), or by a schedule (open).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use fastrand::Rng;

use crate::duration::parse_duration;
use crate::scenario::Shard;
use talea_statistics::figures::{counted, measured};

/// When requests are made.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// Some clients each make their next request when the last one is answered: a server that
    /// is slow is asked less.
    Closed {
        /// How many clients run at the same time.
        clients: u64,
        /// How long each goes on.
        until: Until,
    },
    /// Requests arrive whatever became of those before. Each arrival runs the scenario once.
    Open {
        /// When scenarios begin.
        arrivals: Arrivals,
        /// How many may be under way at once. One that arrives beyond waits, and its wait counts.
        at_most: u64,
    },
}

/// How long a client goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// After so many runs of the scenario.
    Iterations(u64),
    /// After so many runs of the scenario by all clients together, which share them evenly.
    Total(u64),
    /// So much time has passed. Requests under way then are finished; no new one is begun.
    Time(Duration),
}

impl Until {
    /// The part of a client, by its number, among so many.
    pub(crate) fn of_client(self, number: u64, clients: u64) -> Self {
        match self {
            Self::Total(all) => Self::Iterations(all / clients + u64::from(number < all % clients)),
            each => each,
        }
    }
}

/// When requests arrive: stages, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrivals {
    /// One after another.
    pub stages: Vec<Stage>,
    /// Whether they arrive at random (a Poisson process), or evenly.
    pub poisson: bool,
    /// The part of the arrivals that are this load's: each n-th, so that all parts together are the whole.
    pub shard: Shard,
}

/// A period with a constant rate, or one that changes evenly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// Arrivals a second, at its start.
    pub rate: f64,
    /// At its end.
    pub to: f64,
    /// How long the stage is.
    pub time: Duration,
}

impl Model {
    /// How many clients there are at most.
    pub fn clients(&self) -> u64 {
        match self {
            Self::Closed { clients, .. } => *clients,
            Self::Open { at_most, .. } => *at_most,
        }
    }

    /// The part of this load that a shard makes.
    ///
    /// # Errors
    /// There are fewer clients, or requests, than shards.
    pub fn of_shard(&self, shard: Shard) -> Result<Self, String> {
        let mut model = self.clone();
        let (clients, total) = match &mut model {
            Self::Closed { clients, until } => {
                *clients = shard.part(*clients);
                if let Until::Total(all) = until {
                    *all = shard.part(*all);
                }
                (*clients, if let Until::Total(all) = until { *all } else { 1 })
            }
            Self::Open { arrivals, at_most } => {
                *at_most = shard.part(*at_most);
                arrivals.shard = shard;
                (*at_most, 1)
            }
        };
        match clients.min(total) {
            0 => Err(format!("found fewer clients or requests than shards; {shard} has none")),
            _ => Ok(model),
        }
    }

    /// Whether requests arrive whatever became of those before.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }

    /// How often the scenario is run where every request can be sent, if that is known
    /// beforehand.
    pub fn iterations(&self) -> Option<u64> {
        match self {
            Self::Closed { clients, until: Until::Iterations(each) } => {
                Some(clients.saturating_mul(*each))
            }
            Self::Closed { until: Until::Total(all), .. } => Some(*all),
            Self::Closed { until: Until::Time(_), .. } => None,
            Self::Open { arrivals: Arrivals { poisson: true, .. }, .. } => None,
            Self::Open { arrivals, .. } => {
                Some(arrivals.shard.part(arrivals.stages.iter().map(Stage::even_arrivals).sum()))
            }
        }
    }

    /// How long requests are made, if that is known beforehand.
    pub fn time(&self) -> Option<Duration> {
        match self {
            Self::Closed { until: Until::Time(time), .. } => Some(*time),
            Self::Closed { until: Until::Iterations(_) | Until::Total(_), .. } => None,
            Self::Open { arrivals, .. } => Some(arrivals.time()),
        }
    }

    /// This model limited to a time, to warm up.
    #[must_use]
    pub fn only_for(&self, time: Duration) -> Self {
        let mut model = self.clone();
        match &mut model {
            Self::Closed { until, .. } => *until = Until::Time(time),
            Self::Open { arrivals, .. } => {
                let rate = arrivals.stages.first().map_or(0.0, |stage| stage.rate.max(stage.to));
                arrivals.stages = vec![Stage { rate, to: rate, time }];
            }
        }
        model
    }
}

impl Arrivals {
    /// How long the schedule is.
    pub fn time(&self) -> Duration {
        self.stages.iter().map(|stage| stage.time).sum()
    }

    /// When they arrive, from the start on. Equal seeds give equal times.
    pub fn offsets(&self, seed: u64) -> impl Iterator<Item = Duration> + Send + 'static {
        let Self { stages, poisson, shard } = self.clone();
        let mut random = Rng::with_seed(seed);
        let mut begun = 0.0;
        let all = stages.into_iter().flat_map(move |stage| {
            let (start, length) = (begun, stage.time.as_secs_f64());
            begun += length;
            let mut next = random.fork();
            // How many arrive until then; in a Poisson process the gaps of this are exponential.
            let mut expected = 0.0;
            let mut nth = 0u64;
            std::iter::from_fn(move || {
                // Evenly: the n-th at n gaps, so that no rounding adds up.
                expected = match poisson {
                    true => expected - (1.0 - next.f64()).ln(),
                    false => nth as f64,
                };
                nth += 1;
                let at = stage.instant(expected);
                (at < length).then(|| Duration::from_secs_f64(start + at))
            })
        });
        let [first, step] =
            [shard.number, shard.of].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        all.skip(first).step_by(step.max(1))
    }
}

impl Stage {
    /// When as many are expected to have arrived, in seconds; not a number if that is never.
    fn instant(&self, expected: f64) -> f64 {
        let Self { rate, to, time } = self;
        if rate == to {
            return expected / rate;
        }
        // rate · t + slope · t² ÷ 2 = expected, solved so that no digits cancel.
        let slope = (to - rate) / time.as_secs_f64();
        match expected == 0.0 {
            true => 0.0,
            false => 2.0 * expected / (rate + (rate * rate + 2.0 * slope * expected).sqrt()),
        }
    }

    /// How many arrive if they do so evenly: as many as [`Arrivals::offsets`] has, and not counted
    /// one by one, which takes minutes for a load of days.
    fn even_arrivals(&self) -> u64 {
        let length = self.time.as_secs_f64();
        let is_in_time = |nth: u64| self.instant(nth as f64) < length;
        let mut count = (self.rate.midpoint(self.to) * length) as u64;
        while count > 0 && !is_in_time(count - 1) {
            count -= 1;
        }
        while is_in_time(count) {
            count += 1;
        }
        count
    }
}

/// `200:10s`, or `100-400:30s`.
impl FromStr for Stage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected RATE:TIME such as 200:10s, arrivals a second for a time, or FROM-TO:TIME such \
            as 100-400:30s, a rate that changes evenly";
        let (rates, time) =
            text.split_once(':').ok_or_else(|| format!("found {text:?}, {EXPECTED}"))?;
        let (rate, to) = match rates.split_once('-') {
            // From nothing, or to nothing, but not both.
            Some(("0", to)) => (0.0, rate_of(to)?),
            Some((from, "0")) => (rate_of(from)?, 0.0),
            Some((from, to)) if !from.is_empty() => (rate_of(from)?, rate_of(to)?),
            _ => (rate_of(rates)?, rate_of(rates)?),
        };
        match parse_duration(time) {
            Ok(Duration::ZERO) => Err(format!("found a time of 0, {EXPECTED}")),
            Ok(time) => Ok(Self { rate, to, time }),
            Err(error) => Err(format!("{error}; {EXPECTED}")),
        }
    }
}

/// The rate of arrivals on the command line: `200`, or `200:10s,400:10s`.
#[derive(Clone, Debug, PartialEq)]
pub enum Rate {
    /// One, for as long as `--for` says.
    Constant(f64),
    /// Several, each for its time.
    Stages(Vec<Stage>),
}

impl Rate {
    /// The stages of a load that lasts `time`, or `default` if neither it nor the stages say how long. Fails for stages with
    /// times of their own if there is a `time`.
    pub fn stages(&self, time: Option<Duration>, default: Duration) -> Result<Vec<Stage>, String> {
        match (self, time) {
            (Self::Constant(rate), time) => {
                Ok(vec![Stage { rate: *rate, to: *rate, time: time.unwrap_or(default) }])
            }
            (Self::Stages(stages), None) => Ok(stages.clone()),
            (Self::Stages(_), Some(_)) => {
                Err("found --for, but the stages of --rate have times; leave one out".to_owned())
            }
        }
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.contains([':', ',']) {
            return rate_of(text).map(Self::Constant);
        }
        text.split(',').map(str::parse).collect::<Result<_, _>>().map(Self::Stages)
    }
}

fn rate_of(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|rate: &f64| (1e-3..=1e6).contains(rate));
    found.ok_or_else(|| format!("found the rate {text:?}, expected 0.001 to 1000000 a second"))
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |time: &Duration| format!("{} s", measured(time.as_secs_f64()));
        match self {
            Self::Closed { clients, until: Until::Iterations(each) } => {
                write!(f, "{} × {}", counted(*clients, "client"), counted(*each, "iteration"))
            }
            Self::Closed { clients, until: Until::Total(all) } => {
                write!(
                    f,
                    "{}, {} together",
                    counted(*clients, "client"),
                    counted(*all, "iteration")
                )
            }
            Self::Closed { clients, until: Until::Time(time) } => {
                write!(f, "{} for {}", counted(*clients, "client"), seconds(time))
            }
            Self::Open { arrivals: Arrivals { stages, poisson, .. }, .. } => {
                let texts: Vec<String> = stages
                    .iter()
                    .map(|Stage { rate, to, time }| {
                        let [from, to] = [rate, to].map(|rate| match *rate {
                            0.0 => "0".to_owned(),
                            rate => measured(rate),
                        });
                        let end = if from == to { String::new() } else { format!(" to {to}") };
                        format!("{from}{end} a second for {}", seconds(time))
                    })
                    .collect();
                let how = if *poisson { " at random" } else { "" };
                write!(f, "arrivals{how}: {}", texts.join(", then "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(stages: &[&str], poisson: bool, seed: u64) -> Vec<f64> {
        let stages = stages.iter().map(|stage| stage.parse().unwrap()).collect();
        let arrivals = Arrivals { stages, poisson, shard: Shard::ALL };
        arrivals.offsets(seed).map(|offset| offset.as_secs_f64()).collect()
    }

    #[test]
    fn even_arrivals_are_as_many_as_the_rate_says() {
        let even = offsets(&["100:2s", "10:1s"], false, 0);
        assert_eq!(even.len(), 210);
        assert_eq!(&even[..2], [0.0, 0.01]);
        assert!((even[200] - 2.0).abs() < 1e-9 && (even[209] - 2.9).abs() < 1e-9);
        assert!(even.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn even_arrivals_are_counted_as_they_come_and_at_once() {
        let open = |stages: Vec<Stage>| Arrivals { stages, poisson: false, shard: Shard::ALL };
        let counted = |arrivals| Model::Open { arrivals, at_most: 1 }.iterations();
        let years = vec!["1000000:36500d".parse().unwrap()];
        assert_eq!(counted(open(years)), Some(36_500 * 86_400 * 1_000_000));
        let mut random = Rng::with_seed(3);
        for _ in 0..2_000 {
            let rate = 10f64.powf(random.f64() * 6.0 - 3.0);
            let rates = [rate, rate.round().max(1.0), 1.0 / rate.round().max(1.0)];
            let to = [rate, 0.0, random.f64() * 1e4][random.usize(0..3)];
            let time = Duration::from_millis(random.u64(1..=5_000));
            let arrivals = open(rates.map(|rate| Stage { rate, to, time }).to_vec());
            let offsets = arrivals.offsets(0).count() as u64;
            assert_eq!(counted(arrivals), Some(offsets), "{rates:?} for {time:?}");
        }
    }

    #[test]
    fn random_arrivals_have_exponential_gaps_of_that_mean() {
        let random = offsets(&["1000:60s"], true, 7);
        assert_eq!(random, offsets(&["1000:60s"], true, 7));
        assert_ne!(random, offsets(&["1000:60s"], true, 8));
        // Within four standard deviations.
        assert!((random.len() as f64 - 60_000.0).abs() < 4.0 * 60_000f64.sqrt());
        let gaps: Vec<f64> = random.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // Of an exponential distribution e⁻¹ is longer than the mean.
        let longer = gaps.iter().filter(|gap| **gap > 1e-3).count() as f64 / gaps.len() as f64;
        assert!((longer - (-1f64).exp()).abs() < 0.01, "{longer}");
    }

    #[test]
    fn a_stage_says_what_it_should_be() {
        let time = Duration::from_secs(60);
        assert_eq!("2.5:1m".parse(), Ok(Stage { rate: 2.5, to: 2.5, time }));
        assert_eq!("0-40:1m".parse(), Ok(Stage { rate: 0.0, to: 40.0, time }));
        for text in ["", "100", "x:1s", "0:1s", "-1:1s", "1-:1s", "0-0:1s", "NaN:1s", "1:1", "1:0s"]
        {
            assert!(text.parse::<Stage>().unwrap_err().contains("expected"), "{text}");
        }
    }

    #[test]
    fn a_rate_that_changes_evenly_has_its_arrivals_where_they_are_expected() {
        for (stage, all, first_half) in
            [("0-100:10s", 500, 125), ("100-0:10s", 500, 375), ("100-300:10s", 2_000, 750)]
        {
            for poisson in [false, true] {
                let offsets = offsets(&[stage], poisson, 3);
                let half = offsets.iter().filter(|at| **at < 5.0).count();
                // Evenly it is one at most; at random within four standard deviations.
                let error = |found: usize, expected: usize| {
                    let allowed = if poisson { 4.0 * (expected as f64).sqrt() } else { 1.0 };
                    (found as f64 - expected as f64).abs() <= allowed
                };
                assert!(error(offsets.len(), all) && error(half, first_half), "{stage}: {half}");
                assert!(offsets.windows(2).all(|pair| pair[0] <= pair[1]), "{stage}");
            }
        }
    }

    #[test]
    fn the_arrivals_of_all_shards_are_those_of_the_whole() {
        for poisson in [false, true] {
            let stages: Vec<Stage> = ["100-300:2s", "50:1s"].map(|it| it.parse().unwrap()).to_vec();
            let of = |shard| Arrivals { stages: stages.clone(), poisson, shard };
            let mut together: Vec<Duration> = (0..3)
                .flat_map(|number| of(Shard { number, of: 3 }).offsets(9).collect::<Vec<_>>())
                .collect();
            together.sort_unstable();
            assert_eq!(together, of(Shard::ALL).offsets(9).collect::<Vec<_>>());
            let counts = (0..3).map(|number| {
                let arrivals = of(Shard { number, of: 3 });
                let offsets = arrivals.offsets(9).count() as u64;
                let model = Model::Open { arrivals, at_most: 1 };
                assert_eq!(model.iterations(), (!poisson).then_some(offsets));
                offsets
            });
            assert_eq!(counts.sum::<u64>(), together.len() as u64);
        }
    }
}
