//! Claims about docs/bindings.md.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod stage;

use std::process::Command;

use stage::{Linked, compile, here, run};
use tempfile::TempDir;

/// What stands in the document between a line and the end of its block.
fn block<'a>(document: &'a str, kind: &str) -> &'a str {
    let (_, rest) = document.split_once(&format!("```{kind}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

#[test]
fn the_example_of_the_document_compiles_and_prints_what_it_says() {
    let document = std::fs::read_to_string(here().join("../../docs/bindings.md")).unwrap();
    let folder = TempDir::new().unwrap();
    let source = folder.path().join("example.c");
    std::fs::write(&source, block(&document, "c")).unwrap();
    for linked in [Linked::Shared, Linked::Static] {
        let program = compile(&source, folder.path(), linked, &[]);
        assert_eq!(run(&mut Command::new(program)), block(&document, "text"));
    }
}
