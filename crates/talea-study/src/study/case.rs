//! Load cases: how many clients, how many iterations each; or how long; or how many arrivals.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Result, bail};

use talea_load::scenario::Shard;
use talea_load::{Arrivals, Model, Stage, Until, parse_duration};

#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// A letter of [`KNOWN`], or what was typed, as in `500x5`.
    pub id: String,
    pub model: Model,
}

/// The cases that have a letter: clients and iterations.
pub const KNOWN: [(&str, u64, u64); 5] =
    [("A", 10, 20), ("B", 100, 20), ("C", 1000, 20), ("D", 20, 100), ("E", 20, 1000)];

/// The cases of `--long`: by time, so that a Prometheus that scrapes once a second sees each.
pub const LONG: [&str; 4] = ["10x10s", "20x10s", "100x10s", "1000x10s"];

/// How many may be under way at once where requests arrive at a rate.
const MAX_CONCURRENT: u64 = 1000;

impl Case {
    /// How often each client runs the scenario, where that is decided beforehand.
    pub(crate) fn iterations(&self) -> Option<u64> {
        match self.model {
            Model::Closed { until: Until::Iterations(iterations), .. } => Some(iterations),
            _ => None,
        }
    }

    /// Makes sure that no case is asked for twice.
    /// Names the first case that is there twice.
    pub fn all_distinct(cases: &[Case]) -> Result<()> {
        for (at, case) in cases.iter().enumerate() {
            if cases[..at].iter().any(|earlier| earlier.id == case.id) {
                bail!("--cases has {} twice: name each case once", case.id);
            }
        }
        Ok(())
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let known = KNOWN.iter().find(|(id, ..)| id.eq_ignore_ascii_case(text));
        if let Some((id, clients, iterations)) = known {
            let until = Until::Iterations(*iterations);
            let model = Model::Closed { clients: *clients, until };
            return Ok(Self { id: (*id).to_owned(), model });
        }
        if text.contains("/s:") {
            return open(text);
        }
        let Some((clients, until)) = text.split_once(['x', '×']) else {
            return Err(format!("unknown case {text:?}; {}", known_cases()));
        };
        let clients = number("clients", clients)?;
        let until = until.trim();
        let until = match until.parse::<u64>() {
            Err(_) if until.ends_with(|c: char| c.is_ascii_alphabetic()) => {
                Until::Time(time(until)?)
            }
            _ => Until::Iterations(number("iterations", until)?),
        };
        let id = match until {
            Until::Iterations(number) | Until::Total(number) => format!("{clients}x{number}"),
            Until::Time(time) => {
                format!("{clients}x{}", humantime::format_duration(time)).replace(' ', "")
            }
        };
        Ok(Self { id, model: Model::Closed { clients, until } })
    }
}

/// `200/s:30s`.
fn open(text: &str) -> Result<Case, String> {
    let stage: Stage = text.replacen("/s:", ":", 1).parse()?;
    let time = humantime::format_duration(stage.time);
    let to = if stage.rate == stage.to { String::new() } else { format!("-{}", stage.to) };
    let id = format!("{}{to}/s:{time}", stage.rate).replace(' ', "");
    let arrivals = Arrivals { stages: vec![stage], poisson: false, shard: Shard::ALL };
    Ok(Case { id, model: Model::Open { arrivals, at_most: MAX_CONCURRENT } })
}

fn number(what: &str, text: &str) -> Result<u64, String> {
    match text.trim().parse() {
        Ok(0) => Err(format!("found 0 {what}, expected at least 1")),
        Ok(number) => Ok(number),
        Err(_) => Err(format!("found {text:?} {what}, expected a whole number; {}", known_cases())),
    }
}

fn time(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(Duration::ZERO) | Err(_) => {
            Err(format!("found the time {text:?}, expected one such as 10s; {}", known_cases()))
        }
        Ok(time) => Ok(time),
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "case {}", self.id)?;
        match (&self.model, KNOWN.iter().any(|(id, ..)| *id == self.id)) {
            (Model::Closed { clients, until: Until::Iterations(iterations) }, true) => {
                write!(f, " ({clients}x{iterations})")
            }
            _ => Ok(()),
        }
    }
}

fn known_cases() -> String {
    let known = KNOWN.map(|(id, clients, iterations)| format!("{id} ({clients}x{iterations})"));
    format!(
        "known are {}; clients x iterations such as 500x5; clients for a time such as 500x10s; \
         arrivals such as 200/s:10s",
        known.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(text: &str) -> Case {
        text.parse().unwrap()
    }

    #[test]
    fn letters_clients_and_arrivals_are_cases() {
        for (id, clients, iterations) in KNOWN {
            let known = case(&id.to_lowercase());
            assert_eq!((known.id.as_str(), known.iterations()), (id, Some(iterations)));
            assert_eq!(known.to_string(), format!("case {id} ({clients}x{iterations})"));
            assert_eq!(known.model.clients(), clients);
        }
        let time = |seconds| Until::Time(Duration::from_secs(seconds));
        for (text, id, clients, until) in [
            (" 500 x 5 ", "500x5", 500, Until::Iterations(5)),
            ("10x20", "10x20", 10, Until::Iterations(20)),
            ("50x1m30s", "50x1m30s", 50, time(90)),
            (LONG[0], LONG[0], 10, time(10)),
        ] {
            let case = case(text);
            assert_eq!((&*case.id, case.to_string()), (id, format!("case {id}")));
            assert_eq!(case.model, Model::Closed { clients, until }, "{id}");
        }
        let open = case("200/s:500ms");
        assert_eq!(open.id, "200/s:500ms");
        assert_eq!(open.model.iterations(), Some(100));
        assert_eq!(open.model.clients(), MAX_CONCURRENT);
        let ramp = case("0-200/s:1s");
        assert_eq!((&*ramp.id, ramp.model.iterations()), ("0-200/s:1s", Some(100)));
    }

    #[test]
    fn an_unknown_case_is_refused_with_the_known_ones() {
        for text in ["", "Z", "10", "10x", "x5", "10xA", "10x5parsecs", "0x5", "10x0", "-1x5"] {
            let error = text.parse::<Case>().unwrap_err();
            assert!(
                error.contains("known are A (10x20)") || error.contains("at least 1"),
                "{error}"
            );
        }
        assert!("0/s:1s".parse::<Case>().unwrap_err().contains("0.001 to 1000000"));
    }
}
