//! `talea run` and `talea serve --keep-dead`: jobs, and their regions after them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use talea::Snapshot;
use talea::outside::Reader;

use crate::support::agent::Agent;
use crate::support::region_folder::{RegionFolder, count_orders};
use crate::support::{TALEA, assert_ends, sample, signal, stderr, stdout, talea, until};

fn snapshot(region: &Path) -> Snapshot {
    Reader::open(region).unwrap().look().unwrap().snapshot
}

/// A metric of a job, by what follows `talea_job_`.
fn value(region: &Path, name: &str, labels: &[(&str, &str)]) -> f64 {
    let name = format!("talea_job_{name}");
    snapshot(region).value(&name, labels).unwrap_or_else(|| panic!("{name} {labels:?}"))
}

#[test]
fn a_run_ends_as_its_command_does_and_leaves_how_it_ended() {
    let folder = RegionFolder::new();
    let region = folder.at("job.talea");
    let plain = folder.at("plain");
    fs::write(&plain, "no program").unwrap();
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o600)).unwrap();
    let plain = plain.display().to_string();
    let cases: [(&[&str], i32, &str); 6] = [
        (&["sh", "-c", "exit 0"], 0, "success"),
        (&["sh", "-c", "exit 7"], 7, "failure"),
        (&["sh", "-c", "kill -KILL $$"], 137, "signal"),
        (&["no-such-command"], 127, "not_started"),
        (&[&plain], 126, "not_started"),
        (&["true"], 0, "success"),
    ];
    let dir = folder.0.path().display().to_string();
    let mut success = 0.0;
    for (n, (command, code, outcome)) in cases.iter().enumerate() {
        let arguments = ["run", "--region", &dir, "--name", "job", "--"];
        let output = talea(arguments.iter().chain(*command));
        assert_eq!(output.status.code(), Some(*code), "{command:?}: {output:?}");
        let is_started = *outcome != "not_started";
        assert_eq!(stderr(&output).is_empty(), is_started, "{output:?}");
        assert_eq!(value(&region, "exit_code", &[]), f64::from(*code), "{command:?}");
        let earlier = cases[..n].iter().filter(|(_, _, other)| other == outcome).count();
        let runs = value(&region, "runs_total", &[("outcome", outcome)]);
        assert_eq!(runs, (earlier + 1) as f64, "{command:?}: runs add up");
        let [start, end, last] = ["start", "end", "success"]
            .map(|name| value(&region, &format!("{name}_timestamp_seconds"), &[]));
        assert!(start <= end && value(&region, "duration_seconds", &[]) >= 0.0);
        assert_eq!(last == end, *code == 0, "{command:?}");
        assert!(last >= success);
        success = last;
    }
}

#[test]
fn a_run_records_what_its_command_used_beside_what_that_counted() {
    let folder = RegionFolder::new();
    let dir = folder.0.path().display().to_string();
    let script = "echo $TALEA_REGION; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
    let output = talea(["run", "--region", &dir, "sh", "-c", script]);
    assert_ends(&output, 0, &[]);
    let region = folder.at("sh.talea");
    assert_eq!(stdout(&output), format!("{}\n", region.display()), "it goes by the command's name");
    assert!(value(&region, "cpu_seconds", &[]) > 0.0);
    assert!(value(&region, "peak_memory_bytes", &[]) > 100_000.0);
    // A command that counts itself adds to the same region.
    let (_registry, _) = count_orders(&region, 3);
    assert_eq!(snapshot(&region).value("orders_total", &[]), Some(3.0));
    assert_eq!(value(&region, "exit_code", &[]), 0.0);
}

#[test]
fn a_signal_goes_on_to_the_command() {
    let folder = RegionFolder::new();
    let script = "trap 'exit 9' TERM; trap 'echo first' USR1; echo ready; \
                  while :; do sleep 0.02; done";
    let mut child = Command::new(TALEA)
        .args(["run", "--name", "job", "--region"])
        .arg(folder.0.path())
        .args(["--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    assert_eq!(value(&folder.at("job.talea"), "running", &[]), 1.0);
    signal(&child, "USR1");
    assert_eq!(lines.next().unwrap().unwrap(), "first");
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(9));
    assert_eq!(value(&folder.at("job.talea"), "exit_code", &[]), 9.0);
}

#[test]
fn a_job_runs_without_a_region_if_there_can_be_none() {
    let output = talea(["run", "--region", "/no/such/folder", "sh", "-c", "exit 3"]);
    assert_ends(&output, 3, &["/no/such/folder", "the command runs without a region"]);
    let output = talea(["run", "--name", "a/b", "true"]);
    assert_ends(&output, 2, &["a file name, without /"]);
}

#[test]
fn the_region_of_a_dead_job_is_served_for_its_time_and_then_goes() {
    let folder = RegionFolder::new();
    let dir = folder.0.path().display().to_string();
    assert_ends(&talea(["run", "--region", &dir, "sh", "-c", "exit 7"]), 7, &[]);
    let (_alive, _) = count_orders(&folder.region(), 3);
    let named = RegionFolder::new();
    let named_dir = named.0.path().display().to_string();
    assert_ends(&talea(["run", "--region", &named_dir, "true"]), 0, &[]);
    let named_file = named.at("true.talea").display().to_string();
    let agent = Agent::start(["--dir", &dir, &named_file]);
    agent.until("/metrics", |answer| {
        let page = answer.text();
        sample(&page, "talea_job_exit_code{region=\"sh\"}") == Some(7)
            && sample::<f64>(&page, "talea_region_dead_since_timestamp_seconds{region=\"sh\"}")
                .is_some_and(|since| since > 1e9)
    });
    assert!(folder.at("sh.talea").exists(), "it stays where no time is set");
    drop(agent);
    let agent = Agent::start(["--dir", &dir, &named_file, "--keep-dead", "1ms"]);
    agent.says("sh: gone");
    assert!(!folder.at("sh.talea").exists());
    let left: Vec<_> = fs::read_dir(folder.0.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing is left of it: {left:?}");
    until("the page has it no more", || !agent.scrape().contains("region=\"sh\""));
    let page = agent.scrape();
    assert!(page.contains("orders_total{region=\"shop\"} 3"), "a living one stays");
    assert!(!page.contains("dead_since_timestamp_seconds{region=\"shop\"}"), "{page}");
    assert!(named.at("true.talea").exists(), "a file that was named stays");
}
