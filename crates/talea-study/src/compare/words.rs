//! A comparison as text: a table for each case, and what it says in words.

use talea_statistics::figures::{NONE, bytes, counted, measured, whole};

use super::comparison::{
    CaseComparison, Comparison, MeasureComparison, VariantComparison, Verdict,
};
use crate::study::Measure;
use talea_statistics::Ratio;
use talea_view::printable;
use talea_view::screen;

/// The whole comparison for a screen. The texts of a report may be of another's making.
pub fn text(comparison: &Comparison) -> String {
    let tables = comparison
        .others
        .iter()
        .map(|other| {
            let [other_name, base] = [&other.name, &comparison.base].map(|name| printable(name));
            format!("{other_name} beside {base}\n{}\n\n", table(other))
        })
        .collect::<String>();
    let words: Vec<String> = in_words(comparison).iter().map(|line| printable(line)).collect();
    (tables + &words.join("\n")).trim_end().to_owned()
}

fn table(other: &VariantComparison) -> String {
    let headings = ["case", "", "first", "this", "ratio", "95 % interval", ""];
    let mut table = screen::table(&headings, |column| (2..=5).contains(&column));
    for case in &other.cases {
        for (n, line) in case.lines.iter().enumerate() {
            let id = if n == 0 { case.id.as_str() } else { "" };
            table.add_row([
                printable(id),
                titled(line.measure),
                bounded(line.measure, line.base, line.base_at_least),
                bounded(line.measure, line.other, line.other_at_least),
                ratio(line),
                interval(line),
                verdict(line).to_owned(),
            ]);
        }
    }
    table.to_string()
}

/// The comparison in words, with its caveats at the end.
pub fn in_words(comparison: &Comparison) -> Vec<String> {
    let base = &comparison.base;
    let mut words = Vec::new();
    for other in &comparison.others {
        for case in other.cases.iter().filter(|case| !case.lines.is_empty()) {
            let name = &other.name;
            let shown = case.lines.iter().filter_map(sentence);
            let shown: Vec<String> = shown.collect();
            let unknown = case.lines.iter().all(|line| line.verdict == Verdict::NotKnown);
            words.push(match (shown.is_empty(), unknown) {
                (false, _) => {
                    format!("Case {}: {name} is {} than {base}.", case.id, shown.join("; "))
                }
                (true, true) => {
                    format!("Case {}: a single round gives no interval; use --rounds.", case.id)
                }
                (true, false) => {
                    format!("Case {}: no difference between {name} and {base} is shown.", case.id)
                }
            });
            words.extend(undecided(case).map(|measures| {
                format!(
                    "Case {}: not decided between {name} and {base} is {measures}: requests timed out, were cut \
                     off or failed without a response, and may have been slower.",
                    case.id
                )
            }));
        }
    }
    let rounds = counted(comparison.rounds, "round");
    if comparison.rounds > 1 {
        words.push(format!(
            "Ratios are geometric means over {rounds}{}; of 20 intervals about one leaves the true \
             ratio out by chance.",
            if comparison.paired { ", pair by pair" } else { ", run apart" }
        ));
    }
    words.extend(comparison.caveats.iter().map(|caveat| format!("Beware: {caveat}")));
    words
}

/// The measures of a case that are not decided; none if there are none.
fn undecided(case: &CaseComparison) -> Option<String> {
    let undecided = case.lines.iter().filter(|line| line.verdict == Verdict::NotDecided);
    let measures: Vec<String> = undecided.map(|line| line.measure.to_string()).collect();
    (!measures.is_empty()).then(|| measures.join(", "))
}

/// `slower at p99 (1.12 times, 1.05 to 1.20)`; none where no difference is shown.
fn sentence(line: &MeasureComparison) -> Option<String> {
    let ratio = line.ratio?;
    let (low, high) = ratio.interval?;
    let is_better = match line.verdict {
        Verdict::Better => true,
        Verdict::Worse => false,
        Verdict::NoDifferenceShown | Verdict::NotDecided | Verdict::NotKnown => return None,
    };
    let (better, worse, what) = match line.measure {
        Measure::Rate => ("faster", "slower", "in requests a second".to_owned()),
        Measure::Cpu => ("cheaper", "more expensive", "in server CPU for each request".to_owned()),
        Measure::Memory => ("smaller", "larger", "in memory".to_owned()),
        Measure::Failed => ("less often", "more often", "failing".to_owned()),
        Measure::Time => ("faster", "slower", "in time".to_owned()),
        Measure::Mean => ("faster", "slower", "at the mean".to_owned()),
        quantile => ("faster", "slower", format!("at {quantile}")),
    };
    let how = if is_better { better } else { worse };
    let times = match (line.base_at_least, line.other_at_least) {
        (false, false) => format!("{:.3} times, {low:.3} to {high:.3}", ratio.ratio),
        (_, true) => format!("at least {:.3} times, {low:.3} or more", ratio.ratio),
        (true, false) => format!("at most {:.3} times, {high:.3} or less", ratio.ratio),
    };
    Some(format!("{how} {what} ({times})"))
}

/// The name of a line, with its unit.
pub fn titled(measure: Measure) -> String {
    match (measure, measure.unit()) {
        (Measure::Memory, _) | (_, "") => measure.title().to_owned(),
        (_, unit) => format!("{}, {unit}", measure.title()),
    }
}

/// A number of a measure as it is read.
pub fn value(measure: Measure, number: f64) -> String {
    match measure {
        Measure::Memory => bytes(number as u64),
        Measure::Failed if number.fract() == 0.0 => whole(number as u64),
        _ => measured(number),
    }
}

/// [`value`], or a lower bound: `≥ 1,000`.
pub fn bounded(measure: Measure, number: f64, at_least: bool) -> String {
    format!("{}{}", if at_least { "≥ " } else { "" }, value(measure, number))
}

/// `1.123×`. It is a lower bound if the other's number is one, an upper one if the first's is, and not known if
/// both are.
pub fn ratio(line: &MeasureComparison) -> String {
    let Some(Ratio { ratio, .. }) = line.ratio else { return NONE.to_owned() };
    match (line.base_at_least, line.other_at_least) {
        (false, false) => format!("{ratio:.3}×"),
        (false, true) => format!("≥ {ratio:.3}×"),
        (true, false) => format!("≤ {ratio:.3}×"),
        (true, true) => NONE.to_owned(),
    }
}

/// `1.050 to 1.200`, or the end of it that is known.
pub fn interval(line: &MeasureComparison) -> String {
    let interval = line.ratio.and_then(|ratio| ratio.interval);
    let Some((low, high)) = interval else { return NONE.to_owned() };
    match (line.base_at_least, line.other_at_least) {
        (false, false) => format!("{low:.3} to {high:.3}"),
        (false, true) => format!("≥ {low:.3}"),
        (true, false) => format!("≤ {high:.3}"),
        (true, true) => NONE.to_owned(),
    }
}

/// The verdict in a word or three.
pub fn verdict(line: &MeasureComparison) -> &'static str {
    let speed = !matches!(line.measure, Measure::Cpu | Measure::Memory | Measure::Failed);
    match (line.verdict, speed) {
        (Verdict::Better, true) => "faster",
        (Verdict::Worse, true) => "slower",
        (Verdict::Better, false) => "less",
        (Verdict::Worse, false) => "more",
        (Verdict::NoDifferenceShown, _) => "no difference shown",
        (Verdict::NotDecided, _) => "not decided",
        (Verdict::NotKnown, _) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::super::comparison::tests::{of, of_rounds};
    use super::*;

    #[test]
    fn what_is_shown_is_said_with_its_numbers_and_no_more() {
        let two = [2.0, 2.2, 1.8];
        for (measure, base, other, paired, parts) in [
            (
                Measure::P99,
                &[1.0, 1.1, 0.9][..],
                &two[..],
                true,
                [
                    "Case A: b is slower at p99 (2.000 times, 1.957 to 2.044) than a.",
                    "3 rounds, pair by pair",
                ],
            ),
            (
                Measure::Rate,
                &[1.0, 1.1, 0.9],
                &[1.1, 0.9, 1.0],
                true,
                ["no difference between b and a is shown", ""],
            ),
            // A single round claims nothing.
            (Measure::Rate, &[1.0], &[2.0], false, ["2.000×", "use --rounds"]),
        ] {
            let text = text(&of(measure, base, other, paired));
            parts.iter().for_each(|part| assert!(text.contains(part), "{part}: {text}"));
            assert!(!text.contains("faster"), "{text}");
        }
    }

    #[test]
    fn what_lower_bounds_do_not_decide_is_said() {
        let (low, high) = ([1.0, 1.1, 0.9, 1.0], [2.0, 2.2, 1.9, 2.1]);
        for (base, other, words) in [
            ((low, false), (high, true), "b is slower at p99 (at least 2.0"),
            ((high, true), (low, false), "b is faster at p99 (at most 0.4"),
            ((high, false), (low, true), "not decided between b and a is p99"),
        ] {
            let [one, two] = [("a", base), ("b", other)].map(|(name, (rounds, at_least))| {
                (name.to_owned(), of_rounds(Measure::P99, &rounds, at_least, 0.0))
            });
            let text = text(&Comparison::of(&[one, two], true).unwrap());
            assert!(text.contains(words) && text.contains('≥'), "{words}: {text}");
            assert_eq!(text.contains("faster"), words.contains("faster"), "{text}");
        }
    }

    #[test]
    fn texts_of_a_report_do_not_control_the_terminal() {
        let mut comparison = of(Measure::P99, &[1.0, 1.1], &[2.0, 2.2], true);
        let hostile = "x\u{1b}]0;y\u{7}".to_owned();
        comparison.caveats = vec![format!("Not the same machine: {hostile}\r")];
        comparison.others[0].cases[0].id.clone_from(&hostile);
        comparison.others[0].name.clone_from(&hostile);
        comparison.base = hostile;
        let text = text(&comparison);
        let controls = text.chars().filter(|it| it.is_control() && *it != '\n');
        assert_eq!(controls.count(), 0, "{text:?}");
        assert!(text.contains("Not the same machine: x\\u{1b}]0;y\\u{7}\\r"), "{text}");
    }
}
