//! The program's recorder: a second one is an error. A process has one, so this test is a binary of
//! its own.

use metrics::counter;
use talea::Registry;

#[test]
fn a_program_has_one_recorder() {
    let registry = Registry::for_test().unwrap();
    counter!("before").increment(1);
    talea_metrics::install(&registry).unwrap();
    let error = talea_metrics::install(&registry).unwrap_err();
    assert!(matches!(error, talea_metrics::Error::Installed), "{error}");

    counter!("jobs").increment(1);
    std::thread::spawn(|| counter!("jobs").increment(1)).join().unwrap();
    let snapshot = registry.snapshot();
    snapshot.assert_value("jobs_total", &[], 2.0);
    assert!(snapshot.family("before_total").is_none());
}
