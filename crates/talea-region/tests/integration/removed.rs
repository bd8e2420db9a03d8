//! Claims about the removal of regions that no process uses.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;

use crate::support::process::{Process, arguments, wait_for_input};
use crate::support::region::opened;
use crate::support::tmpfs::Shm;
use crate::support::until;
use talea_region::remove_unused;

#[test]
#[ignore = "a process that a test starts"]
fn opens_when_asked() {
    let Some([path]) = arguments() else { return };
    println!("\nopened {}", opened(path).path.display());
    wait_for_input();
}

#[test]
fn a_process_that_opens_a_region_while_it_is_removed_has_the_file_at_its_path() {
    let shm = Shm::new("removed");
    let path = shm.file();
    let owners = [std::fs::metadata(shm.path()).unwrap().uid()];
    let (is_over, removed) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(SeqCst) {
                // It may be locked or gone at this instant.
                if remove_unused(&path, &owners).unwrap_or(false) {
                    removed.fetch_add(1, SeqCst);
                }
                thread::yield_now();
            }
        });
        for n in 0..30 {
            let mut process = Process::start(&mut again!("opens_when_asked", path));
            let place = PathBuf::from(process.wait_for("opened "));
            until("the file has its name again", || place.exists());
            assert!(!remove_unused(&place, &owners).unwrap_or(false), "it is in use");
            assert!(place.exists(), "round {n}: {place:?}");
            process.end();
            until("it is removed", || removed.load(SeqCst) > n || !place.exists());
        }
        is_over.store(true, SeqCst);
    });
    assert!(removed.load(SeqCst) > 0);
    assert!(!remove_unused(shm.path().join("missing"), &owners).unwrap());
    let file = shm.path().join("file");
    std::fs::write(&file, "kept").unwrap();
    assert!(!remove_unused(&file, &owners).unwrap(), "a file that is no region stays");
    assert!(file.exists());
}
