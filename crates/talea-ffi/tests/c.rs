//! Claims about the library, each a program in C: see `tests/c`.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod stage;

use std::path::Path;
use std::process::Command;

use stage::{Linked, STRICT, built, compile, here, link, run, runs, shm};
use tempfile::TempDir;

#[test]
fn each_kind_of_metric_counts_and_is_read_as_it_was_counted() {
    runs("counting", Linked::Shared, &[]);
}

#[test]
fn what_is_wrong_is_answered_by_its_status() {
    runs("refusals", Linked::Shared, &[]);
}

#[test]
fn a_summary_that_keeps_samples_tells_its_window_to_any_reader() {
    runs("samples", Linked::Shared, &[]);
}

#[test]
fn a_program_that_has_the_library_inside_does_the_same() {
    runs("counting", Linked::Static, &[]);
}

#[test]
fn threads_that_count_register_and_read_at_once_lose_nothing() {
    runs("threads", Linked::Shared, &[]);
}

#[test]
fn a_child_made_by_fork_goes_on_and_need_do_nothing() {
    runs("forks", Linked::Shared, &[]);
}

#[test]
fn processes_that_do_not_fork_from_one_parent_count_in_one_file() {
    let shm = shm();
    let file = shm.path().join("shared.talea");
    for amount in ["20000", "300"] {
        runs("shared", Linked::Shared, &[file.as_os_str(), amount.as_ref()]);
    }
    let page = runs("shared", Linked::Static, &[file.as_os_str(), "0".as_ref()]);
    for line in ["{who=\"20000\"} 20000", "{who=\"300\"} 300", "{who=\"all\"} 20300"] {
        assert!(page.contains(&format!("jobs_total{line}\n")), "{line}: {page}");
    }
    assert!(page.contains("busy 0\n"), "{page}");
}

#[test]
fn a_file_has_the_limits_and_the_readers_that_were_asked_for() {
    let shm = shm();
    let [one, other] = ["one.talea", "other.talea"].map(|name| shm.path().join(name));
    runs("files", Linked::Shared, &[one.as_os_str(), other.as_os_str()]);
}

#[test]
fn no_label_set_is_lost_that_many_processes_meet_at_once() {
    let shm = shm();
    runs("crowd", Linked::Shared, &[shm.path().join("crowd.talea").as_os_str()]);
}

#[test]
fn what_there_is_no_room_for_is_counted_in_the_overflow_series() {
    runs("full", Linked::Shared, &[]);
}

#[test]
fn counting_allocates_nothing() {
    runs("allocations", Linked::Shared, &[]);
}

#[test]
fn a_library_that_is_closed_stays_and_goes_on() {
    let folder = TempDir::new().unwrap();
    let source = here().join("tests/c/closed.c");
    // It must not have the library otherwise than by loading it.
    let host = compile(&source, folder.path(), Linked::Not, &["-DTALEA_LOADED"]);
    let hosted = |library: &Path| {
        run(Command::new("timeout").arg("60").arg(&host).arg(library));
    };
    let library = built().join("libtalea_ffi.so");
    hosted(&library);
    let said = run(Command::new("readelf").arg("--dynamic").arg(&library));
    assert!(said.contains("NODELETE"), "{said}");

    // A plugin that has the library inside, as an extension may: nothing but the library says
    // that it stays.
    let plugin = folder.path().join("plugin.so");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-pthread", "-o"]).arg(&plugin);
    for name in
        ["talea_open", "talea_register", "talea_series_keep", "talea_series_record", "talea_render"]
    {
        cc.arg(format!("-Wl,-u,{name}"));
    }
    link(&mut cc, Linked::Static);
    run(&mut cc);
    hosted(&plugin);
}

#[test]
fn the_header_is_c99_and_cpp17_and_needs_nothing_before_it() {
    let folder = TempDir::new().unwrap();
    let header = here().join("include/talea.h");
    for (compiler, standard) in
        [("cc", "c99"), ("cc", "c11"), ("cc", "c17"), ("c++", "c++17"), ("c++", "c++20")]
    {
        let language = if compiler == "cc" { "c" } else { "c++" };
        let mut check = Command::new(compiler);
        check.arg(format!("-std={standard}")).args(STRICT).args(["-fsyntax-only", "-x", language]);
        run(check.arg(&header));
    }
    let program = folder.path().join("header");
    let mut compiler = Command::new("c++");
    compiler.arg("-std=c++17").args(STRICT).arg("-I").arg(here().join("include"));
    compiler.arg(here().join("tests/c/header.cpp")).arg("-o").arg(&program);
    link(&mut compiler, Linked::Shared);
    run(&mut compiler);
    run(&mut Command::new(program));
}

#[test]
fn valgrind_finds_nothing() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("valgrind is missing, so this is not tried");
        return;
    }
    let folder = TempDir::new().unwrap();
    for name in ["counting", "refusals", "full"] {
        let source = here().join("tests/c").join(name).with_extension("c");
        let program = compile(&source, folder.path(), Linked::Shared, &[]);
        // What is kept until the end is reachable, and no leak; a thread that keeps windows has
        // memory that only seems lost.
        let mut valgrind = Command::new("timeout");
        valgrind.args(["500", "valgrind", "--quiet", "--error-exitcode=9", "--leak-check=full"]);
        run(valgrind
            .args(["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"])
            .arg(program));
    }
}
