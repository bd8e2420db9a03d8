//! The conditions of `--fail-if` on a page, passed, failed or not decided.

use maud::{Markup, html};

use crate::compare::{Finding, Judgement};

pub(super) fn thresholds(judgements: &[Judgement]) -> Markup {
    let all_pass = judgements.iter().all(|judgement| judgement.result == Finding::Passed);
    html! {
        @if !judgements.is_empty() {
            div.verdict.good[all_pass].bad[!all_pass] {
                span.mark aria-hidden="true" { @if all_pass { "✓" } @else { "!" } }
                div {
                    @for judgement in judgements { p { b { (title(judgement.result)) } " " (judgement.words) } }
                }
            }
        }
    }
}

fn title(result: Finding) -> &'static str {
    match result {
        Finding::Passed => "Passed:",
        Finding::Failed => "Failed:",
        Finding::NotDecided => "Not decided:",
        Finding::Unknown => "Not judged:",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judgement(result: Finding) -> Judgement {
        Judgement { result, words: "case <A>: p99 > 1ms".to_owned() }
    }

    #[test]
    fn a_page_passes_only_if_each_condition_passed() {
        let passed = judgement(Finding::Passed);
        let page = |judgements: &[Judgement]| thresholds(judgements).into_string();
        assert_eq!(page(&[]), "");
        let good = page(&[passed.clone(), passed.clone()]);
        assert!(good.contains("verdict good") && good.contains("case &lt;A&gt;"), "{good}");
        for (other, word) in [
            (Finding::Failed, "Failed:"),
            (Finding::NotDecided, "Not decided:"),
            (Finding::Unknown, "Not judged:"),
        ] {
            let bad = page(&[passed.clone(), judgement(other)]);
            assert!(bad.contains("verdict bad") && bad.contains(word), "{bad}");
            assert!(bad.contains("Passed:") && !bad.contains('✓'), "{bad}");
        }
    }
}
