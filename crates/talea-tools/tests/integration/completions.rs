//! Claims about completions, manual pages and the page of the book: they know every command.

use std::path::Path;
use std::process::Command;

use crate::support::{TALEA, assert_ends, done, talea};

/// The names of all commands, as the help has them.
fn commands() -> Vec<String> {
    let help = done(&["--help"]);
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    let names: Vec<String> = names.filter(|name| *name != "help").map(str::to_owned).collect();
    assert!(names.len() >= 5, "{names:?}");
    names
}

#[test]
fn each_shell_completes_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let text = done(&["completions", shell]);
        for command in commands() {
            assert!(text.contains(&command), "{shell}: {command}");
        }
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    done(&["man", pages.to_str().unwrap()]);
    for command in commands() {
        let page = std::fs::read_to_string(pages.join(format!("talea-{command}.1"))).unwrap();
        assert!(page.contains(".SH OPTIONS") && page.contains("help"), "{command}: {page}");
    }
    let whole = std::fs::read_to_string(pages.join("talea.1")).unwrap();
    assert!(commands().iter().all(|command| whole.contains(command)), "{whole}");
}

#[test]
fn the_book_has_the_help_of_every_command() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let script = repository.join("scripts/commands-page");
    let output = Command::new(script).arg(TALEA).output().unwrap();
    let expected = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && commands().iter().all(|name| expected.contains(name)));
    let page = std::fs::read_to_string(repository.join("docs/reference/commands.md")).unwrap();
    assert!(page == expected, "docs/reference/commands.md is not current; it says how to write it");
}

#[test]
fn completions_and_pages_that_cannot_be_written_are_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = Command::new(TALEA).args(["completions", "bash"]).stdout(full).output().unwrap();
    assert_ends(&output, 2, &["cannot be written"]);
    let output = talea(["man", "/proc/nowhere"]);
    assert_ends(&output, 2, &["/proc/nowhere", "name a folder"]);
}
