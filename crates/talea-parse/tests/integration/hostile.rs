//! Any text is read and checked without a panic, in time that grows as its length does.

use std::time::Duration;

use allocation_counter::measure;
use rustix::time::{ClockId, clock_gettime};
use talea_parse::{Line, Reader, Syntax, check, families};

fn all(text: &str) -> Duration {
    let started = cpu_time();
    for syntax in [Syntax::Text, Syntax::OpenMetrics] {
        for line in Reader::new(text, syntax) {
            match line {
                Ok(Line::Sample(sample)) => {
                    sample.labels.iter().for_each(drop);
                    let _ = sample.labels.get("b");
                }
                Ok(_) => {}
                Err(error) => assert!(error.found.chars().count() <= 40),
            }
        }
        let _ = families(text, syntax);
        let findings = check(text, syntax);
        assert!(findings.iter().all(|finding| finding.line > 0 && finding.column > 0));
    }
    cpu_time() - started
}

/// The processor time of this thread, which does not count what others do meanwhile.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Whether four times as much takes no more than about four times as long: a square would
/// take 16 times.
fn grows_as_its_length(what: &str, text: impl Fn(usize) -> String) {
    let (short, long) = (text(50_000), text(200_000));
    let mut ratios = Vec::new();
    // Others have the caches too, so the best of some is what counts.
    for _ in 0..8 {
        let [one, four] = [all(&short), all(&long)].map(|took| took.as_secs_f64().max(1e-4));
        ratios.push(four / one);
        if four / one < 8.0 {
            return;
        }
    }
    panic!("{what}: four times the text takes {ratios:?} times as long");
}

#[test]
fn hostile_text_takes_no_more_than_linear_time() {
    let units: [(&str, &str, &str, &str); 17] = [
        ("braces", "", "{", ""),
        ("braces in a line each", "", "{\n", ""),
        ("quotes", "a{b=\"", "\"", "\"} 1\n"),
        ("backslashes", "a{b=\"", "\\\\", "\"} 1\n"),
        ("odd escapes", "a{b=\"", "\\d", "\"} 1\n"),
        ("labels of one name", "a{", "b=\"c\",", "} 1\n"),
        ("blanks between labels", "a{", "b=\"c\" , ", "} 1\n"),
        ("blanks", "a", " ", "1\n"),
        ("empty lines", "", "\n", ""),
        ("digits", "a 0.", "7", "\n"),
        ("a name", "", "a", " 1\n"),
        ("names that nest", "# TYPE a counter\n", "a_total_total ", "1\n"),
        ("one sample", "", "a 1\n", ""),
        ("unterminated labels", "", "a{b=\"c\n", ""),
        ("metadata", "", "# TYPE a counter\n# HELP a b\n", ""),
        ("quoted names", "", "{\"a.b\",\"c.d\"=\"e\"} 1\n", ""),
        ("help", "# HELP a ", "\\n\\\"", "\n"),
    ];
    for (what, before, unit, after) in units {
        grows_as_its_length(what, |len| {
            format!("{before}{}{after}", unit.repeat(len / unit.len()))
        });
    }
    let numbered =
        |each: fn(usize) -> String| move |len: usize| (0..len / 20).map(each).collect::<String>();
    grows_as_its_length("labels of many names", |len| {
        format!("a{{{}}} 1\n", numbered(|n| format!("_label{n}=\"v\","))(len))
    });
    grows_as_its_length("many metrics", numbered(|n| format!("a{n}_total_total 1\n")));
    grows_as_its_length("many series", numbered(|n| format!("a_bucket{{le=\"{n}\"}} 1\n")));
    grows_as_its_length(
        "metrics in turn",
        numbered(|n| format!("{}x{{y=\"{n}\"}} 1\n", if n % 2 == 0 { "a" } else { "b" })),
    );
    grows_as_its_length("a histogram", |len| {
        format!(
            "# TYPE a histogram\n{}",
            numbered(|n| format!("a_bucket{{le=\"{}\"}} 1\n", 1_000_000 - n))(len)
        )
    });
    grows_as_its_length("times", |len| {
        format!(
            "# TYPE a histogram\n{}",
            numbered(|n| format!("a_bucket{{le=\"1\"}} 1 {n}\n"))(len)
        )
    });
}

#[test]
fn a_check_keeps_300_bytes_of_a_series_however_long_its_labels_are() {
    const SERIES: usize = 20_000;
    for padding in ["", &"x".repeat(500)] {
        let samples = (0..SERIES).map(|n| format!("a{{b=\"{padding}{n}\"}} 1\n"));
        let samples: String = samples.collect();
        let text = format!("# TYPE a gauge\n# HELP a A.\n{samples}# EOF\n");
        for syntax in [Syntax::Text, Syntax::OpenMetrics] {
            let used = measure(|| drop(check(&text, syntax)));
            assert!(used.bytes_max < 300 * SERIES as u64, "{syntax:?}: {used:?}");
        }
    }
}

#[test]
fn a_megabyte_of_braces_is_read() {
    all(&"{".repeat(1 << 20));
}
