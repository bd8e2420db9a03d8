//! Claims about exemplars: one observation that was counted, with its labels.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use crate::support::region::{self, region, sweep};
use talea_region::{Cell, Config, Exemplar, Family, FamilySpec, Overflow, Region};

fn family(region: &'static Region) -> Family {
    let spec = FamilySpec { cells: 3, idle_minutes: 1, ..FamilySpec::default() };
    region::family(region, "f", spec)
}

fn shown(region: &'static Region) -> Vec<Exemplar> {
    let snapshot = region.snapshot();
    let series = snapshot.families().iter().flat_map(|family| snapshot.series(family));
    series.flat_map(|series| series.exemplars.to_vec()).collect()
}

fn texts(region: &'static Region) -> Vec<(usize, f64, String)> {
    let all = shown(region).into_iter();
    all.map(|e| (e.n, e.value, String::from_utf8(e.text).unwrap())).collect()
}

#[test]
fn each_cell_shows_its_latest() {
    let region = region(2 << 20);
    let cells = family(region).permanent_series(b"").unwrap();
    assert_eq!(shown(region), []);
    cells.at(0).set_exemplar(0, 0.5, b"trace_id=\"a\"").unwrap();
    cells.at(2).set_exemplar(2, -2.0, b"trace_id=\"bcdefghij\"").unwrap();
    cells.at(2).set_exemplar(2, 7.0, b"").unwrap();
    let expected = [(0, 0.5, "trace_id=\"a\"".to_owned()), (2, 7.0, String::new())];
    assert_eq!(texts(region), expected);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let age = now.as_nanos() as u64 - shown(region)[0].unix_nanos;
    assert!(age < 5_000_000_000, "{age}");
}

#[test]
fn any_length_up_to_the_longest_comes_back() {
    let region = region(2 << 20);
    let cell = family(region).permanent_series(b"").unwrap().at(1);
    for len in (0..300).chain([2047, 2048, 100, 2048]) {
        let text: String = ('a'..='z').cycle().take(len).collect();
        cell.set_exemplar(1, len as f64, text.as_bytes()).unwrap();
        assert_eq!(texts(region), [(1, len as f64, text)]);
    }
    assert_eq!(cell.set_exemplar(1, 1.0, &[b'x'; 2049]), Err(Overflow::TooLong));
}

#[test]
fn a_wiped_series_has_none_and_a_series_that_went_leaves_no_memory() {
    let region = region(2 << 20);
    let family = family(region);
    let cell = family.permanent_series(b"").unwrap().at(0);
    cell.set_exemplar(0, 1.0, b"a=\"b\"").unwrap();
    family.wipe();
    assert_eq!(shown(region), []);
    let taken = || region.usage().single_cells.taken;
    let before = taken();
    for round in 0..20 {
        let looked = family.series(b"passing").unwrap();
        looked.at(0).set_exemplar(0, 1.0, &vec![b'x'; 50 * round]).unwrap();
        drop(looked);
        assert!(taken() > before);
        family.remove(b"passing");
        sweep(region, 2);
        assert_eq!(taken(), before);
    }
}

#[test]
fn a_shown_exemplar_was_written_whole_while_many_write() {
    /// Exemplars that are looked at. While both writers write one, none is shown, so it takes long until one is.
    const ENOUGH: usize = 200;
    /// The most that each writes.
    const EACH: u64 = if cfg!(miri) { 20 } else { 1 << 40 };
    let region = region(2 << 20);
    let cell = family(region).permanent_series(b"").unwrap().at(0);
    let is_enough = AtomicBool::new(false);
    let text_of = |thread, n: u64| format!("{thread}-{n}-").repeat(1 + (n % 9) as usize);
    let write = &|cell: Cell, thread: u64| {
        for n in (0..EACH).take_while(|_| !is_enough.load(Relaxed)) {
            cell.set_exemplar(0, (thread * EACH + n) as f64, text_of(thread, n).as_bytes())
                .unwrap();
        }
    };
    let mut seen = Vec::new();
    thread::scope(|scope| {
        let writers = [0, 1].map(|n| scope.spawn(move || write(cell, n)));
        while seen.len() < ENOUGH && writers.iter().any(|writer| !writer.is_finished()) {
            seen.extend(texts(region));
        }
        is_enough.store(true, Relaxed);
    });
    for (_, value, text) in seen {
        assert_eq!(text, text_of(value as u64 / EACH, value as u64 % EACH));
    }
    cell.set_exemplar(0, -1.0, b"last").unwrap();
    assert_eq!(texts(region), [(0, -1.0, "last".to_owned())], "nobody claims it any more");
}

#[test]
fn a_full_region_refuses_and_goes_on() {
    let region = Region::anonymous(Config { series: 4000, ..Config::with_len(1 << 20) }).unwrap();
    let family = family(region);
    let all: Vec<_> = (0..400)
        .map_while(|n| family.permanent_series(format!("{n}").as_bytes()).ok())
        .map(|cells| cells.at(0))
        .collect();
    let refused = all.iter().filter(|cell| cell.set_exemplar(0, 1.0, b"a=\"b\"").is_err()).count();
    assert!(refused > 0 && refused < all.len(), "{refused} of {}", all.len());
    assert_eq!(shown(region).len(), all.len() - refused);
}

#[cfg(target_os = "linux")]
mod killed {
    use super::*;
    use crate::support::process::{Process, arguments};
    use crate::support::region::open;
    use crate::support::tmpfs::Shm;

    fn text_of(n: u64) -> String {
        format!("{n}-").repeat(1 + (n % 40) as usize)
    }

    #[test]
    #[ignore = "a process that a test starts"]
    fn writes_until_killed_when_asked() {
        let Some([path]) = arguments() else { return };
        let cell = family(open(path)).permanent_series(b"").unwrap().at(0);
        println!("\nwrites");
        for n in 0.. {
            cell.set_exemplar(0, n as f64, text_of(n).as_bytes()).unwrap();
        }
    }

    #[test]
    fn an_exemplar_that_a_killed_process_was_writing_is_never_shown_and_blocks_no_other() {
        let shm = Shm::new("exemplars");
        let region = open(shm.file());
        let reader = talea_region::Reader::open(shm.file()).unwrap();
        let cell = family(region).permanent_series(b"").unwrap().at(0);
        for round in 0..30 {
            let mut command = again!("writes_until_killed_when_asked", shm.file());
            let mut process = Process::start_until("writes", &mut command);
            thread::sleep(std::time::Duration::from_micros(200 + 37 * round));
            process.kill();
            let outside = reader.snapshot().unwrap();
            let series = outside.series(&outside.families()[0]).next().unwrap();
            for exemplar in series.exemplars.iter().filter(|e| e.value >= 0.0) {
                assert_eq!(exemplar.text, text_of(exemplar.value as u64).as_bytes());
            }
            cell.set_exemplar(0, -1.0, b"ours").unwrap();
            assert_eq!(texts(region), [(0, -1.0, "ours".to_owned())]);
        }
    }
}
