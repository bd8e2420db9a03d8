//! Claims about completions and manual pages: they know every command.

use std::process::Command;

use crate::support::TALEA;

fn talea(arguments: &[&str]) -> String {
    let output = Command::new(TALEA).args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The names of all commands, as the help has them.
fn commands() -> Vec<String> {
    let help = talea(&["--help"]);
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    let names: Vec<String> = names.filter(|name| *name != "help").map(str::to_owned).collect();
    assert!(names.len() >= 5, "{names:?}");
    names
}

#[test]
fn each_shell_completes_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let text = talea(&["completions", shell]);
        for command in commands() {
            assert!(text.contains(&command), "{shell}: {command}");
        }
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    talea(&["man", pages.to_str().unwrap()]);
    for command in commands() {
        let page = std::fs::read_to_string(pages.join(format!("talea-{command}.1"))).unwrap();
        assert!(page.contains(".SH OPTIONS") && page.contains("help"), "{command}: {page}");
    }
    let whole = std::fs::read_to_string(pages.join("talea.1")).unwrap();
    assert!(commands().iter().all(|command| whole.contains(command)), "{whole}");
}

#[test]
fn completions_that_cannot_be_written_are_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = Command::new(TALEA).args(["completions", "bash"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("cannot be written"), "{message}");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let output = Command::new(TALEA).args(["man", "/proc/nowhere"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("/proc/nowhere") && message.contains("name a folder"), "{message}");
}
