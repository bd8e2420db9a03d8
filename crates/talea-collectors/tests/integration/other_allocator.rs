//! The error for a program that has jemalloc and does not allocate with it.

use talea::Registry;

#[test]
fn a_program_with_another_allocator_gets_an_error_and_shows_nothing() {
    let registry = Registry::for_test().expect("a registry");
    let error = talea_collectors::jemalloc::register(&registry).unwrap_err().to_string();
    assert!(error.contains("jemalloc_allocated_bytes"), "{error}");
    assert!(error.contains("#[global_allocator]"), "{error}");
    assert!(registry.snapshot().family("jemalloc_allocated_bytes").is_none());
}
