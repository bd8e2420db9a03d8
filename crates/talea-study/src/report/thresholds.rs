//! The conditions of `--fail-if` on a page, passed or failed.

use maud::{Markup, html};

use crate::compare::Judgement;

pub(super) fn thresholds(judgements: &[Judgement]) -> Markup {
    let all_pass = judgements.iter().all(|judgement| result(judgement) == PASSED);
    html! {
        @if !judgements.is_empty() {
            div.verdict.good[all_pass].bad[!all_pass] {
                span.mark aria-hidden="true" { @if all_pass { "✓" } @else { "!" } }
                div {
                    @for judgement in judgements { p { b { (result(judgement)) } " " (judgement.words) } }
                }
            }
        }
    }
}

const PASSED: &str = "Passed:";

fn result(judgement: &Judgement) -> &'static str {
    match judgement {
        Judgement { holds: true, .. } => "Failed:",
        Judgement { lacks_number: true, .. } | Judgement { undecided: true, .. } => "Not judged:",
        _ => PASSED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judgement(holds: bool, lacks_number: bool) -> Judgement {
        let words = "case <A>: p99 > 1ms".to_owned();
        Judgement { holds, lacks_number, undecided: false, words }
    }

    #[test]
    fn a_page_passes_only_if_each_condition_was_judged_and_none_holds() {
        let (passed, failed, unjudged) =
            (judgement(false, false), judgement(true, false), judgement(false, true));
        let page = |judgements: &[Judgement]| thresholds(judgements).into_string();
        assert_eq!(page(&[]), "");
        let good = page(&[passed.clone(), passed.clone()]);
        assert!(good.contains("verdict good") && good.contains("case &lt;A&gt;"), "{good}");
        for (other, word) in [(failed, "Failed:"), (unjudged, "Not judged:")] {
            let bad = page(&[passed.clone(), other]);
            assert!(bad.contains("verdict bad") && bad.contains(word), "{bad}");
            assert!(bad.contains("Passed:") && !bad.contains('✓'), "{bad}");
        }
    }
}
