//! The values that several rounds of a study have in common.

use maud::{Markup, html};
use talea_statistics::figures::{NONE, counted};

use crate::compare::{bounded, titled, value};
use crate::study::{CaseResult, Measure};
use talea_statistics::Mean;
use talea_view::document::wide_table;

/// Means with intervals, case by case; nothing of a single round.
pub(super) fn section(results: &[CaseResult]) -> Markup {
    let rounds = results.iter().map(|case| case.rounds.len()).max().unwrap_or(0);
    let headings = html! {
        tr { th scope="col" { "" } @for case in results { th.first scope="col" { (case.id) } } }
    };
    let rows = html! {
        @for (measure, ..) in Measure::ALL {
            tr {
                th scope="row" { (titled(measure)) }
                @for case in results { (mean(case, measure)) }
            }
        }
    };
    html! {
        @if rounds > 1 {
            section {
                h2 { "Over " (counted(rounds as u64, "round")) }
                (wide_table("Means over rounds", "cases", &headings, &rows))
                p.note {
                    "The mean over the rounds, and the interval that holds the true one in 95 of 100 \
                     such experiments. The rest of the page is of the round whose client time is the \
                     middle one, or of the first in which something failed."
                }
            }
        }
    }
}

fn mean(case: &CaseResult, measure: Measure) -> Markup {
    let values = measure.of(&case.rounds);
    let mean = values.as_ref().and_then(|values| measure.mean(&values.numbers));
    html! {
        td.first {
            @match mean {
                Some(Mean { mean, .. }) if values.is_some_and(|values| values.at_least) => {
                    (bounded(measure, mean, true))
                }
                Some(Mean { mean, low, high }) => {
                    (value(measure, mean))
                    span.unit { (value(measure, low.max(0.0))) " to " (value(measure, high)) }
                }
                None => { (NONE) }
            }
        }
    }
}
