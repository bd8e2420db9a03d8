//! The results of `talea load` and `talea study` where they are hard to write: full disks, closed
//! pipes, files of every kind.

use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::stand_in::{StandIn, answer};
use crate::support::{TALEA, assert_ends, printed_json};

/// Two clients that run the scenario once: 10 requests.
fn load(server: &StandIn) -> Command {
    let mut command = Command::new(TALEA);
    command.args(["load", &server.url(), "--scenario", "crud", "--json"]);
    command.args(["--clients", "2", "--iterations", "1"]);
    command
}

fn load_with_samples(server: &StandIn, path: &Path) -> Output {
    load(server).arg("--samples").arg(path).output().unwrap()
}

fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

#[test]
fn names_in_results_and_errors_cannot_control_a_terminal() {
    let server = StandIn::well_behaved();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scenario.toml");
    let evil = |output: Output| {
        let text = [output.stdout, output.stderr].concat();
        assert!(!text.contains(&0x1B), "{}", text.escape_ascii());
        assert!(text.windows(6).any(|part| part == br"\u{1b}"), "{}", text.escape_ascii());
    };
    let step = r#"name = "\u001b[2J"
        [[step]]
        name = "\u001b]0;one"
        method = "PATCH""#;
    for more in ["", "\n\"\\u001b[2J\" = 1"] {
        fs::write(&path, format!("{step}{more}")).unwrap();
        let load = ["load", &server.url(), "--clients", "1", "--iterations", "1", "--scenario"];
        evil(Command::new(TALEA).args(load).arg(&path).output().unwrap());
    }
    evil(Command::new(TALEA).args(["inspect", "/none/\u{1b}[2J"]).output().unwrap());
}

#[test]
fn a_load_whose_samples_cannot_be_written_does_not_begin() {
    let server = StandIn::well_behaved();
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().join("none/samples.csv"), folder.path().to_owned()] {
        let output = load_with_samples(&server, &path);
        assert_ends(&output, 2, &["cannot be written to", path.to_str().unwrap()]);
        assert_eq!(server.requests(), 0);
    }
}

#[test]
fn the_summary_is_printed_though_the_samples_cannot_be_written_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("gone");
    fs::create_dir(&gone).unwrap();
    let path = gone.join("samples.csv");
    let server = StandIn::start(move |request| {
        let _ = fs::remove_dir(&gone);
        answer(request)
    });
    let output = load_with_samples(&server, &path);
    assert_ends(&output, 2, &["the samples cannot be written to"]);
    assert_eq!(printed_json(&output)["requests_sent"], 10);
}

#[test]
fn samples_replace_a_file_and_no_pipe_or_link() {
    let server = StandIn::well_behaved();
    let folder = tempfile::tempdir().unwrap();
    let [pipe, link, file] = ["pipe", "link", "file"].map(|name| folder.path().join(name));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    fs::write(&file, "of an earlier load").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    let usual = mode(&file);
    symlink(&file, &link).unwrap();

    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe).unwrap()
    });
    assert!(load_with_samples(&server, &pipe).status.success());
    // A reader that the load never came to would wait for ever.
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    assert_eq!(reader.join().unwrap().lines().count(), 11);

    assert!(load_with_samples(&server, &link).status.success());
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 11);
    assert_eq!(mode(&file), usual, "others may read it as any file of this user");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn a_full_disk_behind_standard_output_is_an_error_in_words() {
    let server = StandIn::well_behaved();
    let output = load(&server).stdout(full()).output().unwrap();
    let stderr = assert_ends(&output, 2, &[]);
    assert!(stderr.starts_with("error: standard output: No space left"), "{stderr}");
}

#[test]
fn a_closed_pipe_ends_no_load_and_loses_no_samples() {
    let server = StandIn::well_behaved();
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("samples.csv");
    let mut command = load(&server);
    let mut child = command.arg("--samples").arg(&csv).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(fs::read_to_string(&csv).unwrap().lines().count(), 11);
}

#[test]
fn a_study_writes_its_report_whatever_becomes_of_its_output() {
    let server = StandIn::well_behaved();
    for (stdout, status) in [(Stdio::from(full()), 2), (Stdio::piped(), 0)] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(TALEA)
            .args([
                "study",
                "--cases",
                "1x1",
                "--scenario",
                "crud",
                "--url",
                &server.url(),
                "--out",
            ])
            .arg(folder.path())
            .stdout(stdout)
            .stderr(full())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(status));
        for name in ["report.json", "report.html"] {
            assert!(folder.path().join(name).is_file(), "{name}");
        }
    }
}
