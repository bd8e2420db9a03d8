//! A target over its corpus, as an ordinary test: each input as it is, and
//! changed in ways that are the same each time.

use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How many changed inputs there are.
const CHANGED: u64 = if cfg!(miri) { 2 } else { 400 };

/// The most processor time for one input. Each takes a few milliseconds.
const LONGEST: Duration = Duration::from_secs(1);

pub(crate) fn corpus(target: &str, run: impl Fn(&[u8])) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = entries.collect();
    paths.sort();
    let inputs: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert!(inputs.len() > 10, "no corpus in {}", path.display());

    let mut slowest = Duration::ZERO;
    let mut timed = |what: &str, input: &[u8]| {
        // Shown only if the test fails: which input it was.
        println!("{what}: {input:?}");
        let before = cpu_time();
        run(input);
        let took = cpu_time() - before;
        assert!(took < LONGEST, "{what} took {took:?}");
        slowest = slowest.max(took);
    };
    for (path, input) in paths.iter().zip(&inputs).take(if cfg!(miri) { 5 } else { usize::MAX }) {
        timed(&path.display().to_string(), input);
    }
    // The same numbers each time.
    let mut random = 7_u64;
    let mut below = |limit: usize| {
        random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        ((random >> 33) % limit as u64) as usize
    };
    for n in 0..CHANGED {
        timed(&format!("change {n}"), &changed(&inputs, &mut below));
    }
    println!("{target}: the slowest input took {slowest:?}");
}

/// The processor time of this thread, which does not count what others do meanwhile. Miri has no such
/// clock.
fn cpu_time() -> Duration {
    if cfg!(miri) {
        return Duration::ZERO;
    }
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

/// One input with some bytes of it changed, and the end of another; `below` gives a number below its
/// limit.
fn changed(inputs: &[Vec<u8>], below: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    let mut input = inputs[below(inputs.len())].clone();
    let other = &inputs[below(inputs.len())];
    input.extend_from_slice(&other[below(other.len() + 1)..]);
    for _ in 0..below(4) {
        if !input.is_empty() {
            let at = below(input.len());
            input[at] = below(256) as u8;
        }
    }
    input
}
