//! Pools whose runs are taken and given back by two threads at once.

use std::sync::atomic::Ordering::Relaxed;

use super::{beside, check};

#[test]
fn runs_of_a_pool_do_not_overlap() {
    check(|region, _| {
        let pool = region.memory.sections.arena;
        let first = region.memory.take(&pool, 70).unwrap();
        region.memory.give_back(&pool, first, 70);
        let take = move || {
            let at = region.memory.take(&pool, 40).unwrap();
            let word = &region.memory.map.words(pool.at + at, 40).unwrap()[39];
            assert_eq!(word.fetch_add(1, Relaxed), 0);
            at
        };
        let mut at = 0;
        beside(move || _ = take(), || at = take());
        region.memory.give_back(&pool, at, 40);
        // The name and the definition of the family are empty.
        assert_eq!(region.memory.taken(&pool), 40);
        region.memory.assert_tree(&pool);
    });
}

#[test]
fn of_threads_that_change_neighbouring_runs_none_hides_a_free_run_of_a_pool() {
    check(|region, _| {
        let pool = region.memory.sections.arena;
        // The second one lies in two words of bits.
        let [first, second, _] =
            [30, 50, 48].map(|count| region.memory.take(&pool, count).unwrap());
        let give_back = move |at, count| region.memory.give_back(&pool, at, count);
        beside(move || give_back(first, 30), || give_back(second, 50));
        region.memory.assert_tree(&pool);
        assert_eq!(region.memory.take(&pool, 64), Some(0));
    });
}

#[test]
fn a_run_of_a_pool_that_is_given_back_while_another_is_taken_is_not_hidden() {
    check(|region, _| {
        let pool = region.memory.sections.arena;
        let [first, _, second, _] = [20, 2, 20, 22].map(|count| region.memory.take(&pool, count));
        region.memory.give_back(&pool, first.unwrap(), 20);
        // The byte of this word is 20 before and after.
        let mut third = None;
        beside(
            move || region.memory.give_back(&pool, second.unwrap(), 20),
            || third = region.memory.take(&pool, 20),
        );
        region.memory.assert_tree(&pool);
        let both = [third, region.memory.take(&pool, 20)];
        assert!(both == [first, second] || both == [second, first], "{both:?}");
    });
}
