//! Metrics that are hard to read.

use std::time::Duration;

use talea::{
    Bytes, Config, Counter, DynamicLabels, Error, Family, FloatCounter, FloatGauge, Floats, Gauge,
    Histogram, Info, LabelValue, Labels, Opts, Registry, Seconds, StateSet, Summary,
};

#[derive(LabelValue)]
#[allow(dead_code)]
enum Circuit {
    Closed,
    HalfOpen,
    Open,
}

#[derive(Labels)]
struct Build<'a> {
    version: &'a str,
    notes: &'a str,
}

/// Texts that a careless writer or reader breaks on.
pub fn hard_texts() -> Vec<String> {
    let mut all: Vec<String> = [
        "",
        " ",
        "plain",
        "/items/{id}",
        "\"",
        "\\",
        "\\\\",
        "\n",
        "\\n",
        "\\\n\"",
        "ends in \\",
        "a=\"b\",c=\"d\"} 7\n# EOF\n",
        "{},=# \t",
        "# HELP x y",
        "# {trace_id=\"x\"} 1",
        "\r\n",
        "\u{1}\u{7}\u{1b}[0m\u{7f}",
        "größe €",
        "😀👩‍👩‍👧",
        "\u{85}\u{2028}\u{2029}\u{feff}",
        "e\u{301} \u{202e}right to left",
        "\u{fffd}\u{ffff}\u{10ffff}",
        "NaN",
    ]
    .map(str::to_owned)
    .into();
    all.push("long ".repeat(2000));
    // Anything out of such characters.
    let mut state = 7_u64;
    let mut next = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let characters = ['"', '\\', '\n', 'n', '{', '}', ',', '=', '#', ' ', '\r', 'ü', '😀', '\t'];
    for _ in 0..200 {
        let len = 1 + next(12);
        all.push((0..len).map(|_| characters[next(characters.len())]).collect());
    }
    all.sort();
    all.dedup();
    all
}

/// A registry with a metric of each kind, with hard texts and hard numbers.
pub fn hard_metrics() -> Result<Registry, Error> {
    let registry = Registry::with_config(Config::with_len(16 << 20))?;
    let opts = Opts::new("texts", "Help with \\ and \"quotes\",\nlines and ünïcode.");
    let texts: Family<DynamicLabels, Counter> = registry.family(opts, &["text", "n"])?;
    for (n, text) in hard_texts().iter().enumerate() {
        texts.with_values(&[text.as_str(), &n.to_string()]).add(n as u64);
    }

    let floats: Family<DynamicLabels, FloatGauge> =
        registry.family(Opts::new("floats", "Hard floats."), &["n"])?;
    let hard = [
        0.0,
        -0.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        5e-324,
        f64::MIN_POSITIVE,
        f64::MAX,
        f64::MIN,
        f64::EPSILON,
        0.1,
        1.0 / 3.0,
        1e15,
        1e16,
        9_007_199_254_740_993.0,
        123_456_789.125,
        1e-7,
    ];
    for (n, x) in hard.into_iter().enumerate() {
        floats.with_values(&[n.to_string()]).set(x);
    }
    let whole: Family<DynamicLabels, Counter> =
        registry.family(Opts::new("whole", "Hard whole numbers."), &["n"])?;
    for n in [0, 1, (1 << 53) - 1, (1 << 53) + 1, i64::MAX as u64, u64::MAX] {
        whole.with_values(&[n.to_string()]).add(n);
    }
    let signed: Family<DynamicLabels, Gauge> =
        registry.family(Opts::new("signed", "Hard signed numbers."), &["n"])?;
    for n in [0, -1, i64::MIN, i64::MAX] {
        signed.with_values(&[n.to_string()]).set(n);
    }
    registry.register::<FloatCounter>(Opts::new("spent_seconds", "Time spent."))?.add(0.1 + 0.2);

    let calls: Counter = registry.register(Opts::new("calls", "Calls with an exemplar."))?;
    // Python's parser takes an exemplar with an odd number of quotes for one that does not
    // end.
    calls.add_with_exemplar(2, &[("trace_id", "0af7"), ("note", "\"a\" b\\c\nü")]).ok();
    let opts = Opts::new("wait", "Time to wait.").buckets(&[0.001, 0.1, 1.0, 1e6]);
    let wait: Family<DynamicLabels, Histogram<Seconds>> = registry.family(opts, &["route"])?;
    for (n, route) in ["/items/{id}", "\"\\\n", "", "never"].iter().enumerate() {
        for millis in [0, 1, 50, 5000].into_iter().take(4 - n) {
            wait.with_values(&[*route]).observe(Duration::from_millis(millis));
        }
    }
    let kept = wait.with_values(&["/items/{id}"]);
    kept.observe_with_exemplar(Duration::from_millis(70), &[("trace_id", "beef")]).ok();
    kept.observe_with_exemplar(Duration::from_secs(1 << 21), &[("trace_id", "cafe")]).ok();
    registry.register::<Histogram<Bytes>>(Opts::new("sent", "How much was sent."))?.observe(4096);

    let opts = Opts::new("priced", "Prices.").quantiles(&[0.0, 0.5, 0.999, 1.0]);
    let priced: Family<DynamicLabels, Summary<Floats>> = registry.family(opts, &["route"])?;
    for price in [0.0, 1e-300, 0.5, 1e300] {
        priced.with_values(&["\"\\\n"]).observe(price);
    }
    drop(priced.with_values(&["never"]));

    // Below zero, which OpenMetrics' own types cannot hold.
    let opts = Opts::new("drift", "Below zero.").quantiles(&[0.0, 0.5, 1.0]);
    let drift: Family<DynamicLabels, Summary<Floats>> = registry.family(opts, &["of"])?;
    for (of, values) in [("some", &[-3.0, -2.0, 1.0][..]), ("all", &[-7.5]), ("none", &[4.0])] {
        values.iter().for_each(|&x| drift.with_values(&[of]).observe(x));
    }
    let opts = Opts::new("level", "Below the lowest threshold.").buckets(&[0.0, 1.0]);
    let level: Family<DynamicLabels, Histogram<Floats>> = registry.family(opts, &["of"])?;
    for (of, values) in [("some", &[-3.0, 0.5][..]), ("nan", &[f64::NAN, 1.0]), ("none", &[4.0])] {
        values.iter().for_each(|&x| level.with_values(&[of]).observe(x));
    }

    let build: Info<Build<'static>> = registry.register(Opts::new("build", "By whom."))?;
    build.set(Build { version: "1.4.0", notes: "a\\\"b\nü" });
    registry.register::<StateSet<Circuit>>(Opts::new("circuit", "State."))?.set(Circuit::HalfOpen);

    let opts = Opts::new("http.größe", "Names of any characters.").utf8_names(true);
    let wide: Family<DynamicLabels, Counter> = registry.family(opts, &["http.route", "ok"])?;
    wide.with_values(&["/a\"b", "yes"]).add(5);
    let opts = Opts::new("wide.wait", "Names of any characters.").utf8_names(true);
    let wide: Family<DynamicLabels, Histogram<Seconds>> = registry.family(opts, &["größe"])?;
    wide.with_values(&["x"]).observe(Duration::from_millis(3));
    Ok(registry)
}
