//! Where the numbers come from.

use maud::{Markup, html};
use talea_statistics::figures::{NONE, bytes, counted};

use crate::study::Study;

/// The machine, the versions, and the command that does it again.
pub(super) fn section(study: &Study) -> Markup {
    let machine = &study.machine;
    let memory = machine.memory_bytes.map_or(NONE.to_owned(), bytes);
    let mut rows = vec![
        ("Processor", format!("{}, {}", machine.cpu_model, counted(machine.cores, "core"))),
        ("Memory", memory),
        ("System", format!("{}, {}, {}", machine.os, machine.kernel, machine.architecture)),
        ("Talea", format!("{}, {} build", study.versions.talea, study.versions.build)),
        ("Service", format!("{} ({})", study.subject, study.versions.subject)),
        ("Scenario", format!("{}: {}", study.scenario, study.steps.join(", "))),
        ("Protocol", study.protocol.clone()),
        ("Begun", study.begun.clone()),
    ];
    if study.cases.iter().any(|case| case.server.is_some()) {
        let (every, scrapes) = (study.sampled_every_ms, counted(study.scrapes, "scrape"));
        let sampled = format!("every {every} ms and at the end of each case, {scrapes} in all");
        rows.push(("Sampled", sampled));
    }
    if !study.missing_metrics.is_empty() {
        rows.push(("Not reported", study.missing_metrics.join(", ")));
    }
    html! {
        section {
            h2 { "Where this comes from" }
            dl.card.provenance {
                @for (name, value) in rows { div { dt { (name) } dd { (value) } } }
                div { dt { "Again" } dd { code { (study.command) } } }
            }
            p.note {
                @if study.started { "Clients and server share the machine. " }
                "Response times at the clients run from the start of a request to the end of the \
                 response's body, without connecting, and if requests arrive at a rate, from when \
                 they were due; those of the server are its own measurement. All numbers and \
                 series are in " code { "report.json" } "."
            }
        }
    }
}
