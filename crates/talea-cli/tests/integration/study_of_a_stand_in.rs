//! `talea study`: the real program against a stand-in whose metrics the test decides.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::stand_in::{Reply, Request, StandIn, as_expected};
use crate::support::{TALEA, interrupt, json_file, stderr, stdout, until};

/// The behaviour of the stand-in, and of its metrics.
#[derive(Clone, Copy)]
struct Behaviour {
    /// Whether it answers requests at all.
    answers: bool,
    /// The name of the metric of requests.
    requests: &'static str,
}

const TRUTH: Behaviour = Behaviour { answers: true, requests: "http_requests_total" };

fn service(behaviour: Behaviour) -> StandIn {
    let received = Arc::new(AtomicU64::new(0));
    StandIn::start(move |request: &Request| match request.path.as_str() {
        "/study/reset" => Reply::Answer(204, String::new()),
        "/metrics" => Reply::Answer(200, metrics(received.load(SeqCst), behaviour)),
        _ => {
            received.fetch_add(1, SeqCst);
            let (status, body) = as_expected(request);
            if behaviour.answers { Reply::Answer(status, body) } else { Reply::Silence }
        }
    })
}

fn metrics(received: u64, behaviour: Behaviour) -> String {
    format!(
        "{name}{{status=\"2xx\"}} {received}\n\
         http_request_duration_seconds_sum {}\n\
         http_request_duration_seconds_count {received}\n\
         server_tasks_alive 4\nserver_tasks_alive_peak 9\n\
         server_tasks_ready 0\nserver_tasks_ready_peak 3\nprocess_cpu_seconds_total {}\n",
        received as f64 * 0.004,
        received as f64 * 0.001,
        name = behaviour.requests,
    )
}

/// A folder with a program that says where the stand-in is, and then does as `then` says.
struct Scene {
    folder: TempDir,
}

impl Scene {
    fn new(service: &StandIn, then: &str) -> Self {
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
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, cases: &str) -> Command {
        let mut command = Command::new(TALEA);
        command.args(["study", "--cases", cases]).arg("--out").arg(self.path("out"));
        command.arg("--api").arg(self.path("stand-in"));
        command
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
}

const UNTIL_ITS_INPUT_ENDS: &str = "exec cat > /dev/null";

#[test]
fn both_sides_are_counted_and_reported() {
    let service = service(TRUTH);
    let scene = Scene::new(&service, UNTIL_ITS_INPUT_ENDS);
    let output = scene.command("3x4,10x2").output().unwrap();
    let (stdout, stderr) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stdout.contains("10x2") && stdout.contains("report.html"), "{stdout}");
    assert_eq!(service.requests(), 60 + 100);

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
fn the_page_is_one_file_without_script_and_escapes_its_input() {
    let service = service(TRUTH);
    let scene = Scene::new(&service, UNTIL_ITS_INPUT_ENDS);
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
    let service = service(Behaviour { requests: "hits_total", ..TRUTH });
    let scene = Scene::new(&service, UNTIL_ITS_INPUT_ENDS);
    let output = scene.command("1x1").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = stderr(&output);
    assert!(stderr.contains("no metric http_requests_total, also after a request"), "{stderr}");
    assert!(scene.child_is_gone());
}

#[test]
fn a_target_that_dies_is_quoted() {
    let service = service(Behaviour { answers: false, ..TRUTH });
    let scene = Scene::new(&service, "sleep 0.5; echo 'out of <luck>' >&2; exit 3");
    let output = scene.command("1x1,2x2").output().unwrap();
    let stderr = stderr(&output);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.contains("died") && stderr.contains("out of <luck>"), "{stderr}");
    assert!(stderr.contains("stopped in 1x1") && stderr.contains("not begun: 2x2"), "{stderr}");
    assert_eq!(scene.files_in_out(), 0);
}

#[test]
fn a_target_that_says_something_else_is_quoted() {
    let service = service(TRUTH);
    let scene = Scene::new(&service, "");
    fs::write(scene.path("stand-in"), "#!/bin/sh\necho hello\nexec cat\n").unwrap();
    let output = scene.command("1x1").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("\"hello\", expected \"items on"), "{}", stderr(&output));
}

#[test]
fn ctrl_c_leaves_no_child_and_no_report() {
    let service = service(Behaviour { answers: false, ..TRUTH });
    let scene = Scene::new(&service, UNTIL_ITS_INPUT_ENDS);
    let mut command = scene.command("2x2,A");
    let study = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("two requests", || service.requests() >= 2);
    assert!(!scene.child_is_gone());
    interrupt(&study);
    let output = study.wait_with_output().unwrap();
    let stderr = stderr(&output);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("stopped in 2x2 after 0 of 20 requests"), "{stderr}");
    assert!(stderr.contains("not begun: A") && stderr.contains("No report"), "{stderr}");
    assert!(scene.child_is_gone());
    assert_eq!(scene.files_in_out(), 0);
}

#[test]
fn an_impossible_study_is_named_before_anything_is_started() {
    let service = service(TRUTH);
    let scene = Scene::new(&service, UNTIL_ITS_INPUT_ENDS);
    let scenario = scene.path("shop.toml");
    fs::write(&scenario, "[[step]]\nmethod = \"GET\"\npath = \"/{order}\"\n").unwrap();
    let output = scene.command("1x1").arg("--scenario").arg(&scenario).output().unwrap();
    let words = "shop.toml:3: found {order}, which is no variable";
    assert!(stderr(&output).contains(words), "{}", stderr(&output));
    for (cases, word) in [
        ("A,Z", "unknown case \"Z\"; known are A (10x20)"),
        ("0x5", "0 clients"),
        ("A,B,A", "case A is there twice"),
        ("", "unknown case \"\""),
    ] {
        let output = scene.command(cases).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{cases}");
        assert!(stderr(&output).contains(word), "{cases}: {}", stderr(&output));
    }
    assert!(!scene.path("pid").exists() && scene.files_in_out() == 0);
    assert_eq!(service.connections(), 0);
}

#[test]
fn a_thousand_clients_under_a_hard_limit_of_1024_name_the_limit() {
    let service = service(TRUTH);
    let scene = Scene::new(&service, UNTIL_ITS_INPUT_ENDS);
    let program = scene.path("stand-in");
    let script = format!(
        "ulimit -n 1024; exec {TALEA} study --cases A,C --api {} --out {}",
        program.display(),
        scene.path("out").display()
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let stderr = stderr(&output);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.contains("1,024") && stderr.contains("ulimit -n"), "{stderr}");
    assert!(!scene.path("pid").exists());
}

#[test]
fn a_folder_that_cannot_be_written_to_is_named_before_anything_is_started() {
    let service = service(TRUTH);
    let scene = Scene::new(&service, UNTIL_ITS_INPUT_ENDS);
    fs::write(scene.path("out"), "a file").unwrap();
    let output = scene.command("1x1").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--out DIR"), "{}", stderr(&output));
    assert!(!scene.path("pid").exists());
}

#[test]
fn a_full_disk_is_reported_and_leaves_no_half_of_a_report() {
    let service = service(TRUTH);
    let scene = Scene::new(&service, UNTIL_ITS_INPUT_ENDS);
    fs::create_dir(scene.path("out")).unwrap();
    let out = scene.path("out").display().to_string();
    let study = scene.command("2x2");
    let words = std::iter::once(study.get_program()).chain(study.get_args());
    let quoted: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    // Room for a file, and not for a report.
    let script = format!(
        "mount -t tmpfs -o size=16k none '{out}' && {{ {}; status=$?; echo left: $(ls -A '{out}'); \
         exit $status; }}",
        quoted.join(" ")
    );
    let mut unshare = Command::new("unshare");
    if Command::new("id").arg("-u").output().unwrap().stdout != b"0\n" {
        unshare.arg("--map-root-user");
    }
    let output = unshare.args(["--mount", "sh", "-c", &script]).output().unwrap();
    let (stdout, stderr) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(2), "{stdout}{stderr}");
    assert!(stderr.contains("the report cannot be written to"), "{stderr}");
    assert!(stderr.contains("No space left on device"), "{stderr}");
    assert!(stdout.contains(" 2x2 "), "what was found is still shown: {stdout}");
    assert!(stdout.ends_with("left:\n"), "{stdout}");
    assert!(scene.child_is_gone());
}

#[test]
fn names_of_metrics_come_with_the_scenario() {
    let service = service(Behaviour { requests: "hits_total", ..TRUTH });
    let scene = Scene::new(&service, UNTIL_ITS_INPUT_ENDS);
    let scenario = scene.path("hits.toml");
    let steps = "[[step]]\nmethod = \"GET\"\n";
    let metrics = "[metrics]\nrequests = 'hits_total{status=\"2xx\"}'\ntasks = \"\"\n";
    fs::write(&scenario, format!("{steps}{metrics}")).unwrap();
    let output = scene.command("2x3").arg("--scenario").arg(&scenario).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let server = &scene.report()["cases"][0]["server"];
    assert_eq!(server["requests_received"], 6);
    assert!(server["peak_additional_tasks"].is_null(), "it was said to have none");
    assert_eq!(server["peak_ready_tasks"], 3);
}

#[test]
fn a_command_before_a_case_runs_before_each() {
    let service = service(TRUTH);
    let scene = Scene::new(&service, UNTIL_ITS_INPUT_ENDS);
    let log = scene.path("log");
    let command = format!("echo emptied >> '{}'", log.display());
    let output = scene.command("1x1,2x1").args(["--before-case", &command]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(log).unwrap(), "emptied\nemptied\n");
    let failing = ["--before-case", "echo no luck >&2; exit 3"];
    let output = scene.command("1x1").args(failing).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no luck"), "{}", stderr(&output));
}

#[test]
fn a_warm_up_is_not_counted() {
    let service = service(TRUTH);
    let scene = Scene::new(&service, UNTIL_ITS_INPUT_ENDS);
    let output = scene.command("2x5").args(["--warm-up", "300ms"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = scene.report();
    let (client, server) = (&report["cases"][0]["client"], &report["cases"][0]["server"]);
    assert_eq!((&client["requests_sent"], &server["requests_received"]), (&50.into(), &50.into()));
    let heat = client["times"]["heat"]["counts"].as_array().unwrap().iter();
    let answers = heat.flat_map(|slice| slice.as_array().unwrap()).map(|it| it.as_u64().unwrap());
    assert_eq!(answers.sum::<u64>(), 50);
    assert!(service.requests() > 100, "it was warmed up: {}", service.requests());
}

#[test]
fn services_of_other_makes_are_read_by_their_own_names() {
    let phoenix = |received: u64| {
        format!(
            "cowboy_request_duration_milliseconds_sum {}\n\
             cowboy_request_duration_milliseconds_count{{status=\"200\"}} {received}\n\
             erlang_vm_system_counts_process_count {}\nerlang_vm_run_queue_total 3\n",
            received * 4,
            300 + received,
        )
    };
    let opentelemetry = |received: u64| {
        format!(
            "http_server_request_duration_seconds_sum {}\n\
             http_server_request_duration_seconds_count{{http_route=\"/x\"}} {received}\n\
             process_memory_usage_bytes 4096\n",
            received as f64 * 0.004,
        )
    };
    type Metrics = fn(u64) -> String;
    for (names, metrics) in [("phoenix", phoenix as Metrics), ("opentelemetry", opentelemetry)] {
        let received = Arc::new(AtomicU64::new(0));
        let service = StandIn::start(move |request: &Request| match request.path.as_str() {
            "/metrics" => match received.load(SeqCst) {
                // Such a service has a series only once there is something to count.
                0 => Reply::Answer(200, String::new()),
                some => Reply::Answer(200, metrics(some)),
            },
            _ => {
                received.fetch_add(1, SeqCst);
                let (status, body) = as_expected(request);
                Reply::Answer(status, body)
            }
        });
        let out = tempfile::tempdir().unwrap();
        let output = Command::new(TALEA)
            .args(["study", "--cases", "3x4", "--names", names, "--url", &service.url()])
            .arg(format!("--metrics-url=http://{}/metrics", service.address))
            .arg("--out")
            .arg(out.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{names}: {}", stderr(&output));
        let report = json_file(&out.path().join("report.json"));
        let server = &report["cases"][0]["server"];
        assert_eq!(server["requests_received"], 60, "{names}");
        let mean = server["mean_response_ms"].as_f64().unwrap();
        assert!((mean - 4.0).abs() < 1e-6, "{names}: {mean}");
        match names {
            "phoenix" => {
                // It has no high-water marks: these are of samples, if there was one meanwhile.
                let of_samples = |value: u64| match server["unsampled"].as_bool() {
                    Some(false) => Value::from(value),
                    _ => Value::Null,
                };
                assert_eq!(server["peak_additional_tasks"], of_samples(60));
                assert_eq!(server["peak_ready_tasks"], of_samples(3));
            }
            _ => {
                assert!(server["peak_additional_tasks"].is_null());
                assert_eq!(server["peak_memory_bytes"], 4096);
            }
        }
    }
}
