//! Claims about the build information of this test itself.

use std::process::Command;
use talea::Registry;
use talea_collectors::build::{self, Build};
use talea_collectors::build_info;

/// A registry that shows a build.
fn registry(build: Build<'_>) -> Registry {
    let registry = Registry::for_test().expect("a registry");
    build::register(&registry, build).expect("the info");
    registry
}

/// A label of the only series of a metric.
fn label(registry: &Registry, metric: &str, label: &str) -> String {
    let snapshot = registry.snapshot();
    let mut found = snapshot.select(metric, &[]);
    let series = found.next().expect("a series");
    assert!(found.next().is_none(), "there is one more");
    series.label(label).expect("the label").to_owned()
}

#[test]
fn a_program_is_called_as_in_its_cargo_toml_and_its_revision_is_given_to_the_build() {
    let own = registry(build_info!());
    let version = label(&own, "talea_collectors_build_info", "version");
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    let revision = label(&own, "talea_collectors_build_info", "revision");
    assert_eq!(revision, option_env!("GIT_REVISION").unwrap_or_default());

    let shop = registry(Build::new("shop", "1.4.0").revision("f3a91c"));
    assert_eq!(label(&shop, "shop_build_info", "revision"), "f3a91c");
}

#[test]
fn the_compiler_is_the_one_that_compiled_this() {
    let registry = registry(Build::new("shop", "1.4.0"));
    let shown = label(&registry, "shop_build_info", "rustc");
    assert!(shown.starts_with("1."), "{shown}");
    if let Some(rustc) = option_env!("RUSTC") {
        let version = Command::new(rustc).arg("--version").output().expect("rustc runs").stdout;
        assert!(String::from_utf8_lossy(&version).contains(&shown));
    }
    let target = label(&registry, "shop_build_info", "target");
    assert!(target.starts_with(std::env::consts::ARCH), "{target}");
}

#[test]
fn a_version_that_is_registered_again_takes_the_place_of_the_one_before() {
    let registry = registry(Build::new("shop", "1.4.0"));
    build::register(&registry, Build::new("shop", "1.5.0")).expect("the info");
    assert_eq!(label(&registry, "shop_build_info", "version"), "1.5.0");
}

#[test]
fn a_name_that_no_metric_can_have_is_an_error() {
    let registry = Registry::for_test().expect("a registry");
    let error = build::register(&registry, Build::new("café", "1.4.0")).unwrap_err().to_string();
    assert!(error.contains("café_build_info"), "{error}");
}
