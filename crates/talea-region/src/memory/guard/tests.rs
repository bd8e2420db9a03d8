use super::*;
use crate::testing::region;

/// More than the count can hold.
const MANY: usize = 1 << 17;

#[test]
#[cfg_attr(miri, ignore = "it takes many minutes")]
fn more_guards_than_can_be_counted_hold_up_reuse_until_the_last_of_them_ends_and_beyond() {
    let memory = &region().memory;
    let mut guards: Vec<Guard> = (0..MANY).map(|_| memory.enter()).collect();
    let stamp = memory.stamp();
    assert!(!memory.is_reclaimable(stamp));
    // The first to enter are the ones that were counted.
    while guards.len() > 1 {
        drop(guards.swap_remove(0));
        if guards.len() % 4096 == 1 {
            assert!(!memory.is_reclaimable(stamp), "{} are left", guards.len());
        }
    }
    drop(guards);
    assert!(!memory.is_reclaimable(stamp), "a saturated count never reaches 0");
}

#[test]
#[cfg_attr(miri, ignore = "it takes many minutes")]
fn guards_that_are_forgotten_leave_the_epoch_as_it_was() {
    let memory = &region().memory;
    let first = memory.enter();
    let announced = first.word.load(Relaxed) >> COUNT_BITS;
    for _ in 0..MANY {
        std::mem::forget(memory.enter());
        assert_eq!(first.word.load(Relaxed) >> COUNT_BITS, announced);
    }
    assert!(!memory.is_reclaimable(memory.stamp()));
}

#[test]
#[cfg_attr(miri, ignore = "it takes many minutes")]
fn as_many_guards_as_can_be_counted_end_as_if_they_were_few() {
    let memory = &region().memory;
    let guards: Vec<Guard> = (0..COUNT_BEFORE_LAST).map(|_| memory.enter()).collect();
    let stamp = memory.stamp();
    assert!(!memory.is_reclaimable(stamp));
    drop(guards);
    assert!(memory.is_reclaimable(stamp));
}
