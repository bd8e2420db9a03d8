//! Pauses between attempts: exponential, with jitter.

use std::time::Duration;

/// The longest pause that a receiver can ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(300);

/// The pauses before a request is repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    longest: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new((first, longest): (Duration, Duration)) -> Self {
        Self { longest, next: first.min(longest) }
    }

    /// The next pause: at least as long as the receiver asked for, within reason.
    pub(crate) fn pause(&mut self, asked: Option<Duration>) -> Duration {
        // Many clients that failed at once come back at different times.
        let pause = self.next.mul_f64(1.0 - fastrand::f64() / 2.0);
        self.next = (self.next * 2).min(self.longest);
        pause.max(asked.unwrap_or_default().min(LONGEST_ASKED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_heed_the_receiver() {
        let second = Duration::from_secs;
        let mut backoff = Backoff::new((second(1), second(5)));
        for (asked, from, to) in [
            (None, 0.5, 1.0),
            (None, 1.0, 2.0),
            (Some(0), 2.0, 4.0),
            (None, 2.5, 5.0),
            (Some(7), 7.0, 7.0),
            (Some(1_000_000), 300.0, 300.0),
            (None, 2.5, 5.0),
        ] {
            let pause = backoff.pause(asked.map(second)).as_secs_f64();
            assert!((from..=to).contains(&pause), "{pause} in {from} to {to}");
        }
    }
}
