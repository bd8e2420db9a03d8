//! Processes that count in a region, and say what they have counted: this test binary, started
//! again.
//!
//! A writer counts in batches and writes one byte to its standard output after each. So when it is
//! killed, what it counted is known to a batch: all batches that it acknowledged, and of one more
//! any part.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

use talea::{
    Config, Count, Counter, Error, Family, Histogram, Labels, Opts, Registry, UpDownCounter,
};

use crate::support::LONGEST;
use crate::support::wait_for;

/// How much is counted between two acknowledgements.
pub(crate) const BATCH: u64 = 64;
/// Batches of a child that was forked, which then ends.
const BATCHES_OF_A_CHILD: u64 = 50;

/// The messages of a writer, a byte each.
const READY: u8 = 1;
const COUNTED: u8 = 2;
const FORKED: u8 = 3;
const FULL: u8 = 4;

/// Its exit status where the region is too damaged for another metric.
const NOT_REGISTERED: i32 = 3;

/// The behaviour of a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It counts until its input ends.
    Counts,
    /// Likewise, with a new label set for each thing that it counts, until the region has no room for
    /// another, and on.
    Fills,
    /// Likewise, after it has forked two children, which count too.
    Forks,
    /// It only has the region open.
    Waits,
}

impl Role {
    const ALL: [Self; 4] = [Self::Counts, Self::Fills, Self::Forks, Self::Waits];
}

const REGION: &str = "TALEA_TEST_REGION";
const VERSION: &str = "TALEA_TEST_VERSION";
const ROLE: &str = "TALEA_TEST_ROLE";

#[derive(Labels)]
struct By<'a> {
    user: &'a str,
}

/// The metrics of a version of a service, whose names begin with that of its region.
struct Shop {
    orders: Counter,
    users: Family<By<'static>, Counter>,
    sizes: Histogram<Count>,
    baskets: Histogram<Count>,
    visits: Family<By<'static>, Counter>,
    open: UpDownCounter,
}

impl Shop {
    fn register(registry: &Registry, region: &str, version: u64) -> Result<Self, Error> {
        let named = |metric| format!("{region}_{metric}");
        let [orders, users, sizes] = ["orders", "users", "sizes"].map(named);
        let [baskets, visits, open] = ["baskets", "visits", "open"].map(named);
        let help = format!("Of version {version}.");
        let buckets = [version as f64, 100.0];
        fn opts(name: &str) -> Opts<'_> {
            Opts::new(name, "Some.")
        }
        Ok(Self {
            // Its help differs between versions, so that their values are added up.
            orders: registry.register(Opts::new(&orders, &help))?,
            users: registry.register(opts(&users).limit(100_000).expires_after(None))?,
            sizes: registry.register(opts(&sizes))?,
            // Its buckets differ, so that one version's is shown.
            baskets: registry.register(opts(&baskets).buckets(&buckets))?,
            visits: registry.register(opts(&visits).limit(100))?,
            open: registry.register(opts(&open))?,
        })
    }

    fn count(&self, batch: u64, role: Role) {
        self.open.add(1);
        let own = std::process::id();
        for n in 0..BATCH {
            self.orders.inc();
            self.sizes.observe(n);
            match role {
                Role::Fills => self.users.with(By { user: &format!("{own}-{batch}-{n}") }).inc(),
                _ => self.users.with(By { user: &format!("user {}", n % 8) }).inc(),
            }
        }
        self.baskets.observe(1);
        // Of these some are always just being made, and some just going.
        self.visits.with(By { user: &format!("{own}-{batch}") }).inc();
        if let Some(before) = batch.checked_sub(50) {
            self.visits.remove(By { user: &format!("{own}-{before}") });
        }
        self.open.add(-1);
    }
}

/// Runs a writer's process.
pub(crate) fn write() {
    let Some(region) = std::env::var_os(REGION).map(PathBuf::from) else { return };
    let number = |name| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let role = Role::ALL[number(ROLE) as usize];
    let is_over = Arc::new(AtomicBool::new(false));
    let is_asked = is_over.clone();
    thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        is_asked.store(true, SeqCst);
    });
    let registry = Registry::open_with(&region, Config::with_len(1 << 20)).unwrap();
    let name = region.file_stem().unwrap().to_str().unwrap();
    let Ok(shop) = Shop::register(&registry, name, number(VERSION)) else {
        std::process::exit(NOT_REGISTERED);
    };
    say(READY);
    let mut is_full = false;
    for batch in 0.. {
        match role {
            Role::Waits => sleep(Duration::from_millis(1)),
            _ => {
                shop.count(batch, role);
                say(COUNTED);
            }
        }
        if role == Role::Forks && batch == 5 {
            (0..2).for_each(|_| fork(&shop));
            say(FORKED);
        }
        if role == Role::Fills && !is_full && shop.users.dropped() > 0 {
            is_full = true;
            say(FULL);
        }
        if is_over.load(SeqCst) {
            return;
        }
    }
}

fn fork(shop: &Shop) {
    // SAFETY: the only other threads wait for input or for this one, and hold no lock that the
    // child could wait for. The child counts, says so, and ends without anything that the parent
    // set up for its own end.
    unsafe {
        if libc::fork() == 0 {
            for batch in 0..BATCHES_OF_A_CHILD {
                shop.count(batch, Role::Counts);
                say(COUNTED);
            }
            libc::_exit(0);
        }
    }
}

/// Without any buffer or lock of this process, which could be another's after a fork.
fn say(byte: u8) {
    // SAFETY: one byte is written from one byte, to a descriptor that is always open.
    unsafe { libc::write(libc::STDOUT_FILENO, (&raw const byte).cast(), 1) };
}

/// A process that counts; it is killed when it is dropped.
pub(crate) struct Writer {
    child: Child,
    input: Option<ChildStdin>,
    counted: Option<JoinHandle<u64>>,
    said: Receiver<u8>,
    errors: PathBuf,
}

impl Writer {
    /// Starts one. Each batch that it acknowledges is added to `acknowledged` at once.
    pub(crate) fn start(
        region: &Path,
        version: u64,
        role: Role,
        acknowledged: &Arc<AtomicU64>,
    ) -> Self {
        static STARTED: AtomicU64 = AtomicU64::new(0);
        let number = STARTED.fetch_add(1, SeqCst);
        let errors = region.with_file_name(format!("writer-{number}.txt"));
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_writer_that_counts_on_request", "--nocapture"])
            .env(REGION, region)
            .env(VERSION, version.to_string())
            .env(ROLE, Role::ALL.iter().position(|one| *one == role).unwrap().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&errors).unwrap())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().unwrap();
        let (says, said) = channel();
        let acknowledged = acknowledged.clone();
        // It ends with the last process that has the writer's output.
        let counted = thread::spawn(move || {
            let (mut counted, mut bytes) = (0, [0; 4096]);
            while let Ok(len @ 1..) = output.read(&mut bytes) {
                let batches = bytes[..len].iter().filter(|byte| **byte == COUNTED).count() as u64;
                acknowledged.fetch_add(batches * BATCH, SeqCst);
                counted += batches * BATCH;
                for byte in bytes[..len].iter().filter(|byte| [READY, FORKED, FULL].contains(byte))
                {
                    let _ = says.send(*byte);
                }
            }
            counted
        });
        let input = child.stdin.take();
        Self { child, input, counted: Some(counted), said, errors }
    }

    /// Waits until it has the region open; false if that is too damaged for its metrics.
    pub(crate) fn is_ready(&mut self) -> bool {
        match self.said.recv_timeout(LONGEST) {
            Ok(byte) => byte == READY,
            Err(_) => {
                assert_eq!(self.ends().code(), Some(NOT_REGISTERED), "{}", self.errors());
                false
            }
        }
    }

    /// Waits until it has forked its children.
    pub(crate) fn has_forked(&mut self) {
        assert!(self.is_ready());
        assert_eq!(self.said.recv_timeout(LONGEST), Ok(FORKED), "{}", self.errors());
    }

    /// Waits until its region has refused it a label set.
    pub(crate) fn was_refused(&self) {
        assert_eq!(self.said.recv_timeout(LONGEST), Ok(FULL), "{}", self.errors());
    }

    /// That it has not ended.
    pub(crate) fn assert_runs(&mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(
            ended.is_none_or(|status| status.code() == Some(NOT_REGISTERED)),
            "{ended:?}: {}",
            self.errors()
        );
    }

    /// Kills it, waits for its children, and returns how much they counted for sure; of one batch
    /// more any part may be counted.
    pub(crate) fn kill(mut self) -> u64 {
        self.assert_runs();
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.counted.take().unwrap().join().unwrap()
    }

    /// Has it end by itself, and returns how much it counted.
    pub(crate) fn stop(mut self) -> u64 {
        drop(self.input.take());
        let status = self.ends();
        assert!(matches!(status.code(), Some(0 | NOT_REGISTERED)), "{status}: {}", self.errors());
        self.counted.take().unwrap().join().unwrap()
    }

    fn ends(&mut self) -> std::process::ExitStatus {
        wait_for(|| match self.child.try_wait().unwrap() {
            Some(status) => Ok(status),
            None => Err(format!("a writer hangs: {}", self.errors())),
        })
    }

    fn errors(&self) -> String {
        std::fs::read_to_string(&self.errors).unwrap_or_default()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.errors);
    }
}
