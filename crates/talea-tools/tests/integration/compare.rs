//! `talea study --ab` and `talea study compare`: the real program.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use crate::support::stand_in::{Reply, StandIn, answer};
use crate::support::{assert_ends, items_api, json_file, start, stdout, talea, until};

/// Runs `talea study`, which writes to a folder if there is one.
fn study(arguments: &[&str], out: Option<&Path>) -> Output {
    let out: Vec<&str> = out.into_iter().flat_map(|it| ["--out", it.to_str().unwrap()]).collect();
    talea([&["study"], arguments, &out].concat())
}

/// Answers 500 to requests with one of these methods, which are steps that no other needs.
fn failing(methods: &'static [&'static str]) -> StandIn {
    StandIn::start(move |request| match methods.contains(&request.method.as_str()) {
        true => Reply::Answer(500, String::new()),
        false => answer(request),
    })
}

/// Failures are counted, so the ratio is exact however busy the machine is; times are compared by
/// the tests of [`talea_tools::compare`].
#[test]
fn a_service_that_fails_more_often_is_shown_to_do_so() {
    let (base, other) = (failing(&["DELETE"]), failing(&["DELETE", "PUT"]));
    let folder = tempfile::tempdir().unwrap();
    let urls = [base.url(), other.url()];
    let mut arguments = vec!["--scenario", "crud", "--cases", "2x5", "--rounds", "4", "--ab"];
    arguments.extend(urls.iter().map(String::as_str));
    let output = study(&arguments, Some(folder.path()));
    assert_ends(&output, 1, &[]);
    let words = "more often failing (2.000 times, 2.000 to 2.000)";
    assert!(stdout(&output).contains(words), "{output:?}");

    let comparison = json_file(&folder.path().join("comparison.json"));
    assert_eq!((&comparison["rounds"], &comparison["paired"]), (&4.into(), &true.into()));
    let lines = comparison["others"][0]["cases"][0]["lines"].as_array().unwrap();
    let of = |measure: &str| lines.iter().find(|line| line["measure"] == measure).unwrap();
    let failed = of("failed");
    assert_eq!((&failed["base"], &failed["other"]), (&10.0.into(), &20.0.into()));
    assert_eq!(failed["verdict"], "worse");
    for measured in ["rate", "time", "p50", "p99"] {
        let line = of(measured);
        assert!(
            line["ratio"]["interval"].is_array() && line["base"].as_f64() > Some(0.0),
            "{line}"
        );
    }
    let page = fs::read_to_string(folder.path().join("comparison.html")).unwrap();
    assert!(page.contains("more often failing"));

    // Each variant has a report of its own, with the numbers of all rounds; they compare too.
    let reports: Vec<String> = ["1", "2"]
        .map(|n| folder.path().join(n).join("report.json").display().to_string())
        .to_vec();
    let rounds = json_file(Path::new(&reports[0]))["cases"][0]["rounds"].take();
    assert_eq!(rounds.as_array().unwrap().len(), 4);
    for (condition, status) in [("failed > 1.5x", 1), ("failed > 9x", 0), ("failed > 15", 1)] {
        let arguments = ["compare", &reports[0], &reports[1], "--fail-if", condition];
        let output = study(&arguments, None);
        let stderr = assert_ends(&output, status, &[condition]);
        assert!(stdout(&output).contains("run apart"), "{output:?}");
        assert_eq!(stderr.contains("FAILED"), status == 1, "{stderr}");
        let json = study(&[&arguments[..], &["--json"]].concat(), None);
        let json: serde_json::Value = serde_json::from_str(&stdout(&json)).unwrap();
        assert_eq!(json["rounds"], 4);
        let result = ["passed", "failed"][status as usize];
        assert_eq!(json["conditions"][0]["result"], result, "{json}");
    }

    // A comparison of no case is no success.
    let mut report = json_file(Path::new(&reports[1]));
    report["cases"][0]["id"] = "other".into();
    fs::write(&reports[1], report.to_string()).unwrap();
    for format in [&[][..], &["--json"]] {
        let arguments = [&["compare", &reports[0], &reports[1]], format].concat();
        let output = study(&arguments, None);
        assert_ends(&output, 2, &["2/report.json has no case of ", "nothing was compared"]);
        assert!(stdout(&output).contains("Case 2x5 is not in "), "{output:?}");
    }
}

#[test]
fn variants_are_environments_and_arguments_of_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let arguments =
        ["--cases", "2x5", "--rounds", "2", "--ab", "ITEMS_VARIANT=1", "ITEMS_VARIANT='two words'"];
    let output = study(&arguments, Some(folder.path()));
    let stderr = assert_ends(&output, 0, &["round 1 of 2: ITEMS_VARIANT=1 items-api"]);
    // The first variant changes from round to round.
    let order: Vec<&str> = stderr.lines().filter(|line| line.starts_with("round ")).collect();
    assert!(order[1].contains("two words") && order[2].contains("two words"), "{order:?}");
    assert!(stdout(&output).contains("Server CPU a request"), "{output:?}");
    for n in ["1", "2"] {
        let report = json_file(&folder.path().join(n).join("report.json"));
        assert_eq!(report["cases"][0]["server"]["requests_received"], 50);
    }
}

/// By a script that knows nothing of `--version`, and passes no signal on, as `npm start`. It prints more than a
/// pipe holds before it serves.
#[test]
fn a_variant_is_a_command_line_that_serves_at_a_url_and_ends_with_all_that_it_started() {
    let [port, page] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [port, page] = [port, page].map(|listener| listener.local_addr().unwrap().port());
    let folder = tempfile::tempdir().unwrap();
    let [script, log] = ["start", "log"].map(|name| folder.path().join(name));
    let lines = format!(
        "#!/bin/sh\necho $N$1 >> '{}'\nhead -c 99999 /dev/zero\n{} --listen=127.0.0.1:{port} --metrics-listen=127.0.0.1:{page}\n:\n",
        log.display(),
        items_api::program().display(),
    );
    fs::write(&script, lines).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let script = script.display();
    let variants = [format!("{script} --study"), format!("N=2 {script}")];
    let url = format!("http://127.0.0.1:{port}/api/items");
    let metrics = format!("http://127.0.0.1:{page}/metrics");
    let load = ["--cases=2x5", "--scenario=crud", "--rounds=2", "--url", &url];
    let load = [&load[..], &["--metrics-url", &metrics, "--ab"]].concat();
    let load = [&load[..], &[&variants[0], &variants[1]]].concat();
    let output = study(&load, Some(&folder.path().join("out")));
    assert_ends(&output, 0, &[]);
    assert!(stdout(&output).contains("Server CPU a request"), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("start --study\n"), "a variant is named by all its words: {stderr}");
    for n in ["1", "2"] {
        let report = json_file(&folder.path().join("out").join(n).join("report.json"));
        assert_eq!(report["cases"][0]["server"]["requests_received"], 50);
    }
    assert_eq!(fs::read_to_string(&log).unwrap(), "--study\n2\n2\n--study\n");
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err(), "all have ended");
}

/// Otherwise that service would be measured in place of each variant.
#[test]
fn a_variant_is_not_started_where_another_service_serves() {
    let folder = tempfile::tempdir().unwrap();
    let service = failing(&[]);
    let url = service.url();
    let arguments = ["--cases", "2x5", "--url", &url, "--ab", "sleep 60", "sleep 61"];
    let output = study(&arguments, Some(folder.path()));
    assert_ends(&output, 2, &[&format!("another service serves at {url} already")]);
    let beside = ["--cases=2x5", "--url=http://127.0.0.1:9/", "--metrics-url", &url, "--ab"];
    let output = study(&[&beside[..], &["sleep 60", "sleep 61"]].concat(), Some(folder.path()));
    assert_ends(&output, 2, &[&format!("another service serves at {url} already")]);
    let output = study(&[&beside[..], &[&url, &url]].concat(), Some(folder.path()));
    assert_ends(&output, 2, &["--metrics-url is for variants that are command lines"]);
}

#[test]
fn a_variant_that_ends_before_it_serves_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let variant = "sh -c 'echo no luck >&2; exit 3'";
    let arguments = ["study", "--url=http://127.0.0.1:9/", "--out", out, "--ab", variant, variant];
    let mut study = start(arguments);
    until("the study has ended", || study.try_wait().unwrap().is_some());
    let output = study.wait_with_output().unwrap();
    assert_ends(&output, 2, &["the target ended (exit status: 3); its output:\nno luck"]);
}

#[test]
fn a_study_fails_where_its_condition_holds() {
    let folder = tempfile::tempdir().unwrap();
    let service = failing(&[]);
    for (condition, status, message) in [
        ("p50 > 0us", 1, "FAILED: case 1x5: p50 > 0us: found"),
        ("p50 > 60s", 0, "passed: case 1x5: p50 > 60s: found"),
        ("failed > 0", 0, "passed: case 1x5: failed > 0: found 0"),
        ("p99 > 1.1x", 2, "needs something to compare with; use --ab"),
        ("B: p99 > 1s", 2, "B: p99 > 1s names no case or step; there are the cases 1x5"),
        ("px > 1s", 2, "expected one of rate, time"),
    ] {
        let url = service.url();
        let arguments =
            ["--cases", "1x5", "--scenario=crud", "--url", &url, "--fail-if", condition];
        assert_ends(&study(&arguments, Some(folder.path())), status, &[message]);
    }
}

#[test]
fn reports_show_which_conditions_passed_and_which_failed() {
    let folder = tempfile::tempdir().unwrap();
    let service = failing(&["DELETE"]);
    let url = service.url();
    let conditions = ["--fail-if", "failed > 4", "--fail-if", "failed > 5"];
    let load = [&["--cases", "1x5", "--scenario", "crud"][..], &conditions].concat();
    let one = [&load[..], &["--url", &url]].concat();
    assert_ends(&study(&one, Some(folder.path())), 1, &[]);
    let two = [&load[..], &["--rounds", "2", "--ab", &url, &url]].concat();
    assert_ends(&study(&two, Some(folder.path())), 1, &[]);
    for (name, judgements, variant) in
        [("report", 2, ""), ("1/report", 2, ""), ("comparison", 4, &*format!("{url}: "))]
    {
        let file = |ending| folder.path().join(format!("{name}.{ending}"));
        let page = fs::read_to_string(file("html")).unwrap();
        for shown in [
            "<b>Failed:</b> WHERE: failed &gt; 4: found 5",
            "<b>Passed:</b> WHERE: failed &gt; 5: found",
        ] {
            let shown = shown.replace("WHERE", &format!("{variant}case 1x5"));
            assert!(page.contains(&shown), "{name}: {shown}: {page}");
        }
        let found = json_file(&file("json"))["conditions"].take();
        let found = found.as_array().unwrap();
        let holds = found.iter().filter(|one| one["result"] == "failed").count();
        assert_eq!((found.len(), holds), (judgements, judgements / 2), "{name}: {found:?}");
    }
}

#[test]
fn a_file_that_is_no_report_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.json");
    fs::write(&path, "{}").unwrap();
    let path = path.display().to_string();
    let output = study(&["compare", &path, "/nowhere.json"], None);
    assert_ends(&output, 2, &["x.json", "expected the report.json"]);
    assert_ends(&study(&["compare", &path], None), 2, &[]);
}
