//! Variables, and their values, one client's.

use std::ops::RangeInclusive;

use fastrand::Rng;

use super::captured::CapturedValue;
use super::feed::{Cursors, Each, Feed};

/// A variable of a scenario.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name, which stands in braces where its value is to stand.
    pub name: String,
    /// Where its value comes from.
    pub(crate) source: Source,
}

#[derive(Clone, Debug)]
pub(crate) enum Source {
    Fixed(CapturedValue),
    /// A whole number from the one to the other, anew for each iteration.
    Random(RangeInclusive<i64>),
    /// One of these, anew for each iteration.
    Choice(Vec<String>),
    /// A column of a feed, by their places.
    Column {
        feed: usize,
        column: usize,
    },
    /// An answer of this iteration, once it is there.
    Captured,
}

/// The values of a client's variables during an iteration.
#[derive(Clone, Debug)]
pub struct Values {
    values: Vec<Option<CapturedValue>>,
    /// The row of each feed.
    rows: Vec<Option<usize>>,
    random: Rng,
}

/// A feed, by its place, that has no more rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FeedEnded(pub(crate) usize);

impl Values {
    /// Those of a client whose random values come from a seed.
    pub(crate) fn new(variables: &[Variable], feeds: &[Feed], seed: u64) -> Self {
        let (values, rows) = (vec![None; variables.len()], vec![None; feeds.len()]);
        Self { values, rows, random: Rng::with_seed(seed) }
    }

    /// Begins an iteration: random values are drawn, rows of feeds are taken, and what was captured is forgotten.
    /// Fails when a feed has no more rows.
    pub(crate) fn begin(
        &mut self,
        variables: &[Variable],
        feeds: &[Feed],
        cursors: &Cursors,
    ) -> Result<(), FeedEnded> {
        let Self { values, rows, random } = self;
        for (n, (row, feed)) in rows.iter_mut().zip(feeds).enumerate() {
            if row.is_none() || feed.each == Each::Iteration {
                *row = Some(cursors.next(n, feed, random).ok_or(FeedEnded(n))?);
            }
        }
        for (value, variable) in values.iter_mut().zip(variables) {
            match (&variable.source, &value) {
                // It is there from the iteration before.
                (Source::Fixed(_), Some(_)) => {}
                (Source::Fixed(fixed), None) => *value = Some(fixed.clone()),
                (Source::Random(range), _) => {
                    *value = Some(CapturedValue::number(random.i64(range.clone())));
                }
                (Source::Choice(texts), _) => {
                    *value = random.choice(texts).map(|text| CapturedValue::text(text));
                }
                (Source::Column { feed, column }, _) => {
                    let row = rows[*feed].map(|row| &feeds[*feed].rows[row]);
                    *value = row.and_then(|row| row[*column].clone());
                }
                (Source::Captured, _) => *value = None,
            }
        }
        Ok(())
    }

    pub(crate) fn get(&self, variable: usize) -> Option<&CapturedValue> {
        self.values.get(variable)?.as_ref()
    }

    pub(crate) fn set(&mut self, variable: usize, value: CapturedValue) {
        self.values[variable] = Some(value);
    }

    pub(crate) fn random(&mut self) -> &mut Rng {
        &mut self.random
    }
}

#[cfg(test)]
mod tests {
    use super::super::feed::Shard;
    use super::*;

    #[test]
    fn random_values_are_drawn_anew_and_the_same_for_the_same_seed() {
        let choice = Source::Choice(["a", "b"].map(str::to_owned).to_vec());
        let variables = [("n", Source::Random(1..=1_000_000)), ("word", choice)]
            .map(|(name, source)| Variable { name: name.to_owned(), source });
        let cursors = Cursors::new(&[], Shard::ALL);
        let drawn = |seed| {
            let mut values = Values::new(&variables, &[], seed);
            let mut draw = || {
                values.begin(&variables, &[], &cursors).unwrap();
                (values.get(0).unwrap().text.clone(), values.get(1).unwrap().text.clone())
            };
            (0..50).map(|_| draw()).collect::<Vec<_>>()
        };
        let first = drawn(1);
        assert_eq!(first, drawn(1));
        assert_ne!(first, drawn(2));
        assert!(first.iter().any(|(n, _)| *n != first[0].0));
        assert!(["a", "b"].iter().all(|word| first.iter().any(|(_, found)| found == word)));
        assert!(first.iter().all(|(n, _)| (1..=1_000_000).contains(&n.parse::<i64>().unwrap())));
    }
}
