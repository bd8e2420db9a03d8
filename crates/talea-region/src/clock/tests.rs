use super::*;
use crate::lookup::register::FamilySpec;
use crate::region::Region;
use crate::snapshot::LastUse;
use crate::testing::region;

/// A process that uses a family of this name until it is killed.
fn user_of(region: &'static Region, name: &[u8]) -> libc::pid_t {
    // SAFETY: the child uses only the region, and no thread holds a lock of it meanwhile.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let _ = region.family(FamilySpec { name, ..FamilySpec::default() });
        loop {
            // SAFETY: it ends by the signal that kills the child.
            unsafe { libc::pause() };
        }
    }
    let mut is_there = false;
    while !is_there {
        std::thread::yield_now();
        region.each_related(name, |_, _, _| is_there = true);
    }
    child
}

#[test]
fn of_dead_processes_the_one_that_started_last_is_known_whichever_way_the_wall_clock_is_set() {
    for step in [-3_600, 0, 3_600] {
        let region = region();
        let children = [b"one", b"two"].map(|name| {
            let child = user_of(region, name);
            set::step_wall(step);
            child
        });
        for child in children {
            // SAFETY: the child is ours and was not waited for.
            unsafe {
                assert_eq!(libc::kill(child, libc::SIGKILL), 0);
                assert_eq!(libc::waitpid(child, std::ptr::null_mut(), 0), child);
            }
        }
        let snapshot = region.snapshot();
        let uses: Vec<LastUse> = snapshot.families().iter().map(|one| one.last_use).collect();
        let [LastUse::Dead(one), LastUse::Dead(two)] = uses[..] else { panic!("{uses:?}") };
        assert!(0 < one && one < two, "after a step of {step} s: {uses:?}");
    }
}

#[test]
fn a_time_is_shown_as_the_wall_clock_has_it_now() {
    let (boot, wall) = (boot_nanos(), unix_nanos());
    let shown = || unix_nanos_of(boot).abs_diff(wall);
    assert!(shown() < 60_000_000_000);
    set::pass(3_600);
    assert!(shown() < 60_000_000_000);
    set::step_wall(-7_200);
    assert!(shown() > 7_000_000_000_000);
    assert!(unix_nanos_of(u64::MAX) <= unix_nanos(), "damage");
}
