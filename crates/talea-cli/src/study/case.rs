//! Load cases: how many clients, how many iterations each.

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, bail};

/// One load case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// A letter of [`KNOWN`], or clients x iterations as in `500x5`.
    pub id: String,
    /// Concurrent clients.
    pub clients: u64,
    /// Runs of the sequence by each client.
    pub iterations: u64,
}

/// The cases that have a letter: clients and iterations.
pub const KNOWN: [(&str, u64, u64); 5] =
    [("A", 10, 20), ("B", 100, 20), ("C", 1000, 20), ("D", 20, 100), ("E", 20, 1000)];

/// How many requests the built-in scenario has.
const REQUESTS_OF_CRUD: u64 = 5;

impl Case {
    /// How many requests the case makes where every one of them can be sent.
    pub fn requests(&self) -> u64 {
        self.clients.saturating_mul(self.iterations).saturating_mul(REQUESTS_OF_CRUD)
    }

    /// Makes sure that no case is asked for twice.
    ///
    /// # Errors
    /// Names the first case that is there twice.
    pub fn all_distinct(cases: &[Case]) -> Result<()> {
        for (at, case) in cases.iter().enumerate() {
            if cases[..at].iter().any(|earlier| earlier.id == case.id) {
                bail!("case {} is there twice in --cases: name each case once", case.id);
            }
        }
        Ok(())
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some((id, clients, iterations)) =
            KNOWN.iter().find(|(id, ..)| id.eq_ignore_ascii_case(text))
        {
            return Ok(Self { id: (*id).to_owned(), clients: *clients, iterations: *iterations });
        }
        let Some((clients, iterations)) = text.split_once(['x', '×']) else {
            return Err(format!("unknown case {text:?}; {}", known()));
        };
        let number = |what: &str, text: &str| match text.trim().parse() {
            Ok(0) => Err(format!("found 0 {what}, expected at least 1")),
            Ok(number) => Ok(number),
            Err(_) => Err(format!("found {text:?} {what}, expected a whole number; {}", known())),
        };
        let clients = number("clients", clients)?;
        let iterations = number("iterations", iterations)?;
        Ok(Self { id: format!("{clients}x{iterations}"), clients, iterations })
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = format!("{}x{}", self.clients, self.iterations);
        match self.id == sizes {
            true => write!(f, "case {sizes}"),
            false => write!(f, "case {} ({sizes})", self.id),
        }
    }
}

fn known() -> String {
    let known = KNOWN.map(|(id, clients, iterations)| format!("{id} ({clients}x{iterations})"));
    format!("known are {}, or clients x iterations such as 500x5", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn a_case_makes_all_requests_of_the_scenario() {
        assert_eq!(Scenario::crud().steps.len() as u64, REQUESTS_OF_CRUD);
        assert_eq!("A".parse::<Case>().unwrap().requests(), 1000);
    }

    fn case(text: &str) -> Result<Case, String> {
        text.parse()
    }

    #[test]
    fn a_letter_is_a_case_of_the_reference() {
        let c = case("C").unwrap();
        assert_eq!((c.id.as_str(), c.clients, c.iterations), ("C", 1000, 20));
        assert_eq!(case(" e ").unwrap().iterations, 1000);
    }

    #[test]
    fn a_custom_case_is_named_by_its_sizes() {
        let custom = case("500x5").unwrap();
        assert_eq!((custom.id.as_str(), custom.clients, custom.iterations), ("500x5", 500, 5));
        assert_eq!(case("0500×5").unwrap().id, "500x5");
    }

    #[test]
    fn an_unknown_case_is_named_and_the_known_are_listed() {
        let error = case("Z").unwrap_err();
        assert!(error.contains("\"Z\"") && error.contains("C (1000x20)"), "{error}");
        assert!(case("").is_err());
        assert!(case("10x").unwrap_err().contains("iterations"));
        assert!(case("-1x5").unwrap_err().contains("clients"));
    }

    #[test]
    fn a_case_without_clients_or_iterations_is_refused() {
        assert!(case("0x5").unwrap_err().contains("0 clients"));
        assert!(case("5x0").unwrap_err().contains("0 iterations"));
    }

    #[test]
    fn a_case_may_not_be_asked_for_twice() {
        let cases = ["A", "10x20", "a"].map(|text| case(text).unwrap());
        assert!(Case::all_distinct(&cases[..2]).is_ok());
        assert!(Case::all_distinct(&cases).unwrap_err().to_string().contains("case A"));
    }
}
