//! The page of a comparison.

use maud::{Markup, html};
use talea_statistics::figures::counted;

use super::thresholds::thresholds;
use crate::compare::{Comparison, Judgement, MeasureComparison, VariantComparison, Verdict};
use crate::compare::{bounded, in_words, interval, ratio, titled, verdict};
use talea_view::document::{document, wide_table};

pub(crate) fn comparison_page(
    comparison: &Comparison,
    judgements: &[Judgement],
    command: &str,
) -> String {
    let rounds = counted(comparison.rounds, "round");
    let body = html! {
        header {
            p.eyebrow { "Talea load study" }
            h1 { "Variants beside " code { (comparison.base) } }
            p.lead {
                @if comparison.paired {
                    "Each variant ran in each of " (rounds) ", in turns, so that what \
                     changes with time changes for all of them. "
                }
                "A ratio is this variant's figure divided by the first variant's, with its \
                 interval of 95 %. If the interval contains 1, no difference is shown."
            }
            div.card.words { @for line in in_words(comparison) { p { (line) } } }
            (thresholds(judgements))
        }
        @for other in &comparison.others { (table(other)) }
        section {
            h2 { "Again" }
            p { code { (command) } }
        }
    };
    document(&format!("Load study: variants beside {}", comparison.base), &body)
}

fn table(other: &VariantComparison) -> Markup {
    let headings = html! {
        tr {
            th scope="col" { "Case" }
            th.first scope="col" { "" }
            @for heading in ["first", "this", "ratio", "95 % interval", "half … twice"] {
                th scope="col" { (heading) }
            }
            th.first scope="col" { "" }
        }
    };
    let rows = html! {
        @for case in &other.cases {
            @for (n, line) in case.lines.iter().enumerate() {
                tr {
                    th scope="row" { @if n == 0 { (case.id) } }
                    td.first { (titled(line.measure)) }
                    td { (bounded(line.measure, line.base, line.base_at_least)) }
                    td { (bounded(line.measure, line.other, line.other_at_least)) }
                    td { (ratio(line)) }
                    td { (interval(line)) }
                    td { (whiskers(line)) }
                    td.first.good[line.verdict == Verdict::Better]
                        .wrong[line.verdict == Verdict::Worse] { (verdict(line)) }
                }
            }
        }
    };
    html! {
        section {
            h2 { code { (other.name) } }
            (wide_table(&other.name, "cases compared", &headings, &rows))
        }
    }
}

/// The interval from half to twice as much, on a logarithmic scale, with the ratio as a dot. What lies beyond is an arrow
/// at the end.
fn whiskers(line: &MeasureComparison) -> Markup {
    const WIDTH: f64 = 120.0;
    let at = |ratio: f64| ((ratio.log2() + 1.0) / 2.0).clamp(0.0, 1.0) * WIDTH;
    html! {
        @if let Some(ratio) = line.ratio {
            svg.whiskers width=(WIDTH) height="14" viewBox=(format!("-4 0 {} 14", WIDTH + 8.0))
                aria-hidden="true" {
                line.one x1=(at(1.0)) x2=(at(1.0)) y1="0" y2="14" {}
                @if let Some((low, high)) = ratio.interval {
                    line.spread x1=(at(low)) x2=(at(high)) y1="7" y2="7" {}
                }
                @match ratio.ratio {
                    beyond if beyond > 2.0 => path.beyond d=(format!("M{} 2l6 5l-6 5z", WIDTH - 3.0)) {},
                    below if below < 0.5 => path.beyond d="M3 2l-6 5l6 5z" {},
                    _ => circle cx=(at(ratio.ratio)) cy="7" r="3" {},
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::tests::of;
    use crate::study::Measure;

    #[test]
    fn the_page_says_what_the_text_says_and_escapes_it() {
        let mut comparison = of(Measure::P99, &[1.0, 1.1, 0.9], &[2.0, 2.2, 1.8], true);
        comparison.base = "A='<b>'\u{1b}\n".to_owned();
        let page = comparison_page(&comparison, &[], "talea study --ab '<x>'");
        assert!(page.contains("slower at p99 (2.000 times"), "{page}");
        assert!(page.contains("A='&lt;b&gt;'\\u{1b}\\n") && page.contains("'&lt;x&gt;'"), "{page}");
        assert!(!page.contains("<b>'") && !page.contains('\u{1b}'), "{page}");
        // Each part of a drawing is closed, or it would swallow the next.
        assert_eq!(page.matches("<svg").count(), 1);
        assert_eq!(page.matches("<line").count(), page.matches("</line>").count());
        assert_eq!(page.matches("</circle>").count(), 1);
    }

    #[test]
    fn a_ratio_beyond_the_axis_is_an_arrow_and_no_dot_at_its_end() {
        for (other, dots, arrows) in [(1.9, 1, 0), (3.7, 0, 1), (0.2, 0, 1)] {
            let others = [other, other * 1.01, other * 0.99];
            let comparison = of(Measure::P99, &[1.0, 1.01, 0.99], &others, true);
            let page = comparison_page(&comparison, &[], "");
            let found = (page.matches("<circle").count(), page.matches("class=\"beyond\"").count());
            assert_eq!(found, (dots, arrows), "{other}");
        }
    }
}
