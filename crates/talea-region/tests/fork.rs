//! Claims about children made by `fork`, as a pre-forking server makes them.
#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

use talea_region::{Cell, Config, FamilySpec, Region, Storage};

fn cell(region: &'static Region, name: &str, storage: Storage) -> Cell {
    let family = region
        .family(FamilySpec { name: name.as_bytes(), storage, limit: 10, ..FamilySpec::default() })
        .unwrap();
    family.family.series(b"").unwrap().at(0)
}

fn total(region: &'static Region, name: &str) -> u64 {
    let snapshot = region.snapshot();
    let family = snapshot.families().iter().find(|f| f.name == name.as_bytes()).unwrap();
    snapshot.series(family).map(|s| s.values[0]).sum()
}

/// Forks a child that does `work` and then waits to be killed. Returns when the
/// work is done.
fn fork(work: impl FnOnce()) -> libc::pid_t {
    let mut pipe = [0; 2];
    // SAFETY: `pipe` has room for two descriptors.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    // SAFETY: the child calls nothing that another thread may hold a lock of:
    // it adds to cells, writes to a pipe and pauses.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        work();
        // SAFETY: plain calls on descriptors that are open; `pause` ends by the
        // signal that kills the child.
        unsafe {
            libc::write(pipe[1], b"x".as_ptr().cast(), 1);
            loop {
                libc::pause();
            }
        }
    }
    let mut done = 0_u8;
    // SAFETY: one byte is read into one byte, then both ends are closed once.
    unsafe {
        assert_eq!(libc::read(pipe[0], (&raw mut done).cast(), 1), 1);
        libc::close(pipe[0]);
        libc::close(pipe[1]);
    }
    pid
}

fn kill(pid: libc::pid_t) {
    // SAFETY: the child is ours and not yet waited for.
    unsafe {
        assert_eq!(libc::kill(pid, libc::SIGKILL), 0);
        assert_eq!(libc::waitpid(pid, std::ptr::null_mut(), 0), pid);
    }
}

#[test]
fn children_add_to_their_parents_cells_and_hold_what_is_their_own() {
    let region = Region::anonymous(Config::with_len(1 << 20)).unwrap();
    let (striped, single, held) = (
        cell(region, "striped", Storage::Striped),
        cell(region, "single", Storage::Single),
        cell(region, "held", Storage::Owned),
    );
    held.add(1);
    let work = move || {
        for _ in 0..1000 {
            striped.add(1);
            single.add(1);
        }
        held.add(10);
    };
    let children = [fork(work), fork(work), fork(work)];
    assert_eq!(held.get(), 1, "a parent does not hold what its children do");
    assert_eq!(total(region, "held"), 31);
    kill(children[0]);
    assert_eq!(total(region, "held"), 21, "what a dead child held leaves with it");
    kill(children[1]);
    // A child that comes later begins with nothing in the slot of a dead one.
    let late = fork(move || held.add(100));
    assert_eq!(total(region, "held"), 111);
    kill(late);
    kill(children[2]);
    assert_eq!(total(region, "held"), 1);
    assert_eq!(total(region, "striped"), 3000, "what was counted stays");
    assert_eq!(total(region, "single"), 3000);
}

#[test]
fn what_a_parent_held_leaves_while_its_child_lives_on() {
    let region = Region::anonymous(Config::with_len(1 << 20)).unwrap();
    let held = cell(region, "held", Storage::Owned);
    let pid = std::sync::atomic::AtomicU64::new(0);
    let shared = cell(region, "grandchild", Storage::Single);
    // The child makes a grandchild and is killed; the grandchild lives on.
    let child = fork(|| {
        held.add(5);
        let grandchild = fork(|| held.add(70));
        shared.set(grandchild as u64);
    });
    pid.store(shared.get(), std::sync::atomic::Ordering::Relaxed);
    assert_eq!(total(region, "held"), 75);
    kill(child);
    assert_eq!(total(region, "held"), 70);
    let grandchild = pid.into_inner() as libc::pid_t;
    // SAFETY: the grandchild lives: it waits for this signal.
    unsafe { assert_eq!(libc::kill(grandchild, libc::SIGKILL), 0) };
    // It is not our child, so its end can only be watched for.
    let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while total(region, "held") != 0 {
        assert!(std::time::Instant::now() < end, "the grandchild still counts as living");
        std::thread::yield_now();
    }
}

#[test]
fn a_child_uses_the_families_of_its_parent() {
    let region = Region::anonymous(Config::with_len(1 << 20)).unwrap();
    cell(region, "defined", Storage::Single);
    let told = cell(region, "told", Storage::Single);
    let child = fork(|| {
        let other = FamilySpec {
            name: b"defined",
            definition: b"otherwise",
            storage: Storage::Single,
            limit: 10,
            ..FamilySpec::default()
        };
        told.set(u64::from(region.family(other).is_err()) + 1);
    });
    kill(child);
    assert_eq!(told.get(), 2, "the child may not define it otherwise");
}
