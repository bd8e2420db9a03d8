//! `talea inspect`: the real program on regions that the real items API counts in.

use std::path::Path;
use std::process::Output;
use std::time::SystemTime;

use rustix::process::Signal;
use serde_json::{Value, json};
use talea::{Config, Opts, Registry};

use super::top::Terminal;
use crate::support::items_api::ItemsApi;
use crate::support::region_folder::RegionFolder;
use crate::support::{TALEA, assert_ends, assert_refused, done, talea};

fn inspect(arguments: &[&str]) -> Output {
    talea([&["inspect"], arguments].concat())
}

fn json(region: &Path, more: &[&str]) -> Value {
    let arguments = [&["inspect", region.to_str().unwrap(), "--json"], more].concat();
    serde_json::from_str(&done(&arguments)).unwrap()
}

/// The names and types of the families that have series.
fn families(inspection: &Value) -> Vec<(String, String)> {
    let families = inspection["families"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    families.map(|family| (text(&family["name"]), text(&family["type"]))).collect()
}

/// The counts of the service: its families of HTTP, each with all series and values.
fn counted(region: &Path) -> Vec<(String, Value)> {
    let all = families(&json(region, &[])).into_iter();
    let http = all.filter(|(name, kind)| name.starts_with("http_") && kind != "gauge");
    http.map(|(name, _)| {
        let series = json(region, &["--family", &name])["series"].take();
        (name, series)
    })
    .collect()
}

#[test]
fn a_service_is_inspected_while_it_runs_is_stopped_and_is_dead() {
    let folder = RegionFolder::new();
    let region = folder.region();
    let mut service = ItemsApi::start(Some(&region));
    service.make_and_list(3);
    let scrape = service.scrape();

    let running = json(&region, &[]);
    let known = families(&running);
    let pid = u64::from(service.pid());
    let process = |inspection: &Value| {
        let all = inspection["processes"].as_array().unwrap();
        assert_eq!((all.len(), all[0]["pid"].as_u64()), (1, Some(pid)));
        all[0]["alive"].as_bool().unwrap()
    };
    assert!(process(&running));
    assert_eq!(running["region"]["layout_version"], 14);
    assert_eq!(running["region"]["bytes"], region.metadata().unwrap().len());

    // A series of its own scrape is here too, and has the same type.
    let types = scrape.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let mut shown = 0;
    for line in types {
        let (name, kind) = line.rsplit_once(' ').unwrap();
        let (_, found) = known.iter().find(|(known, _)| known == name).expect(name);
        // The text format has fewer types.
        let found = match found.as_str() {
            "info" | "stateset" => "gauge",
            found => found,
        };
        assert_eq!(found, kind, "{name}");
        shown += 1;
    }
    assert!(shown > 10, "{shown}");

    let before = counted(&region);
    assert!(before.len() >= 3, "{before:?}");
    agrees(&before, &scrape);

    service.signal(Signal::STOP);
    let stopped = json(&region, &[]);
    assert!(process(&stopped));
    assert_eq!((families(&stopped), counted(&region)), (known.clone(), before.clone()));

    service.kill();
    let dead = json(&region, &[]);
    assert!(!process(&dead));
    assert_eq!((families(&dead), counted(&region)), (known, before.clone()));
    for nothing in ["text_bytes_without_owner", "cell_bytes_without_owner"] {
        assert_eq!(dead["usage"][nothing], 0, "{nothing}");
    }

    // A restart goes on where it was.
    let service = ItemsApi::start(Some(&region));
    service.make_and_list(2);
    let scrape = service.scrape();
    let after = counted(&region);
    agrees(&after, &scrape);
    let total = |counted: &[(String, Value)]| -> u64 {
        let counts = counted.iter().flat_map(|(_, series)| series.as_array().unwrap());
        counts.filter_map(|one| one["count"].as_u64()).sum()
    };
    assert!(total(&before) >= 6 && total(&after) > total(&before));
}

/// Whether what was counted is what a scrape says: counters, and the counts and sums of
/// histograms.
fn agrees(counted: &[(String, Value)], scrape: &str) {
    let samples = talea_parse::text(scrape).unwrap();
    let mut compared = 0;
    for (name, series) in counted {
        for one in series.as_array().unwrap() {
            let labels: Vec<(String, String)> =
                serde_json::from_value(one["labels"].clone()).unwrap();
            let value = |name: &str| {
                let has_all = |of: &[(String, String)]| labels.iter().all(|it| of.contains(it));
                let found = samples.iter().find(|it| it.name == name && has_all(&it.labels));
                found.unwrap_or_else(|| panic!("{name} {labels:?}")).value
            };
            for (ending, key) in [("", "value"), ("_count", "count"), ("_sum", "sum")] {
                if let Some(reported) = one[key].as_f64() {
                    let name = format!("{name}{ending}");
                    assert_eq!(reported, value(&name), "{name} {labels:?}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn a_person_reads_tables() {
    let folder = RegionFolder::new();
    let region = folder.at("items.talea");
    let service = ItemsApi::start(Some(&region));
    service.make_and_list(1);
    let path = region.display().to_string();
    let (name, _) = counted(&region).into_iter().find(|(_, s)| s[0]["count"].is_u64()).unwrap();
    let pid = service.pid().to_string();
    let of_all = [
        &path,
        "layout 14",
        "single cells",
        "alive",
        "adds",
        "storage",
        "striped",
        "seconds",
        &pid,
    ];
    for (more, parts) in
        [(&[][..], &of_all[..]), (&["--family", &name], &["series", "p99", "/api/items"])]
    {
        let shown = done(&[&["inspect", &path], more].concat());
        parts.iter().for_each(|part| assert!(shown.contains(part), "{part}: {shown}"));
    }
    // A short time has three digits and a unit: its sum, its mean and its quantiles.
    let times = done(&["inspect", &path, "--family", "http_request_duration_seconds"]);
    let listed = times.lines().find(|line| line.contains("/api/items\"")).unwrap();
    let cells: Vec<&str> =
        listed.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!(cells.len(), 6, "{times}");
    for cell in &cells[2..] {
        let (number, unit) = cell.split_once(' ').unwrap_or((*cell, "nothing"));
        let digits = number.chars().filter(char::is_ascii_digit).count();
        assert!(digits == 3 && ["s", "ms", "µs", "ns"].contains(&unit), "{cell}: {times}");
    }
}

#[test]
fn a_summary_that_keeps_samples_shows_its_quantiles() {
    let folder = RegionFolder::new();
    let registry = Registry::open_with(folder.region(), Config::with_len(1 << 20)).unwrap();
    let opts = Opts::new("sizes", "Sizes.").quantiles(&[0.5, 0.9, 0.99]);
    let sizes = registry.sampled_summary(opts, &[""; 0]).unwrap();
    (1..=100).for_each(|n| sizes.observe(&[""; 0], f64::from(n), SystemTime::now()));
    let quantiles = json(&folder.region(), &["--family", "sizes"])["series"][0]["quantiles"].take();
    assert_eq!(quantiles, json!([[0.5, 50.0], [0.9, 90.0], [0.99, 99.0]]));
    let shown = done(&["inspect", folder.region().to_str().unwrap(), "--family", "sizes"]);
    let cells: Vec<&str> = shown.lines().nth_back(1).unwrap().split_whitespace().collect();
    assert_eq!(cells, ["–", "100", "5,050", "50.5", "50.0", "99.0"], "{shown}");
}

#[test]
fn memory_of_a_process_is_found_by_its_id() {
    let service = ItemsApi::start(None);
    service.make_and_list(2);
    let pid = service.pid().to_string();
    let inspection: Value =
        serde_json::from_str(&done(&["inspect", "--pid", &pid, "--json"])).unwrap();
    assert_eq!(inspection["source"], format!("process {pid}"));
    assert!(families(&inspection).len() > 10);
}

#[test]
fn bad_arguments_are_explained() {
    let folder = RegionFolder::new();
    let region = folder.at("items.talea");
    let service = ItemsApi::start(Some(&region));
    let path = region.to_str().unwrap();
    let pid = service.pid().to_string();
    for (arguments, parts) in [
        (&[path, "--family", "nothing"][..], &["nothing", "without --family they are listed"]),
        // Its region is in a file.
        (&["--pid", &pid], &["no region in memory", "name that"]),
        (&["--pid", "4194305"], &["process 4194305", "No such file"]),
    ] {
        assert_refused(&inspect(arguments), parts);
    }
    let none = assert_ends(&inspect(&["/missing/items.talea"]), 2, &[]);
    let reason = "No such file or directory (os error 2)";
    assert_eq!(none, format!("error: cannot read the region /missing/items.talea: {reason}\n"));
    for arguments in [&[][..], &[path, "--pid", "1"]] {
        assert_ends(&inspect(arguments), 2, &[]);
    }
}

#[test]
fn a_process_is_inspected_by_its_number_and_a_table_is_as_wide_as_the_terminal() {
    let registry = Registry::new().unwrap();
    let words = "Words that are more than a line of a terminal has room for. ".repeat(3);
    let _: talea::Counter = registry.register(Opts::new("orders", &words)).unwrap();
    let own = std::process::id().to_string();
    let whole = done(&["inspect", &own]);
    assert_eq!(whole, done(&["inspect", "--pid", &own]));
    assert!(
        whole.lines().any(|line| line.contains(words.trim())),
        "no terminal, no limit: {whole}"
    );
    for (width, has_help) in [(72, false), (100, true), (140, true)] {
        let terminal = Terminal::new(width, 50);
        terminal.keys(&[&format!("clear; {TALEA} inspect {own}; echo ended"), "Enter"]);
        let screen = terminal.shows("\nended");
        let row = screen.lines().find(|line| line.starts_with(" orders_total   counter"));
        let row = row.unwrap_or_else(|| panic!("{screen}"));
        assert_eq!(row.contains("Words that"), has_help, "{screen}");
        let next = screen.lines().skip_while(|line| *line != row).nth(1).unwrap();
        let is_indented = next.starts_with("            ") || next.starts_with('─');
        assert!(is_indented, "a row goes on in its own column: {screen}");
    }
}
