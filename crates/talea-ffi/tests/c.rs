//! Claims about the library, most of them programs in C in `tests/c`.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod support;

use std::path::Path;
use std::process::Command;

use support::{Linked, STRICT, built, compile, here, link, run, runs, shm};
use tempfile::TempDir;

/// Claims that one program without arguments proves.
macro_rules! programs {
    ($($claim:ident: $program:literal, $linked:ident;)*) => {
        $(#[test]
        fn $claim() {
            runs($program, Linked::$linked, &[]);
        })*
    };
}
programs! {
    each_kind_of_metric_is_read_as_it_was_recorded: "counting", Shared;
    each_mistake_has_its_status: "refusals", Shared;
    a_summary_that_keeps_samples_shows_its_window_to_any_reader: "samples", Shared;
    a_program_that_links_the_library_statically_works_too: "counting", Static;
    threads_that_count_register_and_read_at_once_lose_nothing: "threads", Shared;
    a_child_made_by_fork_needs_no_preparation: "forks", Shared;
    updates_without_room_count_in_the_overflow_series: "full", Shared;
    recording_allocates_nothing: "allocations", Shared;
    a_series_that_is_released_leaves_its_place_to_others: "releasing", Shared;
    other_code_adds_to_the_words_of_a_series_and_nothing_is_lost: "words", Shared;
    threads_add_to_planes_that_they_borrow_and_nothing_is_lost: "planes", Shared;
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
fn a_file_has_the_limits_and_the_readers_of_its_options() {
    let shm = shm();
    let [one, other] = ["one.talea", "other.talea"].map(|name| shm.path().join(name));
    runs("files", Linked::Shared, &[one.as_os_str(), other.as_os_str()]);
}

#[test]
fn label_sets_that_many_processes_create_at_once_are_all_kept() {
    let shm = shm();
    runs("crowd", Linked::Shared, &[shm.path().join("crowd.talea").as_os_str()]);
}

#[test]
fn a_library_that_is_closed_keeps_working() {
    let folder = TempDir::new().unwrap();
    let source = here().join("tests/c/closed.c");
    // The host gets the library only by loading it.
    let host = compile(&source, folder.path(), Linked::Not, &["-DTALEA_LOADED"]);
    let hosted = |library: &Path| {
        run(Command::new("timeout").arg("60").arg(&host).arg(library));
    };
    let library = built().join("libtalea_ffi.so");
    hosted(&library);
    let said = run(Command::new("readelf").arg("--dynamic").arg(&library));
    assert!(said.contains("NODELETE"), "{said}");

    // A plugin with the library linked in, as an extension may be: only the library keeps it loaded.
    let plugin = folder.path().join("plugin.so");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-pthread", "-o"]).arg(&plugin);
    for name in [
        "talea_open",
        "talea_register",
        "talea_series_keep",
        "talea_series_record",
        "talea_render_begin",
    ] {
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
        eprintln!("valgrind is missing; skipped");
        return;
    }
    let folder = TempDir::new().unwrap();
    for name in ["counting", "refusals", "full", "releasing"] {
        let source = here().join("tests/c").join(name).with_extension("c");
        let program = compile(&source, folder.path(), Linked::Shared, &[]);
        // Memory that is kept until the end is reachable. The thread that keeps windows has memory
        // that only seems lost.
        let mut valgrind = Command::new("timeout");
        valgrind.args(["500", "valgrind", "--quiet", "--error-exitcode=9", "--leak-check=full"]);
        run(valgrind
            .args(["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"])
            .arg(program));
    }
}

/// The first block of a kind in a document.
fn block<'a>(document: &'a str, kind: &str) -> &'a str {
    let (_, rest) = document.split_once(&format!("```{kind}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_example_of_the_guide_prints_the_output_beside_it() {
    let document =
        std::fs::read_to_string(here().join("../../docs/reference/bindings.md")).unwrap();
    let folder = TempDir::new().unwrap();
    let source = folder.path().join("example.c");
    std::fs::write(&source, block(&document, "c")).unwrap();
    for linked in [Linked::Shared, Linked::Static] {
        let program = compile(&source, folder.path(), linked, &[]);
        assert_eq!(run(&mut Command::new(program)), block(&document, "text"));
    }
}
