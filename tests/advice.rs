//! The advice of `talea check` is that of `promtool check metrics`, and a text that promtool cannot
//! read has a violation.

use std::collections::BTreeSet;

use stage::check_metrics;
use talea_parse::{Severity, Syntax, check};

/// The output of promtool for a text: the rules that it finds broken, or `None` if it cannot read
/// it.
fn promtool(text: &str) -> Option<BTreeSet<&'static str>> {
    let output = check_metrics(text);
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    match output.status.code() {
        Some(0 | 3) => Some(said.lines().map(rule).collect()),
        Some(1) if said.contains("parsing error") => None,
        other => panic!("{other:?}: {said}"),
    }
}

/// Our name for what promtool says.
fn rule(line: &str) -> &'static str {
    let rules = [
        ("no help text", "help"),
        ("use base unit", "base-unit"),
        ("counter metrics should have", "counter-total"),
        ("non-counter metrics should not", "total-ending"),
        ("\" suffix", "reserved-ending"),
        ("\" label", "reserved-label-name"),
        ("metric name should not include type", "type-in-name"),
        ("should not contain ':'", "colon"),
        ("metric names should be written in", "camel-case"),
        ("label names should be written in", "label-camel-case"),
        ("abbreviated units", "unit-abbreviated"),
    ];
    let found = rules.into_iter().find(|(said, _)| line.contains(said));
    found.unwrap_or_else(|| panic!("promtool has a rule that is not known here: {line}")).1
}

fn gauge(name: &str) -> String {
    format!("# HELP {name} Text.\n# TYPE {name} gauge\n{name} 1\n")
}

#[test]
fn advice_is_that_of_promtool() {
    let mut texts: Vec<String> = [
        "",
        "# A comment.\n",
        "# HELP a A.\n# TYPE a gauge\n",
        "a 1\n",
        "a_total 1\n",
        "# HELP a \n# TYPE a gauge\na 1\n",
        "# HELP a A.\na_ms{le=\"1\",aB=\"2\"} 1\n",
        "# HELP a A.\n# TYPE a counter\na 1\n",
        "# HELP a_total A.\n# TYPE a_total counter\na_total 1\n",
        "# HELP a_total A.\n# TYPE a_total summary\na_total{quantile=\"0.5\"} 1\na_total_sum 1\na_total_count 1\n",
        "# HELP a A.\n# TYPE a gauge\na{le=\"1\",quantile=\"2\",camelCase=\"3\"} 1\n",
        "# HELP a A.\n# TYPE a untyped\na{le=\"1\",quantile=\"2\"} 1\n",
        "# HELP a_bucket A.\n# TYPE a_bucket summary\na_bucket{le=\"1\",quantile=\"1\"} 1\n",
        "# HELP a A.\n# TYPE a histogram\na_bucket{le=\"+Inf\",quantile=\"1\"} 1\na_sum{quantile=\"1\"} 1\na_count{quantile=\"1\"} 1\n",
        "# HELP a_count A.\n# TYPE a_count histogram\na_count_bucket{le=\"+Inf\"} 1\na_count_sum 1\na_count_count 1\n",
        "# HELP a_milliseconds A.\n# TYPE a_milliseconds histogram\na_milliseconds_bucket{le=\"+Inf\"} 1\n\
         a_milliseconds_sum 1\na_milliseconds_count 1\n",
    ]
    .map(str::to_owned)
    .to_vec();
    let names = "a a_total a_bucket a_count a_sum a_created a_info a:b aB a_Bytes a_milliseconds a_seconds \
                 milliseconds_a a_minutes_b a_kilobytes a_mibibytes a_thermometers a_kilometers a_kelvins \
                 a_percent a_ratio a_bits a_weeks a_ms ms_a a_s_b a_B a_kb a_sec a_d a_tables a_gauge \
                 gauge_a a_counter_b a_Histogram a_summary a_gauges a_untyped a__ms a_";
    texts.extend(names.split(' ').map(gauge));
    for text in texts {
        let findings = check(&text, Syntax::Text);
        let violations = findings.iter().filter(|finding| finding.severity == Severity::Violation);
        assert_eq!(violations.count(), 0, "{text}");
        let ours: BTreeSet<_> = findings.iter().map(|finding| finding.rule).collect();
        assert_eq!(Some(ours), promtool(&text), "{text}");
    }
}

#[test]
fn a_text_that_promtool_cannot_read_is_a_violation() {
    for text in [
        "a 1",
        "a\n",
        "a b\n",
        "a 1\r\n",
        "a 0x10\n",
        "a 1_0\n",
        "a +NaN\n",
        "a 1e999\n",
        "a 1 1.5\n",
        "a 1 2 3\n",
        "9a 1\n",
        "a-b 1\n",
        "a{b=\"c\" d=\"e\"} 1\n",
        "a{b=\"\\q\"} 1\n",
        "a{b=\"c} 1\n",
        "a{b=c} 1\n",
        "a{,} 1\n",
        "a{b=\"1\",b=\"2\"} 1\n",
        "a{__name__=\"b\"} 1\n",
        "# HELP a \\q\na 1\n",
        "# HELP a \\\"\na 1\n",
        "# TYPE a meter\na 1\n",
        "# TYPE a unknown\na 1\n",
        "# TYPE a gauge\n# TYPE a gauge\na 1\n",
        "# HELP a A.\n# HELP a A.\na 1\n",
        "a 1\n# TYPE a gauge\n",
        "# TYPE a-b gauge\n",
        "# TYPE h histogram\nh_bucket{le=\"x\"} 1\n",
        "# TYPE s summary\ns{quantile=\"x\"} 1\n",
    ] {
        assert_eq!(promtool(text), None, "{text:?}");
        let findings = check(text, Syntax::Text);
        let violations = findings.iter().filter(|finding| finding.severity == Severity::Violation);
        assert!(violations.count() > 0, "{text:?}: {findings:?}");
    }
}
