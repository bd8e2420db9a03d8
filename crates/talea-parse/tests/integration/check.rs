//! The checker: the rules of both formats, one small text each.

use talea_parse::{Finding, Severity, Syntax, check};

use Syntax::{OpenMetrics, Text};

/// `line:column rule` of each finding of a severity. The text has ' for ".
fn findings(text: &str, syntax: Syntax, severity: Severity) -> Vec<String> {
    let findings = check(&text.replace('\'', "\""), syntax).into_iter();
    let findings = findings.filter(|finding| finding.severity == severity);
    findings.map(|Finding { line, column, rule, .. }| format!("{line}:{column} {rule}")).collect()
}

/// The violations in the body of an OpenMetrics text.
fn violations(body: &str) -> Vec<String> {
    findings(&format!("{body}# EOF\n"), OpenMetrics, Severity::Violation)
}

fn advice(body: &str) -> Vec<String> {
    findings(&format!("{body}# EOF\n"), OpenMetrics, Severity::Advice)
}

#[test]
fn a_text_that_the_openmetrics_specification_allows_is_clean() {
    for body in [
        "",
        "# TYPE foo gauge\n",
        "# TYPE foo unknown\n# HELP foo \n",
        "# TYPE foo_seconds counter\n# UNIT foo_seconds seconds\n# HELP foo_seconds Some \\n \\' \\\\ text.\n\
         foo_seconds_total 0\n",
        "# TYPE foo_seconds counter\n# UNIT foo_seconds \n",
        "foo 42.23\n",
        "foo{} 0\n",
        "foo{a='x',b='with \\' and \\n '} 0042\n",
        "# TYPE foo gauge\nfoo -INF\n",
        "# TYPE foo gauge\nfoo{a='b'} 17.0 1520879607.789\nfoo{a='c'} -Inf -1.5\nfoo{a='d'} NaN\n",
        "# TYPE foo gauge\nfoo 17.0 123\nfoo 18.0 456\n",
        "# TYPE foo counter\nfoo_total 17.0 15 # {a='b'} 0.5 15.5\nfoo_created 15.123 15\n",
        "# TYPE foo counter\nfoo_total{a='1'} 1\nfoo_created{a='1'} 1\nfoo_total{a='2'} 1\nfoo_created{a='2'} 1\n",
        "# TYPE foo_seconds summary\nfoo_seconds_count{a='bb'} 0 123\nfoo_seconds_sum{a='bb'} 0 123\n\
         foo_seconds_count{a='bb'} 0 456\nfoo_seconds_sum{a='bb'} 0 456\nfoo_seconds_count{a='c'} 0 1\n",
        "# TYPE foo summary\nfoo{quantile='0.99'} 150.0\nfoo{quantile='0.5'} NaN\n",
        "# TYPE foo stateset\nfoo{entity='x',foo='a'} 1.0\nfoo{entity='x',foo='bb'} 0\nfoo{entity='y',foo='a'} 1\n",
        "# TYPE foo info\nfoo_info{entity='x',name='pretty name'} 1\nfoo_info{entity='y',name='z'} 1.0\n",
        "# TYPE foo histogram\nfoo_bucket{le='0.0'} 0\nfoo_bucket{le='1e-05'} 0\nfoo_bucket{le='0.1'} 8 # {} 0.054\n\
         foo_bucket{le='1.0'} 10 # {trace_id='KOO5S4vxi0o'} 0.67\nfoo_bucket{le='1e+23'} 17 # {a='b'} 9.8 15.5\n\
         foo_bucket{le='+Inf'} 17\nfoo_count 17\nfoo_sum 324789.3\nfoo_created 1520430000.123\n",
        "# TYPE foo histogram\nfoo_bucket{le='-1.0'} 0\nfoo_bucket{le='+Inf'} 17.0\n",
        "# TYPE foo gaugehistogram\nfoo_bucket{le='-1.0'} 20\nfoo_bucket{le='+Inf'} 42\nfoo_gcount 42\nfoo_gsum -3289.3\n",
        "# TYPE foo gauge\nfoo 1\n# TYPE foo_x gauge\nfoo_x 1\n# TYPE fo gauge\nfo 1\n",
    ] {
        assert_eq!(violations(body), [""; 0], "{body}");
    }
}

#[test]
fn a_text_that_the_openmetrics_specification_forbids_is_a_violation() {
    let counter = "# TYPE a counter\n";
    for (body, rules) in [
        // The lines.
        ("a 1\r\n", "1:4 syntax"),
        ("a  1\n", "1:2 syntax"),
        ("a 1 \n", "1:4 syntax"),
        ("# a comment\na 1\n", "1:3 syntax"),
        ("a 1\n\nb 1\n", "2:1 syntax"),
        ("a{b='1',} 1\n", "1:9 syntax"),
        ("a{ b='1' ,c='2'} 1\n", "1:3 syntax"),
        ("# EOF\na 1\n", "2:1 eof"),
        ("# TYPE a meter\n", "1:10 syntax"),
        ("a 1e999\n", "1:3 syntax"),
        ("a +NaN\n", "1:3 syntax"),
        ("a{b='\\\0'} 1\n", "1:12 syntax"),
        // Metadata of a metric: once, together, before its samples.
        ("# TYPE a gauge\n# TYPE a gauge\n", "2:8 metadata-twice"),
        ("# HELP a b\n# HELP a c\n", "2:8 metadata-twice"),
        ("# UNIT a_b b\n# UNIT a_b b\n", "2:8 metadata-twice"),
        ("a 1\n# TYPE a gauge\n", "2:8 metadata-late"),
        ("a 1\n# HELP a b\n", "2:8 metadata-late"),
        ("# TYPE a gauge\n# TYPE b gauge\n# HELP a b\n", "3:8 metric-apart"),
        ("a 1\nb 1\na{c='d'} 1\n", "3:1 metric-apart"),
        ("# TYPE a gauge\n# UNIT a seconds\na 1\n", "2:10 unit"),
        ("# TYPE aseconds gauge\n# UNIT aseconds seconds\n", "2:17 unit"),
        ("# TYPE a_b info\n# UNIT a_b b\n", "2:12 unit"),
        ("# UNIT a_b b\n# TYPE a_b stateset\n", "1:12 unit"),
        // Names.
        ("_a 1\n", "1:1 reserved-name"),
        ("a{_b='c'} 1\na{_b='d'} 1\n", "1:3 reserved-label"),
        ("# TYPE a counter\na 1\n", "2:1 sample-name"),
        ("# TYPE a_total counter\na_total 1\n", "2:1 sample-name"),
        ("# TYPE a info\na 1\n", "2:1 sample-name"),
        ("# TYPE a histogram\na 1\n", "2:1 sample-name"),
        ("# TYPE a counter\n# TYPE a_created gauge\n", "2:8 name-clash"),
        ("# TYPE a_count gauge\n# TYPE a summary\n", "2:8 name-clash"),
        // Series.
        ("a 1\na 1\n", "2:1 series-twice"),
        ("a{b='1',c='2'} 1\na{c='2',b='1'} 1\n", "2:1 series-twice"),
        ("a 1 1\na 1 1\n", "2:1 timestamp-order"),
        ("a 1 2\na 1 1\n", "2:1 timestamp-order"),
        ("a 1 1\na 1\n", "2:1 series-twice, 2:1 timestamps-mixed"),
        (&format!("{counter}a_total 1 5\na_created 1\n"), "3:1 timestamps-mixed"),
        ("a{b='1',b='2'} 1\n", "1:9 label-twice"),
        (
            "# TYPE a counter\na_total{b='1'} 1\na_total{b='2'} 1\na_created{b='1'} 1\n",
            "4:1 series-apart",
        ),
        (
            "# TYPE a summary\na_count{b='1'} 1\na_count{b='2'} 1\na_sum{b='1'} 1\n",
            "4:1 series-apart",
        ),
        ("a{b='1'} 1 1\na{b='2'} 1 1\na{b='1'} 1 2\n", "3:1 series-apart"),
        // Values.
        (&format!("{counter}a_total -1\n"), "2:9 value"),
        (&format!("{counter}a_total NaN\n"), "2:9 value"),
        (&format!("{counter}a_total 1\na_created NaN\n"), "3:11 value"),
        ("# TYPE a info\na_info{b='c'} 2\n", "2:15 value"),
        ("# TYPE a stateset\na{a='b'} 0.5\n", "2:10 value"),
        ("# TYPE a stateset\na{b='c'} 1\n", "2:1 label-missing"),
        ("# TYPE a summary\na_count 0.5\n", "2:9 value"),
        ("# TYPE a summary\na_sum -1\n", "2:7 value"),
        ("# TYPE a summary\na{quantile='0.5'} -1\n", "2:19 value"),
        ("# TYPE a summary\na{quantile='1.5'} 1\n", "2:13 quantile"),
        ("# TYPE a summary\na{quantile='x'} 1\n", "2:13 threshold"),
        ("# TYPE a summary\na 1\n", "2:1 label-missing"),
        // Exemplars.
        ("# TYPE a gauge\na 1 # {} 1\n", "2:5 exemplar-place"),
        (&format!("{counter}a_total 1\na_created 1 # {{}} 1\n"), "3:13 exemplar-place"),
        (&format!("{counter}a_total 1 # {{b='{}'}} 1\n", "é".repeat(128)), "2:11 exemplar-length"),
        (&format!("{counter}a_total 1 # {{b='1',b='2'}} 1\n"), "2:11 label-twice"),
        (&format!("{counter}a_total 1 # {{__b='c'}} 1\n"), "2:11 reserved-label"),
        (&format!("{counter}a_total 1 # {{b='\0'}} 1\n"), "2:17 syntax"),
    ] {
        assert_eq!(violations(body).join(", "), rules, "{body}");
    }
    // The limit itself is allowed.
    let longest = format!("{counter}a_total 1 # {{b='{}'}} 1\n", "é".repeat(127));
    assert_eq!(violations(&longest), [""; 0]);
}

/// A histogram in OpenMetrics: its buckets as `le count`, and the rest of its lines.
fn histogram(buckets: &[(&str, &str)], rest: &str) -> String {
    let lines: String =
        buckets.iter().map(|(le, count)| format!("a_bucket{{le='{le}'}} {count}\n")).collect();
    format!("# TYPE a histogram\n{lines}{rest}")
}

#[test]
fn a_histogram_adds_up() {
    let whole = "a_count 3\na_sum 5\n";
    let inf = ("+Inf", "3");
    for (buckets, rest, rules) in [
        (&[("1.0", "2"), inf][..], whole, ""),
        (&[inf], whole, ""),
        (&[inf], "", ""),
        (&[("1.0", "2")], whole, "2:1 bucket-inf"),
        (&[], whole, "2:1 bucket-inf"),
        (&[("1.0", "4"), inf], whole, "3:1 bucket-cumulative"),
        (&[("2.0", "1"), ("1.0", "1"), inf], whole, "3:1 bucket-order"),
        (&[inf, ("1.0", "3")], whole, "3:1 bucket-order"),
        (&[("1.0", "1"), ("1.00", "1"), inf], whole, "3:1 bucket-order, 3:1 series-twice"),
        (&[("1.0", "1"), ("1.0", "1"), inf], whole, "3:1 bucket-order, 3:1 series-twice"),
        (&[inf], "a_count 4\na_sum 5\n", "3:1 count"),
        (&[inf], "a_count 3\n", "3:1 sum-and-count"),
        (&[inf], "a_sum 3\n", "3:1 sum-and-count"),
        (&[("-1.0", "1"), inf], whole, "5:1 sum-negative"),
        (&[inf], "a_count 3\na_sum -1\n", "4:7 value"),
        (&[inf], "a_count 3\na_sum NaN\n", "4:7 value"),
        (&[("1.0", "0.5"), inf], whole, "2:20 value"),
        (&[("1.0", "-1"), inf], whole, "2:20 value"),
        (&[("1.0", "NaN"), inf], whole, "2:20 value"),
        (&[("x", "1"), inf], whole, "2:14 threshold"),
        (&[("NaN", "1"), inf], whole, "2:14 threshold"),
        (&[("inf", "3")], whole, "2:14 canonical-number"),
        (&[("1.0", "1 # {} 2"), inf], whole, "2:22 exemplar-value"),
    ] {
        let body = histogram(buckets, rest);
        assert_eq!(violations(&body).join(", "), rules, "{body}");
    }
    let no_le = "# TYPE a histogram\na_bucket 1\na_bucket{le='+Inf'} 1\n";
    assert_eq!(violations(no_le), ["2:1 label-missing"]);
    // Each series, and each point in time, stands for itself.
    let two = "# TYPE a histogram\na_bucket{b='1',le='+Inf'} 1\na_bucket{b='2',le='1.0'} 1\n";
    assert_eq!(violations(two), ["3:1 bucket-inf"]);
    let times = "# TYPE a histogram\na_bucket{le='+Inf'} 1 1\na_bucket{le='+Inf'} 2 2\n";
    assert_eq!(violations(times), [""; 0]);
    let gauges = "# TYPE a gaugehistogram\na_bucket{le='1.0'} 2\na_bucket{le='+Inf'} 1\na_gcount 2\na_gsum -1\n";
    assert_eq!(violations(gauges), ["3:1 bucket-cumulative", "4:1 count", "5:1 sum-negative"]);
    let unsummed = "# TYPE a gaugehistogram\na_bucket{le='+Inf'} 1\na_gcount 1\n";
    assert_eq!(violations(unsummed), ["3:1 sum-and-count"]);
}

#[test]
fn recommendations_of_the_specification_are_advice() {
    for (body, rules) in [
        ("# TYPE a gauge\n# HELP a A.\na 1\n", ""),
        ("# TYPE a gauge\na 1\n", "1:8 help"),
        ("# HELP a A.\na 1\n", "1:8 type"),
        (
            "# HELP a_b A.\n# UNIT a_b b\n# TYPE a_b gauge\n",
            "2:8 metadata-order, 3:8 metadata-order",
        ),
        (
            "# TYPE a histogram\n# HELP a A.\na_bucket{le='1'} 1\na_bucket{le='10000000.0'} 1\na_bucket{le='+Inf'} 1\n",
            "3:14 canonical-number, 4:14 canonical-number",
        ),
        ("# TYPE a gauge\n# HELP a A.\na{b='\\d'} 1\n", "3:6 spelling"),
        (
            "# TYPE 'a.b' gauge\n# HELP 'a.b' A.\n{'a.b','c.d'='1'} 1\n{'a.b','c.d'='2'} 1\n",
            "1:8 quoted-name",
        ),
        ("# TYPE a:b gauge\n# HELP a:b A.\na:b 1\n", "1:8 colon"),
        ("# TYPE a_total gauge\n# HELP a_total A.\na_total 1\n", "1:8 total-ending"),
    ] {
        assert_eq!(violations(body), [""; 0], "{body}");
        assert_eq!(advice(body).join(", "), rules, "{body}");
    }
    assert_eq!(findings("# EOF", OpenMetrics, Severity::Advice), ["1:6 line-feed"]);
    for text in ["", "# TYPE a gauge\n", "a 1"] {
        assert!(findings(text, OpenMetrics, Severity::Violation)[0].ends_with(" eof"), "{text:?}");
    }
}

#[test]
fn text_has_rules_too() {
    let clean = "# A comment.\n\n  # HELP a_total A \\\\ and \\n.\n\t# TYPE a_total counter\na_total { b = '1' , } 1 1700000000000\n\
                 # TYPE h_seconds histogram\n# HELP h_seconds H.\nh_seconds_bucket{le='1'} 1\nh_seconds_bucket{le='+Inf'} 2\n\
                 h_seconds_sum 3\nh_seconds_count 2\n# HELP s_seconds S.\n# TYPE s_seconds summary\ns_seconds{quantile='0.5'} 1\n\
                 s_seconds{quantile='0.9'} 2\ns_seconds_sum 3\ns_seconds_count 2\n";
    assert_eq!(check(&clean.replace('\'', "\""), Text), []);
    assert_eq!(check("", Text), []);
    let h = "# TYPE h histogram\n";
    for (text, rules) in [
        ("a 1", "1:4 line-feed"),
        (" a 1\n", "1:1 syntax"),
        ("\ta 1\n", "1:1 syntax"),
        ("# TYPE h histogram\n# TYPE h_count gauge\nh_count 1\n", "2:8 name-clash"),
        (
            "# TYPE s summary\ns_sum 1\ns_count 1\n# TYPE s_sum gauge\ns_sum{a='1'} 1\n",
            "4:8 name-clash",
        ),
        ("a 1\n# TYPE a gauge\n", "2:8 metadata-late"),
        ("# TYPE a gauge\n# TYPE a gauge\na 1\n", "2:8 metadata-twice"),
        ("# HELP a b\n# HELP a b\na 1\n", "2:8 metadata-twice"),
        ("a 1\n# HELP a b\n", "2:8 metadata-late"),
        ("# HELP a \\'b\\'\na 1\n", "1:10 syntax"),
        ("a 1\nb 1\na{c='d'} 1\n", "3:1 metric-apart"),
        ("a 1 1\na 1 2\n", "2:1 series-twice"),
        ("a{b='1',c='2'} 1\na{c='2',b='1'} 1\n", "2:1 series-twice"),
        ("a{b='1',b='1'} 1\n", "1:9 label-twice"),
        ("a{__b='1'} 1\n", "1:3 reserved-label"),
        ("a 1 # {} 1\n", "1:5 syntax"),
        (&format!("{h}h 1\n"), "2:1 sample-name"),
        (&format!("{h}h_bucket{{le='1'}} 1\nh_sum 1\nh_count 1\n"), "2:1 bucket-inf"),
        (
            &format!("{h}h_bucket{{le='1'}} 3\nh_bucket{{le='+Inf'}} 1\nh_sum 1\nh_count 1\n"),
            "3:1 bucket-cumulative",
        ),
        (
            &format!("{h}h_bucket{{le='1'}} -1\nh_bucket{{le='+Inf'}} 1\nh_sum 1\nh_count 1\n"),
            "2:18 value",
        ),
        (&format!("{h}h_bucket{{le='+Inf'}} 1\nh_sum 1\nh_count 2\n"), "4:1 count"),
        (&format!("{h}h_bucket{{le='+Inf'}} 1\nh_sum 1\n"), "2:1 sum-and-count"),
        (
            &format!("{h}h_bucket{{}} 1\nh_bucket{{le='+Inf'}} 1\nh_sum 1\nh_count 1\n"),
            "2:1 label-missing",
        ),
        ("# TYPE s summary\ns{quantile='0.9'} 1\ns{quantile='0.5'} 1\n", "3:1 quantile-order"),
        ("# TYPE s summary\ns{quantile='2'} 1\n", "2:13 quantile"),
    ] {
        assert_eq!(findings(text, Text, Severity::Violation).join(", "), rules, "{text}");
    }
    for (text, rules) in [
        ("# HELP a A.\na 1 \n", "2:4 spelling"),
        ("# TYPE a_total counter\n# HELP a_total A.\na_total -1\n", "3:9 value"),
        (&format!("# HELP h H.\n{h}h_bucket{{le='+Inf'}} 1\nh_count 1\n"), "3:1 sum-and-count"),
    ] {
        assert_eq!(findings(text, Text, Severity::Violation), [""; 0], "{text}");
        assert_eq!(findings(text, Text, Severity::Advice).join(", "), rules, "{text}");
    }
}

#[test]
fn checking_goes_on_behind_what_cannot_be_read() {
    let text = "a{ 1\n# TYPE b counter\nb_total{c='é'} -1\n{{{\nb_total{c='é'} 2\n# EOF\n";
    let found = findings(text, OpenMetrics, Severity::Violation);
    assert_eq!(found, ["1:4 syntax", "3:16 value", "4:2 syntax", "5:1 series-twice"]);
}

#[test]
fn a_finding_says_what_to_write_instead() {
    let of = |text: &str, syntax| check(text, syntax)[0].to_string();
    assert_eq!(
        of("# TYPE a_total counter\na_total 1\n# EOF\n", OpenMetrics).split_once(": ").unwrap().1,
        "advice: a_total has no help; write # HELP a_total and what it is"
    );
    let found = check("# TYPE a_total counter\na_total 1\n# EOF\n", OpenMetrics);
    assert_eq!(
        found.last().unwrap().to_string(),
        "2:1: violation: a_total is no sample of a counter; write # TYPE a counter, the rest belongs to the sample"
    );
    assert_eq!(
        of("# TYPE a gauge\n# UNIT a seconds\n# EOF\n", OpenMetrics),
        "2:10: violation: the name a does not end in its unit seconds; call it a_seconds"
    );
    assert_eq!(
        of("# HELP a A.\na{b=\"c\" d=\"e\"} 1\n", Text),
        "2:9: violation: found \"d=\\\"e\\\"} 1\"; expected ',' or '}' after a label"
    );
    let reserved = "# TYPE _6 gauge\n# HELP _6 Six.\n_6{_b=\"c\",__=\"d\"} 1\n# EOF\n";
    let found = check(reserved, OpenMetrics);
    let corrections = found.iter().map(|finding| finding.to_string());
    let corrections: Vec<_> =
        corrections.map(|text| text.split_once("; ").unwrap().1.to_owned()).collect();
    assert_eq!(corrections, ["begin it with a letter", "write b", "begin it with a letter"]);
}
