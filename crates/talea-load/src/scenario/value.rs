//! Variables, and their values, one client's.

use std::ops::RangeInclusive;

use fastrand::Rng;
use serde_json::Value as Json;

use super::definition::Scenario;
use super::feed::{Cursors, Each};

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CapturedValue {
    pub(crate) text: String,
    /// Whether it is a text in JSON too, rather than a number or a truth value.
    pub is_text: bool,
}

/// A feed, by its place, that has no more rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FeedEnded(pub(crate) usize);

impl Values {
    /// Those of a client whose random values come from a seed.
    pub fn new(scenario: &Scenario, seed: u64) -> Self {
        Self {
            values: vec![None; scenario.variables.len()],
            rows: vec![None; scenario.feeds.len()],
            random: Rng::with_seed(seed),
        }
    }

    /// Begins an iteration: random values are drawn, rows of feeds are taken, and what was captured is forgotten.
    /// Fails when a feed has no more rows.
    pub(crate) fn begin(
        &mut self,
        scenario: &Scenario,
        cursors: &Cursors,
    ) -> Result<(), FeedEnded> {
        let Self { values, rows, random } = self;
        for (n, (row, feed)) in rows.iter_mut().zip(&scenario.feeds).enumerate() {
            if row.is_none() || feed.each == Each::Iteration {
                *row = Some(cursors.next(n, feed, random).ok_or(FeedEnded(n))?);
            }
        }
        for (value, variable) in values.iter_mut().zip(&scenario.variables) {
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
                    let row = rows[*feed].map(|row| &scenario.feeds[*feed].rows[row]);
                    *value = row.and_then(|row| row[*column].clone());
                }
                (Source::Captured, _) => *value = None,
            }
        }
        Ok(())
    }

    /// Draws one of the scenario's flows by their weights; none if it has none.
    pub(crate) fn flow(&mut self, scenario: &Scenario) -> Option<usize> {
        let all: u64 = scenario.flows.iter().map(|flow| flow.weight).sum();
        let mut drawn = (all > 0).then(|| self.random.u64(0..all))?;
        scenario.flows.iter().position(|flow| {
            let is_here = drawn < flow.weight;
            drawn = drawn.saturating_sub(flow.weight);
            is_here
        })
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

impl CapturedValue {
    pub(crate) fn text(text: &str) -> Self {
        Self { text: text.to_owned(), is_text: true }
    }

    /// A number, or a truth value.
    pub(crate) fn number(value: impl ToString) -> Self {
        Self { text: value.to_string(), is_text: false }
    }

    /// The value at a JSON pointer of an answer, if it is a text, a number or a truth value.
    pub(crate) fn at(answer: &[u8], pointer: &str) -> Option<Self> {
        let answer: Json = serde_json::from_slice(answer).ok()?;
        answer.pointer(pointer).and_then(Self::of)
    }

    /// A text, a number or a truth value of JSON.
    pub(crate) fn of(json: &Json) -> Option<Self> {
        match json {
            Json::String(text) => Some(Self::text(text)),
            found @ (Json::Number(_) | Json::Bool(_)) => Some(Self::number(found)),
            Json::Null | Json::Array(_) | Json::Object(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::feed::Shard;
    use super::*;

    #[test]
    fn the_value_at_a_pointer_is_captured_with_its_kind() {
        let answer = br#"{"data":{"id":7,"name":"a\"b","on":true,"none":null,"all":[{"x":1}]}}"#;
        let number = |text| Some(CapturedValue::number(text));
        for (pointer, expected) in [
            ("/data/id", number("7")),
            ("/data/name", Some(CapturedValue::text("a\"b"))),
            ("/data/on", number("true")),
            ("/data/all/0/x", number("1")),
            ("/data/none", None),
            ("/data/all", None),
            ("/data", None),
            ("/id", None),
        ] {
            assert_eq!(CapturedValue::at(answer, pointer), expected, "{pointer}");
        }
        assert_eq!(CapturedValue::at(b"no JSON", "/id"), None);
    }

    #[test]
    fn random_values_are_drawn_anew_and_the_same_for_the_same_seed() {
        let choice = Source::Choice(["a", "b"].map(str::to_owned).to_vec());
        let variables = [("n", Source::Random(1..=1_000_000)), ("word", choice)]
            .map(|(name, source)| Variable { name: name.to_owned(), source });
        let scenario = Scenario { variables: variables.to_vec(), ..Scenario::crud() };
        let cursors = Cursors::new(&[], Shard::ALL);
        let drawn = |seed| {
            let mut values = Values::new(&scenario, seed);
            let mut draw = || {
                values.begin(&scenario, &cursors).unwrap();
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
