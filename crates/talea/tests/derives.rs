//! What the derives refuse, with messages that name the field and the remedy, and
//! that they take all else.

#[test]
#[cfg_attr(miri, ignore = "it compiles programs")]
fn misuse_is_refused_with_a_remedy() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/derives/all_choices.rs");
    for of in ["label", "value", "metric", "family"] {
        cases.compile_fail(format!("tests/derives/{of}*.rs"));
    }
}
