//! The reader takes what Prometheus takes, and the checker reports where that departs from the
//! format.

use talea_parse::{Line, Reader, Severity, Syntax, check};

use crate::pages::{PAGES, Page};

/// What is read, as a [`Page`] has it.
fn read(text: &str, syntax: Syntax) -> String {
    let mut out = String::new();
    for line in Reader::new(text, syntax).filter_map(Result::ok) {
        out += &match line {
            Line::Type { name, kind } => format!("# {name}: {};", kind.as_str(syntax).unwrap()),
            Line::Help { name, help } => format!("# {name} {help:?};"),
            Line::Sample(sample) => {
                let labels = sample.labels.iter().map(|(name, value)| format!("{name}={value:?}"));
                let labels: Vec<_> = labels.collect();
                let braces = match labels.is_empty() {
                    true => String::new(),
                    false => format!("{{{}}}", labels.join(",")),
                };
                format!("{}{braces} {};", sample.name, sample.value)
            }
            _ => continue,
        };
    }
    out
}

fn violations(text: &str, syntax: Syntax) -> String {
    let findings = check(text, syntax).into_iter();
    let violations = findings.filter(|finding| finding.severity == Severity::Violation);
    let places = violations.map(|finding| {
        let place = format!("{}:{}", finding.line, finding.column);
        if finding.rule == "syntax" { place } else { format!("{place} {}", finding.rule) }
    });
    places.collect::<Vec<_>>().join(", ")
}

#[test]
fn a_page_is_read_as_prometheus_reads_it_and_each_departure_is_a_violation() {
    for Page { syntax, text, read: wanted, violations: places } in PAGES {
        let errors: Vec<_> = Reader::new(text, *syntax).filter_map(Result::err).collect();
        assert_eq!(errors, [], "{text:?}");
        assert_eq!(violations(text, *syntax), *places, "{text:?}");
        assert_eq!(read(text, *syntax), *wanted, "{text:?}");
    }
}

#[test]
fn a_quote_that_is_not_closed_costs_its_own_line_only() {
    let text = "a{b=\"c} 1\nd 2\ne{f=\"g\"} 3\n";
    assert_eq!(read(text, Syntax::Text), "d 2;e{f=\"g\"} 3;");
    assert_eq!(violations(text, Syntax::Text), "1:10");
    let text = "a{b=\"c} 1\nd{e=\"f\"} 2\n";
    assert_eq!(read(text, Syntax::Text), "d{e=\"f\"} 2;");
    let lines: Vec<_> = Reader::new("a{b=\"\n\n\"} 1\nc\n", Syntax::Text).collect();
    assert_eq!(lines[1].as_ref().unwrap_err().line, 4);
}

#[test]
fn series_that_are_equal_to_prometheus_are_one() {
    for (body, wanted) in [
        ("x{a=\"\"} 1\nx 2\n", "2:1 series-twice"),
        ("x 1\nx{a=\"\"} 2\n", "2:1 series-twice"),
        ("x{a=\"\",b=\"1\"} 1\nx{b=\"1\",c=\"\"} 2\n", "2:1 series-twice"),
        ("{\"x\"} 1\nx 2\n", "2:1 series-twice"),
        ("x{\"a\"=\"1\"} 1\nx{a=\"1\"} 2\n", "2:1 series-twice"),
        ("x{a=\" \"} 1\nx 2\n", ""),
        ("x{a=\"\",a=\"1\"} 1\n", "1:8 label-twice"),
        ("# TYPE s summary\ns{quantile=\"0.5\"} 1\ns{quantile=\"0.50\"} 1\n", "3:1 series-twice"),
        // The type that was declared last counts, whatever the name.
        ("# TYPE s summary\nx{quantile=\"1\"} 1\nx{quantile=\"1.0\"} 1\n", "3:1 series-twice"),
        ("# TYPE s gauge\nx{quantile=\"1\"} 1\nx{quantile=\"1.0\"} 1\n", ""),
        ("# TYPE s summary\nx{le=\"1\"} 1\nx{le=\"1.0\"} 1\n", ""),
    ] {
        let body_and_end = format!("{body}# EOF\n");
        assert_eq!(violations(&body_and_end, Syntax::OpenMetrics), wanted, "{body:?}");
    }
    let text = "# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{a=\"\",le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n";
    assert_eq!(violations(text, Syntax::Text), "");
    let findings = check("x 1\nx{a=\"\"} 2\n", Syntax::Text);
    assert!(
        findings.iter().any(|finding| finding.instead.contains("a without a value is no label")),
        "{findings:?}"
    );
}
