//! The reader: what it reads as what, and what it refuses where.

use talea_parse::{Line, MetricType, ParseError, Reader, SampleRef, Syntax, families, text};

use Syntax::{OpenMetrics, Text};

fn one(line: &str, syntax: Syntax) -> SampleRef<'_> {
    let mut lines = Reader::new(line, syntax);
    match lines.next() {
        Some(Ok(Line::Sample(sample))) => sample,
        other => panic!("{line:?}: {other:?}"),
    }
}

fn labels(sample: &SampleRef<'_>) -> Vec<(String, String)> {
    sample.labels.iter().map(|(n, v)| (n.into_owned(), v.into_owned())).collect()
}

fn error(text: &str, syntax: Syntax) -> ParseError {
    let lines = Reader::new(text, syntax);
    lines.filter_map(Result::err).next().unwrap_or_else(|| panic!("{text:?} is read"))
}

#[test]
fn samples_are_read_with_labels_values_and_timestamps() {
    type Wanted = (&'static str, &'static str, Vec<(&'static str, &'static str)>, f64, Option<f64>);
    let wanted: [Wanted; 16] = [
        ("x 1", "x", vec![], 1.0, None),
        ("x{} 1", "x", vec![], 1.0, None),
        ("  x\t{ } \t+Inf ", "  x", vec![], f64::INFINITY, None),
        ("a:b 1e3 1700000000123", "a:b", vec![], 1000.0, Some(1_700_000_000.123)),
        (r#"x{a="1",b="2"} -4"#, "x", vec![("a", "1"), ("b", "2")], -4.0, None),
        (r#"x{ a = "1" , } 0"#, "x", vec![("a", "1")], 0.0, None),
        (r#"x{a="1"}2"#, "x", vec![("a", "1")], 2.0, None),
        (r#"x{route="/api/{id}"} 7"#, "x", vec![("route", "/api/{id}")], 7.0, None),
        (r#"x{v="\\ \" \n ü }"} 7"#, "x", vec![("v", "\\ \" \n ü }")], 7.0, None),
        (r#"x{v="\\"} 7"#, "x", vec![("v", "\\")], 7.0, None),
        (r#"x{v="tab	, # and , \\n"} 7"#, "x", vec![("v", "tab\t, # and , \\n")], 7.0, None),
        (r#"{"http.requests"} 1"#, "http.requests", vec![], 1.0, None),
        (r#"{"http.requests",a="b"} 1"#, "http.requests", vec![("a", "b")], 1.0, None),
        (r#"{a="b","http.requests"} 1"#, "http.requests", vec![("a", "b")], 1.0, None),
        (
            r#"x{"http.method"="GET","ü\"\n"="1"} 1"#,
            "x",
            vec![("http.method", "GET"), ("ü\"\n", "1")],
            1.0,
            None,
        ),
        (r#"{"a\\b", c="",} 1 2"#, "a\\b", vec![("c", "")], 1.0, Some(0.002)),
    ];
    for (line, name, own, value, timestamp) in wanted {
        for line in [line.to_owned(), format!("{line}\n")] {
            let sample = one(&line, Text);
            assert_eq!((sample.name.as_ref(), sample.value), (name, value), "{line}");
            assert_eq!(sample.timestamp, timestamp, "{line}");
            let own = own.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
            assert_eq!(labels(&sample), own.collect::<Vec<_>>(), "{line}");
        }
    }
    assert!(one("x NaN", Text).value.is_nan());
}

#[test]
fn openmetrics_has_seconds_and_exemplars() {
    let line =
        "a_total{b=\"c\"} 17 1520879607.789 # {trace_id=\"KOO5\",x=\"ü\"} 9.8 1520879607.5\n";
    let sample = one(line, OpenMetrics);
    assert_eq!((sample.value, sample.timestamp), (17.0, Some(1_520_879_607.789)));
    let exemplar = sample.exemplar.unwrap();
    assert_eq!((exemplar.value, exemplar.timestamp), (9.8, Some(1_520_879_607.5)));
    assert_eq!(exemplar.labels.get("x").as_deref(), Some("ü"));
    let sample = one("a_bucket{le=\"1.0\"} 17 # {} 0.5\n", OpenMetrics);
    assert_eq!(sample.timestamp, None);
    assert_eq!(sample.exemplar.unwrap().timestamp, None);
    assert_eq!(sample.exemplar.unwrap().labels.iter().count(), 0);
    // A backslash that escapes nothing stands for itself there.
    assert_eq!(one("a{b=\"\\d\"} 1\n", OpenMetrics).labels.get("b").as_deref(), Some("\\d"));
    let sample = one("{\"http.requests\",\"http.method\"=\"GET\"} 1 -1.5\n", OpenMetrics);
    assert_eq!((sample.name.as_ref(), sample.timestamp), ("http.requests", Some(-1.5)));
}

#[test]
fn metadata_is_read() {
    let text = "# HELP x  A \\\\ and \\n \"b\" \n# TYPE \"x.y\" untyped\n# \tTYPE\tx\thistogram\n# a comment\n\n # HELP\n";
    let lines: Vec<_> = Reader::new(text, Text).map(Result::unwrap).collect();
    assert_eq!(
        lines,
        [
            Line::Help { name: "x".into(), help: " A \\ and \n \"b\" ".into() },
            Line::Type { name: "x.y".into(), kind: MetricType::Unknown },
            Line::Type { name: "x".into(), kind: MetricType::Histogram },
        ]
    );
    let text = "# TYPE x_seconds gaugehistogram\n# UNIT x_seconds seconds\n# HELP x_seconds  A \\\"b\\\".\n# EOF\n";
    let lines: Vec<_> = Reader::new(text, OpenMetrics).map(Result::unwrap).collect();
    assert_eq!(
        lines,
        [
            Line::Type { name: "x_seconds".into(), kind: MetricType::GaugeHistogram },
            Line::Unit { name: "x_seconds".into(), unit: "seconds" },
            Line::Help { name: "x_seconds".into(), help: " A \"b\".".into() },
            Line::End,
        ]
    );
    assert_eq!(Reader::new("", Text).count(), 0);
    assert_eq!(Reader::new("# EOF", OpenMetrics).collect::<Vec<_>>(), [Ok(Line::End)]);
}

#[test]
fn an_error_in_text_has_its_place() {
    for (line, column, expected) in [
        ("9x 1", 1, "a metric's name"),
        ("{} 1", 1, "a metric's name"),
        ("{a=\"1\"} 1", 1, "a metric's name"),
        ("x", 2, "a blank or '{'"),
        ("x ", 3, "a number"),
        ("x y", 3, "a number"),
        ("x-y 1", 2, "a blank or '{'"),
        ("x 1\r", 4, "without a carriage return"),
        ("x{a=\"1\"", 8, "',' or '}'"),
        ("x{a=\"1\" 1", 9, "',' or '}'"),
        ("x{,} 1", 3, "a label's name"),
        ("x{a=\"1\",,} 1", 9, "a label's name"),
        ("x{a=1} 1", 5, "a value in quotes"),
        ("x{a} 1", 4, "'='"),
        ("x{\"a\"} 1", 6, "'='"),
        ("{\"a\",\"b\"} 1", 9, "'='"),
        ("x{a=\"1} 1", 10, "a closing quote"),
        ("x{a=\"\\", 6, "after a backslash"),
        ("x{9=\"1\"} 1", 3, "a label's name"),
        ("x{a:b=\"1\"} 1", 4, "'='"),
        ("x{é=\"1\"} 1", 3, "a label's name"),
        ("x 1 y", 5, "a timestamp"),
        ("x 1 1.5", 5, "a timestamp"),
        ("x 1 -5", 5, "a timestamp"),
        ("x 1 +5", 5, "a timestamp"),
        ("x 1 2 3", 7, "nothing after"),
        ("x 1 # {} 1", 5, "a timestamp"),
        ("x +nan", 3, "a number"),
        ("x 1e999", 3, "a number"),
        ("x 0x10", 3, "a number"),
        ("# TYPE x meter", 10, "counter, gauge"),
        ("# TYPE x info", 10, "counter, gauge"),
        ("# TYPE x counter more", 18, "nothing after"),
        ("# TYPE x counter ", 17, "no blank after the type"),
        ("# TYPE x counter\t", 17, "no blank after the type"),
        ("# TYPE x  counter", 9, "exactly one blank before the type"),
        ("# TYPE x\t counter", 9, "exactly one blank before the type"),
        ("# TYPE x ", 10, "counter, gauge"),
        ("# TYPE x", 9, "a blank after the metric's name"),
        ("# TYPE ", 8, "a metric's name"),
        ("# HELP ", 8, "a metric's name"),
        ("x{\"a\0\"=\"1\"} 1", 5, "no NUL"),
        ("# TYPE 9 counter", 8, "a metric's name"),
        ("# TYPE \"a\0b\" gauge", 10, "no NUL"),
        ("# TYPE a-b counter", 9, "a blank"),
        ("# TYPE a counter\r", 17, "without a carriage return"),
    ] {
        let error_found = error(&format!("ok 1\n{line}\nok 2\n"), Text);
        assert_eq!((error_found.line, error_found.column), (2, column), "{line}: {error_found}");
        assert!(error_found.to_string().contains(expected), "{line}: {error_found}");
    }
    let error_found = error(&format!("x{{a=\"é{}\" 9", "z".repeat(100)), Text).to_string();
    assert_eq!(error_found, "line 1, column 109: expected ',' or '}' after a label, found \"9\"");
    assert!(error(&"9".repeat(1000), Text).found.len() <= 40);
    assert!(error("x", Text).to_string().ends_with("found the line's end"));
}

#[test]
fn openmetrics_is_read_as_its_grammar_has_it() {
    for (line, column, expected) in [
        ("", 1, "no line without text"),
        (" ", 1, "no line without text"),
        ("# a comment", 3, "no comments"),
        ("#", 2, "no comments"),
        (" x 1", 1, "no blank"),
        ("x  1", 2, "exactly one blank"),
        ("x\t1", 2, "exactly one blank"),
        ("x 1 ", 4, "no blank at the line's end"),
        ("x {a=\"1\"} 1", 3, "a number"),
        ("x{a=\"1\"}1", 9, "exactly one blank"),
        ("x{ a=\"1\"} 1", 3, "no blank"),
        ("x{a =\"1\"} 1", 4, "no blank"),
        ("x 1\r", 4, "without a carriage return"),
        ("x 1 12:30", 5, "a timestamp in seconds"),
        ("x 1 Inf", 5, "a timestamp in seconds"),
        ("x 1 #{} 1", 6, "a blank after '#'"),
        ("x 1 # 1", 7, "'{'"),
        ("x 1 # {}", 9, "a blank after '}'"),
        ("x 1 # {} y", 10, "the exemplar's value"),
        ("x 1 # {} 1 2 3", 14, "nothing after the exemplar"),
        ("x 1 # {} 1 # {} 1", 12, "a timestamp"),
        ("x 1 2 3", 7, "nothing after the timestamp"),
        ("# TYPE x untyped", 10, "counter, gauge"),
        ("# TYPE x  counter", 9, "exactly one blank"),
        ("# TYPE x", 9, "a blank after the metric's name"),
        ("# HELP x", 9, "exactly one blank"),
        ("# UNIT x s\r", 11, "without a carriage return"),
        ("# UNIT x é", 10, "a unit that the metric's name ends in"),
        ("# UNIT x_b c", 12, "a unit that the metric's name ends in"),
        ("x{a=\"b\nc\"} 1", 7, "a closing quote"),
        ("x{a=\"1\"b=\"2\"} 1", 8, "',' or '}'"),
        ("x+1", 2, "a blank or '{'"),
        ("# type x counter", 3, "TYPE, UNIT, HELP or EOF"),
        ("#  EOF", 2, "exactly one blank"),
        ("# EOF ", 6, "no blank at the line's end"),
    ] {
        let error_found = error(&format!("ok 1\n{line}\nmore 2\n# EOF\n"), OpenMetrics);
        assert_eq!((error_found.line, error_found.column), (2, column), "{line}: {error_found}");
        assert!(error_found.to_string().contains(expected), "{line}: {error_found}");
    }
    for text in ["", "x 1\n", "x 1"] {
        assert!(error(text, OpenMetrics).expected.contains("# EOF"), "{text:?}");
    }
    for text in ["# EOF\n# EOF\n", "# EOF\nx 1\n", "# EOF\n\n", "# EOF\n# TYPE x counter\n"] {
        assert_eq!(error(text, OpenMetrics).line, 2, "{text:?}");
    }
}

#[test]
fn reading_goes_on_behind_what_cannot_be_read() {
    let text = "a 1\nb{ 2\n{{{\nc 3\nd\ne 4";
    let lines: Vec<_> = Reader::new(text, Text).collect();
    let read: Vec<_> = lines.iter().map(|line| line.as_ref().map_err(|error| error.line)).collect();
    assert_eq!(read.len(), 6);
    assert!(read[0].is_ok() && read[3].is_ok() && read[5].is_ok());
    assert_eq!([&read[1], &read[2], &read[4]], [&Err(2), &Err(3), &Err(5)]);
    let mut lines = Reader::new("", OpenMetrics);
    assert!(lines.next().unwrap().is_err());
    assert!(lines.next().is_none());
}

#[test]
fn samples_alone_can_be_kept() {
    let samples = text("# HELP x y\n\n# TYPE x counter\nx{a=\"b\"} 1\n").unwrap();
    assert_eq!(samples.len(), 1);
    assert_eq!(samples[0].labels, [("a".to_owned(), "b".to_owned())]);
    assert_eq!(text("x 1\ny").unwrap_err().line, 2);
}

#[test]
fn samples_belong_to_the_metric_that_has_their_ending() {
    let text = "# HELP h H.\n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_sum 2\nh_count 1\n\
                h_created 3\n# TYPE s summary\ns{quantile=\"0.5\"} 1\ns_sum 1\n# TYPE c_total counter\n\
                c_total 1\nh_count{a=\"late\"} 1\n";
    let found: Vec<_> = families(text, Text)
        .unwrap()
        .into_iter()
        .map(|f| (f.name.into_owned(), f.kind, f.samples.len()))
        .collect();
    use MetricType::{Counter, Histogram, Summary, Unknown};
    let wanted = [
        ("h", Histogram, 4),
        ("h_created", Unknown, 1),
        ("s", Summary, 2),
        ("c_total", Counter, 1),
    ];
    assert_eq!(found, wanted.map(|(name, kind, len)| (name.to_owned(), kind, len)));

    let text = "# TYPE c_seconds counter\n# UNIT c_seconds seconds\nc_seconds_total 1\n\
                c_seconds_created 1\n# TYPE i info\ni_info{a=\"b\"} 1\n# EOF\n";
    let found = families(text, OpenMetrics).unwrap();
    assert_eq!(
        (found[0].name.as_ref(), found[0].unit, found[0].samples.len()),
        ("c_seconds", Some("seconds"), 2)
    );
    assert_eq!((found[1].kind, found[1].samples.len()), (MetricType::Info, 1));
}
