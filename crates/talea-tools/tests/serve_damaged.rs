//! A region with random damage, served by an agent that runs for long: the page can be read, and
//! the other regions are in it completely. In a process of its own, whose memory it measures.
#![cfg(target_os = "linux")]

use std::fs::OpenOptions;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use talea::{
    Combine, Config, Count, Counter, Escaping, Family, FloatGauge, Format, Gauge, Histogram, Info,
    LabelValue, Labels, Opts, Registry, Scraper, Seconds, StateSet, Summary,
};
use talea_agent::serve::{Agent, Sources};
use talea_parse::{Severity, Syntax, check, families};

const LEN: u64 = 1 << 20;
/// How much a damaged region may cost in memory, of what its file has.
const MOST: u64 = 16 * LEN;

/// The faults of a page in which numbers are wrong, or records occur twice. A scraper takes
/// the page all the same.
const OF_VALUES: [&str; 6] = [
    "bucket-cumulative",
    "exemplar-value",
    "reserved-name",
    "series-apart",
    "series-twice",
    "value",
];

#[derive(Labels)]
struct By<'a> {
    user: &'a str,
}

#[derive(LabelValue)]
#[allow(dead_code)]
enum Circuit {
    Closed,
    Open,
}

/// All kinds, exemplars, quantiles, wiped values and removed series.
fn fill(path: &Path) -> Registry {
    let registry = Registry::open_with(path, Config::with_len(LEN)).unwrap();
    let all: Counter = registry.register(Opts::new("all", "All calls.")).unwrap();
    all.add(100);
    let opts = Opts::new("calls", "Calls.").limit(20);
    let calls: Family<By<'static>, Counter> = registry.register(opts).unwrap();
    for n in 0..25 {
        let user = format!("user \"{n}\"\n");
        let _ = calls.with(By { user: &user }).add_with_exemplar(n, &[("trace_id", "0af7")]);
    }
    calls.remove(By { user: "user \"3\"\n" });
    for (name, combine) in [("each", Combine::Each), ("most", Combine::Max), ("sum", Combine::Sum)]
    {
        registry.register::<Gauge>(Opts::new(name, "A gauge.").combine(combine)).unwrap().set(7);
    }
    registry.register::<FloatGauge>(Opts::new("fill_ratio", "How full.")).unwrap().set(0.5);
    let opts = Opts::new("wait", "Time to wait.").quantiles(&[0.5, 0.99]);
    let wait: Family<By<'static>, Histogram<Seconds>> = registry.register(opts).unwrap();
    for n in 1..200 {
        let wait = wait.with(By { user: ["ann", "bob"][n as usize % 2] });
        let time = Duration::from_micros(n * n * n);
        wait.observe_with_exemplar(time, &[("trace_id", &n.to_string())]).unwrap();
    }
    let size = Opts::new("size", "Sizes.").quantiles(&[0.5, 1.0]);
    let size: Summary<Count> = registry.register(size).unwrap();
    (0..50).for_each(|n| size.observe(n * n));
    let wiped: Family<By<'static>, Histogram<Count>> =
        registry.register(Opts::new("wiped", "Wiped.")).unwrap();
    for user in ["ann", "bob"] {
        (0..50).for_each(|n| wiped.with(By { user }).observe(n * n));
    }
    registry.wipe(|name| name == "wiped");
    wiped.with(By { user: "ann" }).observe(5);
    let build: Info<By<'static>> = registry.register(Opts::new("build", "By whom.")).unwrap();
    build.set(By { user: "ci" });
    let circuit: StateSet<Circuit> = registry.register(Opts::new("circuit", "Its state.")).unwrap();
    circuit.set(Circuit::Open);
    registry
}

/// The offsets of used words; the words that lead to others are hit more often.
struct Places {
    header: Range<usize>,
    /// All words that are not 0.
    used: Vec<usize>,
    tables: Vec<usize>,
}

impl Places {
    fn of(bytes: &[u8]) -> Self {
        let used: Vec<usize> =
            (0..bytes.len() / 8).filter(|word: &usize| bytes[word * 8..][..8] != [0; 8]).collect();
        // The families and the records stand behind the slots, within the first part of it.
        let tables = (20_480 + 256 * 128) / 8..bytes.len() / 4 / 8;
        let tables = used.iter().copied().filter(|word| tables.contains(word)).collect();
        Self { header: 0..256, used, tables }
    }

    fn any(&self, random: &mut fastrand::Rng) -> usize {
        match random.u32(..10) {
            0..2 => random.usize(self.header.clone()),
            2..6 => *random.choice(&self.tables).unwrap(),
            6..9 => *random.choice(&self.used).unwrap(),
            _ => random.choice(&self.used).unwrap() ^ random.usize(..64),
        }
    }
}

/// Damages a copy of a region, and describes the damage.
fn damage(bytes: &mut [u8], places: &Places, random: &mut fastrand::Rng) -> String {
    let mut damage_done = String::new();
    for _ in 0..1 << random.u32(..4) {
        let word = places.any(random).min(bytes.len() / 8 - 1);
        let there = &mut bytes[word * 8..][..8];
        let before = u64::from_le_bytes(there.try_into().unwrap());
        let after = match random.u32(..12) {
            0 => before ^ 1 << random.u32(..64),
            1 => before ^ random.u64(..256) << (8 * random.u32(..8)),
            2 => random.u64(..),
            3 => 0,
            4 => u64::MAX,
            5 => before.wrapping_add(1),
            6 => before.wrapping_sub(1),
            7 => before.wrapping_add(8 << random.u32(..20)),
            8 => LEN - 8 * random.u64(..16),
            9 => random.u64(..LEN),
            _ => {
                let other = *random.choice(&places.used).unwrap();
                u64::from_le_bytes(bytes[other * 8..][..8].try_into().unwrap())
            }
        };
        bytes[word * 8..][..8].copy_from_slice(&after.to_le_bytes());
        damage_done += &format!("{:#x}: {before:#x} -> {after:#x}; ", word * 8);
    }
    if random.u32(..8) == 0 {
        // A piece of it stands elsewhere too.
        let len = 8 << random.u32(..8);
        let [from, to] = std::array::from_fn(|_| places.any(random) * 8);
        let (from, to) = (from.min(bytes.len() - len), to.min(bytes.len() - len));
        bytes.copy_within(from..from + len, to);
        damage_done += &format!("{len} bytes of {from:#x} at {to:#x}; ");
    }
    damage_done
}

/// The CPU time of this thread, which other programs do not lengthen.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

/// Memory of this process that it ever had, or has now, in bytes.
fn memory(what: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(what)).unwrap();
    line.trim_matches([':', '\t', ' ', 'k', 'B']).parse::<u64>().unwrap() * 1024
}

/// The samples of a region that nobody damaged, sorted and without exemplars: those of a family that
/// loses its type, since the damaged one has its name for another type, stand elsewhere and have none.
fn of_good(text: &str) -> Vec<&str> {
    let own = text
        .lines()
        .filter(|line: &&str| line.contains("region=\"good\""))
        .filter(|line| !line.starts_with("talea_agent"));
    let mut own: Vec<&str> =
        own.map(|line| line.split_once(" # ").map_or(line, |(sample, _)| sample)).collect();
    own.sort_unstable();
    own
}

/// Whether the sample of a line is on the page in another line too: its record stands in two places.
fn is_twice(page: &str, line: usize) -> bool {
    let sample = page.lines().nth(line - 1).and_then(|line| Some(line.split_once("} ")?.0));
    sample.is_some_and(|sample| page.lines().filter(|line| line.starts_with(sample)).count() > 1)
}

#[test]
fn whatever_a_region_says_the_page_can_be_read_and_the_others_are_in_it() {
    let times: u64 = std::env::var("TALEA_MUTATIONS").map_or(1_000, |times| times.parse().unwrap());
    let shm = tempfile::tempdir_in("/dev/shm").unwrap();
    let at = |name: &str| shm.path().join(name);
    let original = fill(&at("original"));
    // Two of them, so that the third is never what most say.
    let _good = ["good", "well"].map(|name| fill(&at(&format!("{name}.talea"))));
    let whole = std::fs::read(at("original")).unwrap();
    drop(original);
    let places = Places::of(&whole);
    let sources = Sources { directories: vec![shm.path().to_owned()], ..Sources::default() };
    let owner = std::os::unix::fs::MetadataExt::uid(&shm.path().metadata().unwrap());
    let agent = Agent::new(sources, vec![owner], Some("region".to_owned())).unwrap();
    let mut scrapers = [Format::Text, Format::OpenMetrics, Format::Protobuf].map(|format| {
        let mut scraper = Scraper::new(&agent);
        scraper.format(format, Escaping::AllowUtf8);
        scraper
    });
    let bad = at("bad.talea");
    std::fs::write(&bad, &whole).unwrap();
    let [text, openmetrics] =
        [0, 1].map(|n| String::from_utf8(scrapers[n].scrape().to_vec()).unwrap());
    assert!(of_good(&text).len() > 60, "{text}");
    let good = [of_good(&text), of_good(&openmetrics)];
    assert!(text.contains("wait_seconds_count{region=\"bad\",user=\"ann\"} "), "{text}");
    let before = memory("VmHWM");
    let mut random = fastrand::Rng::with_seed(1);
    let (mut slowest, mut served, mut left_out) = (Duration::ZERO, 0, 0);
    for n in 0..times {
        let mut bytes = whole.clone();
        let damage_done = damage(&mut bytes, &places, &mut random);
        if n % 2 == 0 {
            std::fs::write(at("new"), &bytes).unwrap();
            std::fs::rename(at("new"), &bad).unwrap();
        } else {
            // It is open already.
            let file = OpenOptions::new().write(true).open(&bad).unwrap();
            if n % 4 == 1 {
                file.write_all_at(&whole, 0).unwrap();
                scrapers[0].begin(|_| true);
            }
            file.write_all_at(&bytes, 0).unwrap();
        }
        for (format, scraper) in scrapers.iter_mut().enumerate() {
            let before = cpu_time();
            let page = scraper.scrape();
            slowest = slowest.max(cpu_time() - before);
            let Some(syntax) = [Syntax::Text, Syntax::OpenMetrics].get(format) else { continue };
            let page = std::str::from_utf8(page).unwrap_or_else(|_| panic!("{damage_done}"));
            families(page, *syntax)
                .unwrap_or_else(|error| panic!("{error}: {damage_done}\n{page}"));
            assert_eq!(of_good(page), good[format], "{damage_done}");
            served += u64::from(page.contains("region_up{region=\"bad\"} 1"));
            left_out += u64::from(!page.contains("region_conflicts{region=\"bad\"} 0"));
            let sample = if n % 4 == 0 { check(page, *syntax) } else { Vec::new() };
            let mut violations = sample.iter().filter(|one| one.severity == Severity::Violation);
            let wrong = violations.find(|found| {
                let is_of_a_twin = ["bucket-order", "count", "quantile-order"]
                    .contains(&found.rule)
                    && is_twice(page, found.line);
                !is_of_a_twin && !OF_VALUES.contains(&found.rule)
            });
            assert!(wrong.is_none(), "{wrong:?}: {damage_done}\n{page}");
        }
        assert!(slowest < Duration::from_secs(2), "{slowest:?}: {damage_done}");
    }
    let grown = memory("VmHWM") - before;
    println!(
        "{times} damages, {} scrapes each: {served} of those read had the region, of which \
         {left_out} without some of it; the slowest took {slowest:?} of CPU time, memory grew {grown} bytes",
        scrapers.len()
    );
    assert!(grown < MOST, "{grown}");
    assert!(served > times && left_out > times / 20);
}
