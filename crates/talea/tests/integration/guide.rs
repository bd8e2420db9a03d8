//! Parts of the guide that its own examples cannot check.

use talea::{Counter, Family, Labels, Metrics};

#[derive(Labels)]
struct Sale<'a> {
    method: &'a str,
    country: &'a str,
}

#[derive(Metrics)]
#[metrics(prefix = "shop")]
struct Shop {
    /// Orders accepted.
    orders: Family<Sale<'static>, Counter>,
}

#[test]
fn a_failing_assertion_has_the_message_in_the_guide() {
    let (shop, registry) = Shop::for_test();
    for method in ["card", "cash"] {
        shop.orders.with(Sale { method, country: "pe" }).inc();
    }
    let snapshot = registry.snapshot();
    let asked = [("method", "card"), ("country", "ch")];
    let message = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        snapshot.assert_value("shop_orders_total", &asked, 1.0)
    }))
    .unwrap_err();
    let message = message.downcast::<String>().unwrap();
    let shown = include_str!("../../guide.md").contains(&format!("```text\n{message}\n```"));
    assert!(shown, "guide.md should show\n{message}");
}

#[test]
fn a_kept_handle_takes_the_memory_in_the_guide() {
    let (shop, registry) = Shop::for_test();
    let sale = || shop.orders.with(Sale { method: "card", country: "pe" });
    sale().inc();
    let taken = || registry.usage().single_cells.taken;
    let before = taken();
    sale().keep().inc();
    let bytes = taken() - before;
    let row = format!("| {bytes} bytes more if a label is dynamic |");
    assert!(include_str!("../../guide.md").contains(&row), "guide.md should have {row}");
    sale().keep().inc();
    assert_eq!(taken() - before, bytes, "a series notes once that it is kept");
}

#[test]
fn the_first_pages_have_the_lines_that_add_the_crates() {
    for (name, page) in [
        ("README.md", include_str!("../../../../README.md")),
        ("guide.md", include_str!("../../guide.md")),
        ("talea", include_str!("../../src/lib.rs")),
        ("talea-http", include_str!("../../../talea-http/src/lib.rs")),
    ] {
        for line in
            ["[dependencies]", "talea = \"0.1\" ", "cargo add talea\n", "cargo add talea-http"]
        {
            assert!(page.contains(line), "{name} should have {line:?}");
        }
    }
}

#[test]
fn the_guide_leads_to_the_common_questions_about_http_services() {
    let guide = include_str!("../../guide.md").to_lowercase();
    let answers = include_str!("../../../../docs/how-to/http.md");
    let (_, answers) = answers.split_once("\n## Common questions\n").unwrap();
    let (answers, _) = answers.split_once("\n## ").unwrap();
    let questions = answers.lines().filter_map(|line| line.strip_prefix("**")?.split_once("**"));
    for (question, _) in questions {
        let question = question.trim_end_matches('.').to_lowercase();
        assert!(guide.contains(&question), "guide.md should name {question}");
    }
    assert!(guide.contains("../../docs/how-to/http.md#common-questions"));
}
