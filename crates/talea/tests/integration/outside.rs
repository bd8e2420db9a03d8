//! Claims about a registry that is read from outside the processes that count in it.
#![cfg(all(target_os = "linux", not(miri)))]

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::time::Duration;

use crate::support::metrics::{By, Users, opts, register};
use crate::support::pages::with_counter;
use crate::support::tmpfs::Shm;
use talea::outside::{FamilyFacts, Look, Reader, Standing, Storage};
use talea::{Counter, Escaping, Format, Gauge, Histogram, Kind, Registry, Seconds};

/// A registry with a family of each kind of fullness.
fn fill(shm: &Shm) -> Registry {
    let registry = with_counter(shm.opened(), "orders", 3);
    let users: Users<Counter> = registry.register(opts("users").limit(2)).unwrap();
    for user in ["ann", "bob", "cem", "dan"] {
        users.with(By { user }).inc();
    }
    register::<Histogram<Seconds>>(&registry, "took").observe(Duration::from_millis(250));
    registry
}

/// A copy of a region, which a test damages.
fn copied(shm: &Shm) -> (PathBuf, File) {
    let copy = shm.file().with_extension("copy");
    std::fs::copy(shm.file(), &copy).unwrap();
    let file = File::options().read(true).write(true).open(&copy).unwrap();
    (copy, file)
}

fn family<'a>(look: &'a Look, name: &str) -> &'a FamilyFacts {
    look.families.iter().find(|family| family.name == name).unwrap()
}

#[test]
fn from_outside_families_are_what_they_were_registered_as() {
    let shm = Shm::new("outside-families");
    let registry = fill(&shm);
    let look = Reader::open(shm.file()).unwrap().look().unwrap();
    assert_eq!(look.snapshot.to_text(), registry.snapshot().to_text());
    assert_eq!(look.overview.usage, registry.usage());
    let names: Vec<&str> = look.families.iter().map(|family| family.name.as_str()).collect();
    assert_eq!(names, ["orders_total", "took_seconds", "users_total"]);
    let took = family(&look, "took_seconds");
    let about = (took.kind, took.unit, took.help.as_str());
    assert_eq!(about, (Kind::Histogram, Some("seconds"), "Some."));
    assert_eq!((took.series, took.processes, took.storage), (1, 1, Storage::Striped));
    let orders = family(&look, "orders_total");
    assert_eq!((orders.series, orders.is_at_limit, orders.dropped), (1, false, 0));
    let users = family(&look, "users_total");
    assert_eq!((users.series, users.limit, users.dropped), (2, 2, 2));
    assert!(users.is_at_limit && users.labels == ["user"] && users.storage == Storage::Single);
}

#[test]
fn a_damaged_region_is_an_error_or_reports_families_that_it_leaves_out() {
    let shm = Shm::new("outside-damaged");
    let _registry = fill(&shm);
    let (copy, file) = copied(&shm);
    // The first family's record: the span of its definition.
    let definition = 20_480 + 256 * 128 + 16;
    file.write_all_at(&0_u64.to_le_bytes(), definition).unwrap();
    let look = Reader::open(&copy).unwrap().look().unwrap();
    assert_eq!((look.families.len(), look.families_unreadable), (2, 1));
    file.write_all_at(&u64::MAX.to_le_bytes(), 1024).unwrap();
    let message = Reader::open(&copy).unwrap().look().unwrap_err().to_string();
    assert!(message.contains("shop.copy"), "{message}");
}

#[test]
fn a_series_of_a_counter_that_damage_gives_to_a_gauge_shows_no_exemplar() {
    const PUBLIC: u64 = 2;
    let shm = Shm::new("outside-exemplar");
    let registry = shm.opened();
    let users: Users<Counter> = register(&registry, "users");
    let level: Users<Gauge> = register(&registry, "level");
    users.with(By { user: "ann" }).add_with_exemplar(1, &[("trace_id", "7")]).unwrap();
    level.with(By { user: "bob" }).set(1);
    let (copy, file) = copied(&shm);
    // The heads of series of the first family, and what looks like one.
    let bytes = std::fs::read(&copy).unwrap();
    let head_at = |at: &usize| u64::from_le_bytes(bytes[*at..][..8].try_into().unwrap());
    let heads = (0..bytes.len()).step_by(64).filter(|at| {
        let head = head_at(at);
        head & 0xff == PUBLIC && head >> 32 == 0
    });
    let mut found = 0;
    for at in heads {
        let head = head_at(&at);
        file.write_all_at(&(head | 1 << 32).to_le_bytes(), at as u64).unwrap();
        let Ok(look) = Reader::open(&copy).unwrap().look() else { continue };
        file.write_all_at(&head.to_le_bytes(), at as u64).unwrap();
        let page = look.snapshot.chunks(Format::OpenMetrics, Escaping::default(), 1 << 16);
        let page = String::from_utf8(page.flatten().collect()).unwrap();
        let line = page.lines().find(|line| line.starts_with("level{user=\"ann\"}"));
        found += usize::from(line.is_some());
        assert!(line.is_none_or(|line| line.ends_with(" 1")), "{page}");
    }
    assert_eq!(found, 1);
}

#[test]
fn only_an_owners_file_is_opened_and_it_is_known_when_it_is_gone() {
    let shm = Shm::new("outside-owned");
    let registry = fill(&shm);
    let named = shm.file().metadata().unwrap();
    let message = Reader::open_owned_by(shm.file(), &[named.uid() + 1]).err().unwrap().to_string();
    assert!(message.contains(&format!("belongs to user {}", named.uid())), "{message}");
    let reader = Reader::open_owned_by(shm.file(), &[named.uid()]).unwrap();
    assert_eq!(reader.look().unwrap().snapshot.to_text(), registry.snapshot().to_text());
    assert_eq!(reader.identity().unwrap(), (named.dev(), named.ino()));
    assert_eq!(reader.standing().unwrap(), Standing::Same);
    std::fs::remove_file(shm.file()).unwrap();
    assert_eq!(reader.standing().unwrap(), Standing::Gone);
    let _other = fill(&shm);
    assert_eq!(reader.standing().unwrap(), Standing::Replaced);
    assert!(reader.look().is_ok(), "what is gone can be read still");

    // Memory of a process has no path that could name another.
    let memory = Registry::new().unwrap();
    let reader = Reader::of_process(std::process::id()).unwrap();
    assert_eq!(reader.standing().unwrap(), Standing::Same);
    drop(memory);
}

#[test]
fn an_attached_process_wipes_and_expires_series_of_others() {
    let shm = Shm::new("outside-attached");
    assert!(Registry::attach(shm.file()).is_err() && !shm.file().exists());
    let service = fill(&shm);
    let operator = Registry::attach(shm.file()).unwrap();
    let value = |name| service.snapshot().value(name, &[]);
    assert_eq!(value("orders_total"), Some(3.0));
    assert!(operator.wipe(|name| name == "orders_total"));
    assert_eq!(value("orders_total"), Some(0.0));

    let users = || family(&Reader::open(shm.file()).unwrap().look().unwrap(), "users_total").series;
    let before = users();
    assert!(before >= 2);
    (0..3).for_each(|_| service.sweep());
    let minutes = |n: u32| Duration::from_secs(60) * n;
    let goes_by_itself = |_: &str, by_itself: bool| by_itself;
    assert_eq!(operator.expire(None, goes_by_itself), 0, "its time is an hour");
    assert_eq!(operator.expire(Some(minutes(3)), goes_by_itself), 0);
    assert_eq!(operator.expire(Some(minutes(2)), |name, _| name == "orders_total"), 0);
    assert_eq!(operator.expire(Some(minutes(2)), goes_by_itself), 2);
    assert_eq!(users(), before - 2);
}

/// A filter that leaves a family out by its name keeps its series from being copied: they are not wanted under
/// a name that the family does not show.
#[test]
fn a_filter_is_asked_for_the_names_that_samples_have_and_no_others() {
    let shm = Shm::new("outside-names");
    let registry = fill(&shm);
    let waited: Histogram<Seconds> = registry.register(opts("waited").quantiles(&[0.5])).unwrap();
    waited.observe(Duration::from_millis(250));
    let reader = Reader::open(shm.file()).unwrap();
    let asked = std::cell::RefCell::new(std::collections::BTreeSet::new());
    reader
        .snapshot_into(&mut talea::Snapshot::default(), |name: &str| {
            asked.borrow_mut().insert(name.to_owned());
            false
        })
        .unwrap();
    let mut asked = asked.into_inner();
    asked.retain(|name| !name.starts_with("talea_"));
    let mut counts = reader.series_counts().unwrap();
    counts.sort_unstable();
    let expected = [
        ("orders_total", 0),
        ("took_seconds", 0),
        ("users_total", 2),
        ("waited_recent_seconds", 0),
        ("waited_seconds", 0),
    ];
    assert_eq!(asked.into_iter().collect::<Vec<_>>(), expected.map(|(name, _)| name));
    assert_eq!(counts, expected.map(|(name, n)| (name.to_owned(), n)));
}
