//! `talea study`: the real program against a stand-in whose metrics the test decides.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::stand_in::{Reply, StandIn, answer};
use crate::support::study_output::StudyOutput;
use crate::support::{
    TALEA, assert_ends, interrupt, json_file, signal, stderr, stdout, talea, until,
    with_default_signals,
};

/// A service that counts its requests by this name.
fn service(requests: &'static str) -> StandIn {
    StandIn::counting(move |received| metrics(requests, received), |_, request| answer(request))
}

/// One that shows how many requests it received, and answers none.
fn silent() -> StandIn {
    StandIn::counting(|received| metrics(REQUESTS, received), |_, _| Reply::Silence)
}

const REQUESTS: &str = "http_requests_total";

fn metrics(requests: &str, received: u64) -> String {
    format!(
        "{requests}{{status=\"2xx\"}} {received}\n\
         http_request_duration_seconds_sum {}\n\
         http_request_duration_seconds_count {received}\n\
         server_tasks_alive 4\nserver_tasks_alive_peak 9\n\
         server_tasks_ready 0\nserver_tasks_ready_peak 3\nprocess_cpu_seconds_total {}\n",
        received as f64 * 0.004,
        received as f64 * 0.001,
    )
}

/// A service, and a folder with a program that says where it is.
struct Scene {
    service: StandIn,
    folder: TempDir,
}

impl Scene {
    /// One whose service counts its requests, and whose program runs until its input ends.
    fn counting() -> Self {
        Self::of(service(REQUESTS))
    }

    fn of(service: StandIn) -> Self {
        Self::new(service, "exec cat > /dev/null")
    }

    /// The program does as `then` says after it has said where the service is.
    fn new(service: StandIn, then: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = format!(
            "#!/bin/sh\n\
             if [ \"$1\" = --version ]; then echo 'stand-in <1.0>'; exit; fi\n\
             echo $$ > '{}'\n\
             echo 'items on http://{address}/api/items'\n\
             echo 'metrics on http://{address}/metrics'\n\
             {then}\n",
            folder.path().join("pid").display(),
            address = service.address,
        );
        let program = folder.path().join("stand-in");
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { service, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, cases: &str) -> Command {
        self.with_arguments(with_default_signals(TALEA), cases)
    }

    fn with_arguments(&self, mut command: Command, cases: &str) -> Command {
        command.args(["study", "--cases", cases]).arg("--out").arg(self.path("out"));
        command.arg("--api").arg(self.path("stand-in"));
        command
    }

    /// Studies some cases, and asserts how that ends, as [`assert_ends`] does.
    #[track_caller]
    fn study(&self, cases: &str, more: &[&str], status: i32, parts: &[&str]) -> Output {
        let output = self.command(cases).args(more).output().unwrap();
        assert_ends(&output, status, parts);
        output
    }

    fn report(&self) -> Value {
        json_file(&self.path("out/report.json"))
    }

    fn files_in_out(&self) -> usize {
        fs::read_dir(self.path("out")).map_or(0, Iterator::count)
    }

    fn child_is_gone(&self) -> bool {
        let pid = fs::read_to_string(self.path("pid")).unwrap();
        !Path::new("/proc").join(pid.trim()).exists()
    }

    /// Whether the process whose number is in a file has ended, and what it started.
    fn group_is_gone(&self, file: &str) -> bool {
        let group = fs::read_to_string(self.path(file)).unwrap();
        let list = Command::new("ps").args(["-eo", "pgid=,stat="]).output().unwrap();
        // One that has ended may still wait for its parent.
        !stdout(&list).lines().any(|line: &str| {
            let mut words = line.split_whitespace();
            words.next() == Some(group.trim())
                && words.next().is_some_and(|state| !state.starts_with('Z'))
        })
    }
}

#[test]
fn both_sides_are_counted_and_reported() {
    let scene = Scene::counting();
    let output = scene.study("3x4,10x2", &[], 0, &[]);
    let stdout = stdout(&output);
    assert!(stdout.contains("10x2") && stdout.contains("report.html"), "{stdout}");
    assert_eq!(scene.service.requests(), 60 + 100);

    let report = scene.report();
    for (case, requests) in [(0, 60), (1, 100)] {
        let (client, server) = (&report["cases"][case]["client"], &report["cases"][case]["server"]);
        assert_eq!(client["requests_sent"], requests);
        assert_eq!(server["requests_received"], requests);
        assert_eq!(client["failed"], 0);
        assert_eq!(server["peak_additional_tasks"], 5);
        assert_eq!(server["peak_ready_tasks"], 3);
        let close = |side: &Value, name: &str, expected: f64| {
            assert!((side[name].as_f64().unwrap() - expected).abs() < 1e-6, "{name}: {side}");
        };
        close(server, "mean_response_ms", 4.0);
        close(server, "cpu_seconds", requests as f64 * 0.001);
        close(client, "mean_rate", requests as f64 / client["seconds"].as_f64().unwrap());
    }
    // Idle once; for each case a look for leftovers, a baseline and a last reading at least.
    assert!(report["scrapes"].as_u64().unwrap() >= 7, "{}", report["scrapes"]);
    assert!(report["machine"]["cores"].as_u64().unwrap() >= 1);
    assert!(report["command"].as_str().unwrap().starts_with("talea study --cases 3x4,10x2"));
    assert!(scene.child_is_gone());
}

#[test]
fn a_study_judges_an_endpoint_by_the_metrics_of_the_service() {
    let page = |received: u64| {
        let labels = "method=\"POST\",endpoint=\"/items\"";
        // Of each ten one took up to 1 s, and one had the status 500.
        let (quick, failed) = (received - received / 10, received / 10);
        let status = |status: &str, count: u64| {
            format!("http_requests_total{{{labels},status=\"{status}\"}} {count}\n")
        };
        let bucket = |le: &str, count: u64| {
            format!("http_request_duration_seconds_bucket{{{labels},le=\"{le}\"}} {count}\n")
        };
        format!(
            "# TYPE http_requests_total counter\n{}{}# TYPE http_request_duration_seconds histogram\n{}{}{}\
             http_request_duration_seconds_sum{{{labels}}} {received}\n\
             http_request_duration_seconds_count{{{labels}}} {received}\n",
            status("2xx", quick),
            status("5xx", failed),
            bucket("0.01", quick),
            bucket("1", received),
            bucket("+Inf", received),
        )
    };
    let scene = Scene::of(StandIn::counting(page, |_, request| answer(request)));
    for (condition, status, words) in [
        ("endpoint POST /items: p50 > 10ms", 0, "passed"),
        ("endpoint POST /items: p99 > 5ms", 1, "FAILED"),
        ("endpoint POST /items: p99 > 500ms", 3, "not decided"),
        ("2x10: endpoint POST /items: failed > 9%", 1, "found 10.0 %"),
        ("endpoint GET /items: p50 > 10ms", 2, "the service counted requests of POST /items"),
    ] {
        scene.study("2x10", &["--fail-if", condition], status, &[words]);
    }
    // The report's own are judged the same way.
    let report = scene.path("out/report.json").display().to_string();
    let compare = ["study", "compare", &report, &report, "--fail-if"];
    for (condition, status) in [
        ("endpoint POST /items: p99 > 5ms", 1),
        ("endpoint POST /items: rate > 1.5x", 0),
        ("endpoint POST /items: p99 > 1.5x", 3),
    ] {
        let output = talea([&compare[..], &[condition]].concat());
        assert_ends(&output, status, &[]);
    }
    // Clients do not know the endpoints.
    let url = format!("http://{}/", scene.service.address);
    let one = "endpoint GET /: p99 > 5ms";
    for (command, words) in [
        (vec!["load", &url, "-c", "1", "-n", "1", "--fail-if", one], "talea study"),
        (vec!["load", &url, "--find-limit", one], "talea study"),
        (vec!["load", &url, "-c", "1", "-n", "1", "--fail-if", "memory > +10%"], "--server-pid"),
        (vec!["load", &url, "-c", "1", "-n", "1", "--fail-if", "A: cpu > 1ms"], "talea study"),
        (vec!["study", "--url", &url, "--cases", "1x1", "--fail-if", "cpu > 1us"], "--metrics-url"),
        (vec!["study", "--url", &url, "--fail-if", "memory > +1%"], "--metrics-url"),
        (vec!["study", "--url", &url, "--cases", "1x1", "--fail-if", one], "--metrics-url"),
    ] {
        assert_ends(&talea(&command), 2, &[words]);
    }
    // They are refused before anything is made.
    assert_eq!(scene.service.requests(), 5 * 100);
}

#[test]
fn the_page_is_one_file_without_script_and_escapes_its_input() {
    let scene = Scene::counting();
    assert!(scene.command("1x1").status().unwrap().success());
    let page = fs::read_to_string(scene.path("out/report.html")).unwrap();
    assert!(page.contains("stand-in &lt;1.0&gt;"));
    for metric in [
        "Response time, both sides",
        "Requests received",
        "Requests received a second",
        "Mean response time",
        "Server CPU",
    ] {
        assert!(page.contains(&format!(">{metric}<")), "{metric}");
    }
    // A state at one instant is shown if there was a sample while the case ran.
    let is_sampled = scene.report()["cases"][0]["server"]["unsampled"] == false;
    assert_eq!(page.contains(">Ready tasks<"), is_sampled);
    assert_eq!(page.contains("ended before its first sample"), !is_sampled);
    // It reports no memory and no pool.
    assert!(!page.contains(">Server memory<") && !page.contains(">Database pool<"));
    for outside in ["<script", "<link", "<img", "src=", "url(", "@import"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn a_metric_that_is_missing_is_named() {
    let scene = Scene::of(service("hits_total"));
    scene.study("1x1", &[], 2, &["no metric http_requests_total, also after a request"]);
    assert!(scene.child_is_gone());
}

#[test]
fn a_target_that_dies_is_quoted() {
    let scene = Scene::new(silent(), "sleep 0.5; echo 'out of <luck>' >&2; exit 3");
    scene.study(
        "1x1,2x2",
        &[],
        2,
        &["the target ended", "out of <luck>", "stopped in 1x1", "not begun: 2x2"],
    );
    assert_eq!(scene.files_in_out(), 0);
}

#[test]
fn a_target_that_says_something_else_is_quoted() {
    let scene = Scene::new(service(REQUESTS), "");
    fs::write(scene.path("stand-in"), "#!/bin/sh\necho hello\nexec cat\n").unwrap();
    let words = ["error: finished: none; not begun: 1x1: ", "\"hello\", expected \"items on"];
    scene.study("1x1", &[], 2, &words);
}

#[test]
fn a_target_may_print_text_that_is_no_utf_8() {
    let prints = "yes \"$(printf '\\351')\" | head -n 99999 || exit 3\nexec cat > /dev/null";
    Scene::new(service(REQUESTS), prints).study("1x1s", &[], 0, &[]);
}

#[test]
fn ctrl_c_leaves_no_child_and_no_report() {
    let scene = Scene::of(silent());
    let mut command = scene.command("2x2,A");
    let study = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("two requests", || scene.service.requests() >= 2);
    assert!(!scene.child_is_gone());
    interrupt(&study);
    let output = study.wait_with_output().unwrap();
    let words = ["stopped in 2x2 after 0 of 20 requests", "not begun: A", "No report"];
    assert_ends(&output, 130, &words);
    assert!(scene.child_is_gone());
    assert_eq!(scene.files_in_out(), 0);
}

#[test]
fn a_second_ctrl_c_ends_a_target_that_ignores_the_first() {
    let scene = Scene::new(silent(), "trap '' TERM; sleep 1000 & sleep 1001");
    let mut study = scene.command("2x2").stderr(Stdio::piped()).spawn().unwrap();
    until("two requests", || scene.service.requests() >= 2);
    // Again and again, since of two that come at once one may be lost.
    until("it has ended", || {
        interrupt(&study);
        study.try_wait().unwrap().is_some()
    });
    let output = study.wait_with_output().unwrap();
    assert_ends(&output, 130, &[]);
    assert!(!stderr(&output).contains("is killed"), "it waited for the target");
    until("the target has ended, and its child", || scene.group_is_gone("pid"));
}

#[test]
fn a_signal_before_a_case_ends_the_command_that_runs_then_and_its_children() {
    let scene = Scene::counting();
    let ready = scene.path("before");
    let before = format!("sleep 1000 & echo $$ > '{}'; wait", ready.display());
    let mut command = scene.command("1x1");
    let study = command.args(["--before-case", &before]).stderr(Stdio::piped()).spawn().unwrap();
    until("it runs", || fs::read_to_string(&ready).is_ok_and(|pid| pid.ends_with('\n')));
    signal(&study, "TERM");
    assert_ends(&study.wait_with_output().unwrap(), 130, &["stopped in 1x1 after 0 of 5 requests"]);
    assert!(scene.group_is_gone("before") && scene.child_is_gone());
}

#[test]
fn a_command_before_a_case_may_start_a_service_that_runs_on() {
    let scene = Scene::counting();
    // Standard error stays open.
    let before = format!("sleep 1000 & echo $! > '{}'", scene.path("service").display());
    scene.study("1x1", &["--before-case", &before], 0, &[]);
    let service = fs::read_to_string(scene.path("service")).unwrap();
    assert!(Command::new("kill").arg(service.trim()).status().unwrap().success(), "it runs");
    scene.study(
        "1x1",
        &["--before-case", "echo no database >&2; false"],
        2,
        &["--before-case \"echo no database >&2; false\" failed (exit status: 1): no database"],
    );
}

#[test]
fn a_terminal_that_closes_ends_the_target_too() {
    let scene = Scene::new(silent(), "sleep 1000 & exec cat > /dev/null");
    let study = scene.command("2x2").stderr(Stdio::piped()).spawn().unwrap();
    until("two requests", || scene.service.requests() >= 2);
    // The shell may send one, and the kernel another.
    signal(&study, "HUP");
    signal(&study, "HUP");
    let output = study.wait_with_output().unwrap();
    assert_ends(&output, 130, &["stopped in 2x2 after 0 of 20 requests"]);
    assert!(scene.group_is_gone("pid"));
}

#[test]
fn a_terminal_that_closes_does_not_end_a_study_under_nohup() {
    let may_answer = Arc::new(AtomicBool::new(false));
    let answers = Arc::clone(&may_answer);
    let scene = Scene::of(StandIn::counting(
        |received| metrics(REQUESTS, received),
        move |_, request| {
            until("it may answer", || answers.load(SeqCst));
            answer(request)
        },
    ));
    let mut nohup = with_default_signals("nohup");
    nohup.arg(TALEA);
    let mut nohup = scene.with_arguments(nohup, "2x20");
    let study = nohup.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("two requests", || scene.service.requests() >= 2);
    signal(&study, "HUP");
    may_answer.store(true, SeqCst);
    assert_ends(&study.wait_with_output().unwrap(), 0, &[]);
}

#[test]
fn an_impossible_study_is_named_before_anything_is_started() {
    let scene = Scene::counting();
    let scenario = scene.path("shop.toml");
    fs::write(&scenario, "[[step]]\nmethod = \"GET\"\npath = \"/{order}\"\n").unwrap();
    let output = scene.command("1x1").arg("--scenario").arg(&scenario).output().unwrap();
    let words = "shop.toml:3: found {order}, which is neither a variable";
    assert!(stderr(&output).contains(words), "{}", stderr(&output));
    for (cases, word) in [
        ("A,Z", "unknown case \"Z\"; known are A (10x20)"),
        ("0x5", "0 clients"),
        ("A,B,A", "--cases has A twice"),
        ("", "unknown case \"\""),
    ] {
        scene.study(cases, &[], 2, &[word]);
    }
    assert!(!scene.path("pid").exists() && scene.files_in_out() == 0);
    assert_eq!(scene.service.connections(), 0);
}

#[test]
fn a_thousand_clients_under_a_hard_limit_of_1024_name_the_limit() {
    let scene = Scene::counting();
    let program = scene.path("stand-in");
    let script = format!(
        "ulimit -n 1024; exec {TALEA} study --cases A,C --api {} --out {}",
        program.display(),
        scene.path("out").display()
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let words = ["1,000 clients need 1,064", "may open 1,024", "ulimit -n 1064"];
    assert_ends(&output, 2, &words);
    assert!(!scene.path("pid").exists());
}

#[test]
fn a_folder_that_cannot_be_written_to_is_named_before_anything_is_started() {
    let scene = Scene::counting();
    fs::write(scene.path("out"), "a file").unwrap();
    scene.study("1x1", &[], 2, &["--out DIR"]);
    assert!(!scene.path("pid").exists());
}

#[test]
fn a_full_disk_is_reported_and_leaves_no_half_of_a_report() {
    let variants = ["--rounds=1", "--ab", "V=1", "V=2"];
    for more in [&[][..], &variants] {
        let scene = Scene::counting();
        fs::create_dir(scene.path("out")).unwrap();
        let out = scene.path("out").display().to_string();
        let mut study = scene.command("2x2");
        study.args(more);
        let words = std::iter::once(study.get_program()).chain(study.get_args());
        let quoted: Vec<_> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
        // Room for a file, and not for a report.
        let script = format!(
            "mount -t tmpfs -o size=16k none '{out}' && {{ {}; status=$?; \
             echo left: $(find '{out}' -type f); exit $status; }}",
            quoted.join(" ")
        );
        let mut unshare = Command::new("unshare");
        if Command::new("id").arg("-u").output().unwrap().stdout != b"0\n" {
            unshare.arg("--map-root-user");
        }
        let output = unshare.args(["--mount", "sh", "-c", &script]).output().unwrap();
        let stdout = stdout(&output);
        let words = ["the report cannot be written to", "No space left on device"];
        assert_ends(&output, 2, &words);
        assert!(stdout.contains(" 2x2 "), "what was found is still shown: {stdout}");
        assert!(stdout.ends_with("left:\n"), "{stdout}");
        assert!(scene.child_is_gone());
    }
}

#[test]
fn names_of_metrics_come_with_the_scenario() {
    let scene = Scene::of(service("hits_total"));
    let scenario = scene.path("hits.toml");
    let steps = "[[step]]\nmethod = \"GET\"\n";
    let metrics = "[metrics]\nrequests = 'hits_total{status=\"2xx\"}'\ntasks = \"\"\n";
    fs::write(&scenario, format!("{steps}{metrics}")).unwrap();
    let output = scene.command("2x3").arg("--scenario").arg(&scenario).output().unwrap();
    assert_ends(&output, 0, &[]);
    let server = &scene.report()["cases"][0]["server"];
    assert_eq!(server["requests_received"], 6);
    assert!(server["peak_additional_tasks"].is_null(), "it was said to have none");
    assert_eq!(server["peak_ready_tasks"], 3);
}

#[test]
fn a_command_before_a_case_runs_before_each() {
    let scene = Scene::counting();
    let log = scene.path("log");
    let command = format!("echo emptied >> '{}'", log.display());
    scene.study("1x1,2x1", &["--before-case", &command], 0, &[]);
    assert_eq!(fs::read_to_string(log).unwrap(), "emptied\nemptied\n");
    let failing = ["--before-case", "echo no luck >&2; exit 3"];
    scene.study("1x1", &failing, 2, &["no luck"]);
}

/// A started service may accept connections before it answers.
#[test]
fn a_command_before_a_case_may_restart_the_service() {
    let restarts = tempfile::tempdir().unwrap();
    let began = restarts.path().join("began");
    let unreadable = [AtomicU64::new(3), AtomicU64::new(3)];
    let is_starting = {
        let began = began.clone();
        move || {
            let left = &unreadable[usize::from(began.exists())];
            left.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1)).is_ok()
        }
    };
    let received = AtomicU64::new(0);
    let scene = Scene::of(StandIn::start(move |request| match request.path.as_str() {
        "/study/reset" => Reply::Answer(204, String::new()),
        "/metrics" if is_starting() => Reply::Close,
        "/metrics" => Reply::Answer(200, metrics(REQUESTS, received.load(SeqCst))),
        _ => {
            received.fetch_add(1, SeqCst);
            answer(request)
        }
    }));
    let command = format!("touch '{}'", began.display());
    scene.study("1x1", &["--before-case", &command], 0, &[]);
    assert_eq!(scene.report()["cases"][0]["server"]["requests_received"], 5);
}

#[test]
fn a_metrics_page_may_have_a_slash_at_its_end() {
    let service = StandIn::start(|request| match request.path.as_str() {
        "/metrics/" => Reply::Answer(200, metrics(REQUESTS, 0)),
        "/metrics" => Reply::Answer(307, String::new()),
        _ => answer(request),
    });
    let study = StudyOutput::of(&service.url(), &(service.metrics_url() + "/"), "1x1", &[]);
    assert!(study.table.contains("the server counted 0"), "{}", study.table);
}

#[test]
fn a_metrics_page_may_have_a_query() {
    const QUERY: &str = "?name[]=http_requests_total&name[]=a%20b";
    let service = StandIn::start(|request| match request.path.split_at_checked(8) {
        Some(("/metrics", QUERY)) => Reply::Answer(200, metrics(REQUESTS, 0)),
        Some(("/metrics", _)) => Reply::Answer(404, String::new()),
        _ => answer(request),
    });
    let metrics_url = service.metrics_url() + QUERY;
    let study = StudyOutput::of(&service.url(), &metrics_url, "1x1", &[]);
    assert!(study.table.contains("the server counted 0"), "{}", study.table);
    // A variant's own.
    let folder = tempfile::tempdir().unwrap();
    let (variant, out) = (format!("{} {metrics_url}", service.url()), folder.path());
    let arguments = ["study", "--cases=1x1", "--rounds=1", "--ab", &variant, &variant, "--out"];
    let output = talea([&arguments[..], &[out.to_str().unwrap()]].concat());
    let stderr = assert_ends(&output, 1, &["received 0"]);
    assert!(!stderr.contains("error"), "{stderr}");
}

#[test]
fn a_warm_up_is_not_counted() {
    let scene = Scene::counting();
    scene.study("2x5", &["--warm-up", "300ms"], 0, &[]);
    let report = scene.report();
    let (client, server) = (&report["cases"][0]["client"], &report["cases"][0]["server"]);
    let counts = (&client["requests_sent"], &server["requests_received"]);
    assert_eq!(counts, (&json!(50), &json!(50)));
    let heat = client["times"]["heat"]["counts"].as_array().unwrap().iter();
    let answers = heat.flat_map(|slice| slice.as_array().unwrap()).map(|it| it.as_u64().unwrap());
    assert_eq!(answers.sum::<u64>(), 50);
    assert!(scene.service.requests() > 100, "it was warmed up: {}", scene.service.requests());
}

#[test]
fn services_of_other_makes_are_read_by_their_own_names() {
    // Such a service has a series only once there is something to count.
    let phoenix = |received: u64| match received {
        0 => String::new(),
        _ => format!(
            "cowboy_request_duration_milliseconds_sum {}\n\
             cowboy_request_duration_milliseconds_count{{status=\"200\"}} {received}\n\
             erlang_vm_system_counts_process_count {}\nerlang_vm_run_queue_total 3\n",
            received * 4,
            300 + received,
        ),
    };
    let opentelemetry = |received: u64| match received {
        0 => String::new(),
        _ => format!(
            "http_server_request_duration_seconds_sum {}\n\
             http_server_request_duration_seconds_count{{http_route=\"/x\"}} {received}\n\
             process_memory_usage_bytes 4096\n",
            received as f64 * 0.004,
        ),
    };
    let studied = |names: &str, metrics: fn(u64) -> String| {
        let service = StandIn::counting(metrics, |_, request| answer(request));
        let (url, metrics) = (service.url(), service.metrics_url());
        let mut study = StudyOutput::of(&url, &metrics, "3x4", &["--names", names]);
        assert_eq!(study.status, 0, "{}", study.table);
        let server = study.report["cases"][0]["server"].take();
        assert_eq!(server["requests_received"], 60, "{names}");
        let mean = server["mean_response_ms"].as_f64().unwrap();
        assert!((mean - 4.0).abs() < 1e-6, "{names}: {mean}");
        server
    };
    let server = studied("phoenix", phoenix);
    // It has no high-water marks: these are of samples, if there was one meanwhile.
    let is_sampled = server["unsampled"] == false;
    for (peak, of_samples) in [("peak_additional_tasks", 60), ("peak_ready_tasks", 3)] {
        assert_eq!(server[peak].as_u64(), is_sampled.then_some(of_samples), "{peak}");
    }
    let server = studied("opentelemetry", opentelemetry);
    assert!(server["peak_additional_tasks"].is_null());
    assert_eq!(server["peak_memory_bytes"], 4096);
}

/// A service under the names of Phoenix that counts scrapes too: before it answers them, or after. It counts each
/// `twice`-th request of the clients a second time.
fn counting_scrapes(before: bool, twice: u64) -> StandIn {
    let (received, sent) = (AtomicU64::new(0), AtomicU64::new(0));
    StandIn::start(move |request| {
        let before_it = received.fetch_add(1, SeqCst);
        if request.path == "/metrics" {
            let counted = before_it + u64::from(before);
            let name = "cowboy_request_duration_milliseconds";
            return Reply::Answer(200, format!("{name}_count {counted}\n{name}_sum {counted}\n"));
        }
        if twice > 0 && sent.fetch_add(1, SeqCst) % twice == 0 {
            received.fetch_add(1, SeqCst);
        }
        answer(request)
    })
}

#[test]
fn a_service_that_counts_its_scrapes_agrees_with_its_clients() {
    for before in [true, false] {
        let service = counting_scrapes(before, 0);
        let names = ["--names", "phoenix"];
        let studied = StudyOutput::of(&service.url(), &service.metrics_url(), "2x100", &names);
        let (server, table) = (&studied.report["cases"][0]["server"], &studied.table);
        assert_eq!(studied.status, 0, "{table}");
        let scrapes = server["scrapes_counted"].as_u64().unwrap();
        assert_eq!(server["requests_received"], 1_000 + scrapes, "{table}");
        let words = format!("that the server counted, {scrapes} ");
        assert!(table.contains(&words) && table.contains(" of its metrics, which it counts too"));
        assert!(studied.page.contains("received, since the service counts them."));
        assert!(!studied.page.contains("are not counted as requests"));
    }
}

#[test]
fn a_service_that_counts_more_than_its_scrapes_disagrees_with_its_clients() {
    // 100 of 1,000 requests are counted twice: more than there are scrapes in a case so short.
    let service = counting_scrapes(true, 10);
    let names = ["--names", "phoenix"];
    let studied = StudyOutput::of(&service.url(), &service.metrics_url(), "2x100", &names);
    assert_eq!(studied.status, 1, "{}", studied.table);
    assert!(studied.table.contains("more than were sent"), "{}", studied.table);
}
