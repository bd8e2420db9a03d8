//! Claims about processes that share a registry: what each of them sets, what one
//! that is killed leaves, and what one does to the families of all.
#![cfg(all(target_os = "linux", not(miri)))]

use std::fs::Permissions;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use crate::support::metrics::{By, Users, opts};
use crate::support::process::{Worker, obey};
use crate::support::tmpfs::Shm;
use talea::{
    Combine, Count, Counter, FloatGauge, Gauge, Histogram, Info, Opts, Registry, StateSet,
    UpDownCounter,
};

struct Metrics {
    registry: Registry,
    count: Counter,
    users: Users<Counter>,
    kept: Counter,
    sizes: Histogram<Count>,
    open: UpDownCounter,
    opens: Users<UpDownCounter>,
    latest: Gauge,
    owned: [Gauge; 4],
    ratio: FloatGauge,
    of_users: Users<Gauge>,
    info: Info<By<'static>>,
    state: StateSet<bool>,
}

const OWNED: [(Combine, &str); 4] =
    [(Combine::Sum, "sum"), (Combine::Max, "max"), (Combine::Min, "min"), (Combine::Each, "each")];

impl Metrics {
    fn open(path: &Path) -> Self {
        Self::of(Registry::open(path).unwrap())
    }

    fn of(registry: Registry) -> Self {
        let users: Users<Counter> = registry.register(opts("users")).unwrap();
        let each = Combine::Each;
        Self {
            count: registry.register(opts("count")).unwrap(),
            kept: users.with(By { user: "kept" }).keep(),
            users,
            sizes: registry.register(opts("size")).unwrap(),
            open: registry.register(opts("open")).unwrap(),
            opens: registry.register(opts("opens")).unwrap(),
            latest: registry.register(opts("latest")).unwrap(),
            owned: OWNED
                .map(|(combine, name)| registry.register(opts(name).combine(combine)).unwrap()),
            ratio: registry.register(opts("ratio").combine(Combine::Min)).unwrap(),
            of_users: registry.register(opts("of_users").combine(each)).unwrap(),
            info: registry.register(opts("about")).unwrap(),
            state: registry.register(opts("state")).unwrap(),
            registry,
        }
    }

    /// Obeys an order of another process; returns the answer.
    fn obey(&self, order: &str) -> String {
        let (order, n) = order.split_once(' ').unwrap_or((order, "0"));
        let n: i64 = n.parse().unwrap();
        match order {
            "add" => {
                self.count.add(n as u64);
                self.kept.add(n as u64);
                self.users.with(By { user: "looked up" }).add(n as u64);
                (0..n).for_each(|_| self.sizes.observe(1));
            }
            "hold" => {
                self.open.add(n);
                self.opens.with(By { user: "a" }).add(n);
            }
            "set" => {
                self.owned.iter().for_each(|gauge| gauge.set(n));
                self.ratio.set(n as f64 / 2.0);
                self.of_users.with(By { user: "a" }).set(n);
                self.latest.set(n);
                self.info.set(By { user: &n.to_string() });
                self.state.set(n > 0);
            }
            "get" => return format!("{} {}", self.count.get(), self.kept.get()),
            "held" => return format!("{} {}", self.open.get(), self.owned[0].get()),
            "wipe" => return self.registry.wipe(|_| true).to_string(),
            "unregister" => return self.registry.unregister("count_total").to_string(),
            "again" => drop(self.registry.register::<Counter>(opts("count")).unwrap()),
            "show" => return format!("{:?}", self.shown("count_total")),
            other => panic!("an order {other:?}"),
        }
        "done".to_owned()
    }

    /// The values of a family without labels of its own.
    fn shown(&self, name: &str) -> Vec<f64> {
        let snapshot = self.registry.snapshot();
        snapshot.select(name, &[]).filter_map(|series| series.as_f64()).collect()
    }

    fn owned(&self) -> [Vec<f64>; 4] {
        let mut shown = OWNED.map(|(_, name)| self.shown(name));
        shown.iter_mut().for_each(|values| values.sort_by(f64::total_cmp));
        shown
    }
}

/// Not a claim of its own: a process that obeys orders.
#[test]
fn obeys_orders() {
    let Some(path) = std::env::var_os("TALEA_TEST_SHARED") else { return };
    let metrics = Metrics::open(path.as_ref());
    obey(|order| metrics.obey(order));
}

/// Another process that has the registry.
fn start(shm: &Shm) -> Worker {
    start_by(again!("obeys_orders"), shm)
}

/// The first process of a pid namespace, as in a container.
fn start_in_a_pid_namespace(shm: &Shm) -> Worker {
    let inside = again!("obeys_orders");
    let mut command = Command::new("unshare");
    if shm.file().metadata().unwrap().uid() != 0 {
        command.arg("--map-root-user");
    }
    command.args(["--pid", "--fork", "--kill-child"]);
    command.arg(inside.get_program()).args(inside.get_args());
    start_by(command, shm)
}

fn start_by(mut command: Command, shm: &Shm) -> Worker {
    Worker::obeying(command.env("TALEA_TEST_SHARED", shm.file()))
}

#[test]
fn gauges_combine_what_the_living_set_and_the_dead_leave_with_theirs() {
    let shm = Shm::new("gauges");
    let here = Metrics::open(&shm.file());
    let [mut one, mut two, mut three] = [(); 3].map(|()| start(&shm));
    assert_eq!(here.owned(), [vec![0.0], vec![], vec![], vec![]], "nobody set anything");
    for (process, value) in [(&mut one, 4), (&mut two, -7), (&mut three, 10)] {
        process.ask(&format!("set {value}"));
    }
    assert_eq!(here.owned(), [vec![7.0], vec![10.0], vec![-7.0], vec![-7.0, 4.0, 10.0]]);
    assert_eq!(here.shown("ratio"), [-3.5]);
    assert_eq!(here.shown("latest"), [10.0]);
    let snapshot = here.registry.snapshot();
    for (process, value) in [(&one, 4.0), (&two, -7.0), (&three, 10.0)] {
        let pid = process.id().to_string();
        assert_eq!(snapshot.value("each", &[("pid", &pid)]), Some(value));
        let labels = [("user", "a"), ("pid", pid.as_str())];
        assert_eq!(snapshot.value("of_users", &labels), Some(value));
    }
    assert_eq!(one.ask("held"), "0 4", "each sees its own");

    let dead = three.id().to_string();
    three.kill();
    assert_eq!(here.owned(), [vec![-3.0], vec![4.0], vec![-7.0], vec![-7.0, 4.0]]);
    assert_eq!(here.registry.snapshot().value("each", &[("pid", &dead)]), None);
    assert_eq!(here.shown("of_users").len(), 2);
    two.kill();
    assert_eq!(here.owned(), [vec![4.0], vec![4.0], vec![4.0], vec![4.0]]);
    assert_eq!(here.shown("ratio"), [2.0]);
    here.obey("set 1");
    assert_eq!(here.owned(), [vec![5.0], vec![4.0], vec![1.0], vec![1.0, 4.0]]);

    // One that comes takes the place of a dead one, and nothing that was set there.
    let mut four = start(&shm);
    assert_eq!(four.ask("held"), "0 0");
    assert_eq!(here.owned(), [vec![5.0], vec![4.0], vec![1.0], vec![1.0, 4.0]]);
    four.ask("set 0");
    assert_eq!(here.owned(), [vec![5.0], vec![4.0], vec![0.0], vec![0.0, 1.0, 4.0]]);
}

/// The processes that show a value of their own, by the names that they have.
fn named(region: &Path) -> Vec<String> {
    let snapshot = talea::outside::Reader::open(region).unwrap().look().unwrap().snapshot;
    let labels = snapshot.select("each", &[]).flat_map(|series| series.labels());
    let mut pids: Vec<String> = labels.map(|(_, pid)| pid).collect();
    pids.sort();
    pids
}

/// This process does not open the region: children that other tests fork would take slots of it for a moment.
#[test]
fn a_process_keeps_its_name_when_others_of_its_id_come_and_die() {
    let shm = Shm::new("names");
    let file = shm.file();
    let _first = start(&shm);
    // Each is the first process of a namespace, as in a container.
    let start = || {
        let mut process = start_in_a_pid_namespace(&shm);
        process.ask("set 1");
        process
    };
    // A namespace ends soon after who made it.
    let left = |count: usize| {
        while named(&file).len() != count {
            std::thread::yield_now();
        }
    };
    let (one, two) = (start(), start());
    assert_eq!(named(&file), ["1", "1@2"]);
    one.kill();
    left(1);
    assert_eq!(named(&file), ["1@2"], "its namesake is dead");
    let (three, four) = (start(), start());
    assert_eq!(named(&file), ["1@1", "1@2", "1@3"], "they came while one lived");
    drop([two, three, four]);
    left(0);
    let _alone = start();
    assert_eq!(named(&file), ["1"], "nobody has its id");

    // No two have one name, whatever the region says.
    let _other = start();
    assert_eq!(named(&file), ["1", "1@2"]);
    let words = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
    let namesake = 20_480 + 2 * 128 + 4 * 8;
    words.write_all_at(&0_u64.to_le_bytes(), namesake).unwrap();
    assert_eq!(named(&file), ["1@1", "1@2"]);
}

#[test]
fn a_killed_process_takes_what_it_held_and_leaves_what_it_counted() {
    let shm = Shm::new("held");
    let here = Metrics::open(&shm.file());
    let [mut one, mut two, mut three] = [(); 3].map(|()| start(&shm));
    for (n, process) in [&mut one, &mut two, &mut three].into_iter().enumerate() {
        process.ask(&format!("hold {}", 10_i64.pow(n as u32)));
        process.ask(&format!("add {}", 10_i64.pow(n as u32)));
    }
    let counted = || {
        let snapshot = here.registry.snapshot();
        let users = ["kept", "looked up"];
        users.iter().for_each(|user| {
            assert_eq!(snapshot.value("users_total", &[("user", user)]), Some(111.0));
        });
        assert_eq!(snapshot.histogram("size", &[]).unwrap().count(), 111);
        assert_eq!(here.count.get(), 111);
        snapshot.value("count_total", &[])
    };
    assert_eq!((here.shown("open"), here.shown("opens")), (vec![111.0], vec![111.0]));
    assert_eq!(counted(), Some(111.0));
    assert_eq!(two.ask("held"), "10 0");
    two.kill();
    assert_eq!((here.shown("open"), here.shown("opens")), (vec![101.0], vec![101.0]));
    three.kill();
    assert_eq!((here.shown("open"), here.shown("opens")), (vec![1.0], vec![1.0]));
    one.kill();
    assert_eq!((here.shown("open"), here.shown("opens")), (vec![0.0], vec![0.0]));
    assert_eq!(counted(), Some(111.0));
}

#[test]
fn the_latest_value_stays_after_its_writer_died() {
    let shm = Shm::new("latest");
    let here = Metrics::open(&shm.file());
    let [mut one, mut two] = [(); 2].map(|()| start(&shm));
    one.ask("set 5");
    two.ask("set -6");
    two.kill();
    one.kill();
    assert_eq!((here.shown("latest"), here.latest.get()), (vec![-6.0], -6));
    let snapshot = here.registry.snapshot();
    assert_eq!(snapshot.value("about_info", &[("user", "-6")]), Some(1.0));
    assert_eq!(snapshot.select("about_info", &[]).count(), 1);
    assert_eq!(snapshot.value("state", &[("state", "false")]), Some(1.0));
    assert_eq!(snapshot.value("state", &[("state", "true")]), Some(0.0));
}

#[test]
fn a_wipe_by_one_process_holds_for_the_handles_of_all() {
    let shm = Shm::new("wipe");
    let here = Metrics::open(&shm.file());
    let mut there = start(&shm);
    for round in 0..3 {
        there.ask("add 5");
        here.obey("add 2");
        assert_eq!([there.ask("get"), here.obey("get")], ["7 7", "7 7"]);
        there.ask("hold 3");
        let wiped = if round % 2 == 0 { there.ask("wipe") } else { here.obey("wipe") };
        assert_eq!(wiped, "true");
        assert_eq!([there.ask("get"), here.obey("get")], ["0 0", "0 0"]);
        assert_eq!(here.shown("count_total"), [0.0]);
        assert_eq!(here.shown("users_total"), [0.0], "what is kept stays");
        assert_eq!(here.shown("open"), [3.0], "what is in flight stays");
        there.ask("hold -3");
        there.ask("add 1");
        assert_eq!([there.ask("get"), here.obey("get")], ["1 1", "1 1"]);
        let snapshot = here.registry.snapshot();
        assert_eq!(snapshot.total("users_total", &[]), Some(2.0));
        assert_eq!(snapshot.histogram("size", &[]).unwrap().count(), 1);
        here.obey("wipe");
    }
}

#[test]
fn a_family_that_one_process_unregisters_ends_and_restarts_for_all() {
    let shm = Shm::new("ended");
    let here = Metrics::open(&shm.file());
    let mut there = start(&shm);
    there.ask("add 5");
    assert_eq!(here.obey("unregister"), "true");
    assert_eq!(there.ask("unregister"), "false", "it is ended already");
    there.ask("add 7");
    here.obey("add 7");
    assert_eq!([there.ask("show"), here.obey("show")], ["[]", "[]"]);
    assert_eq!(here.shown("users_total").len(), 2, "others go on");

    // Its name is free for another one, which the old handles do not disturb.
    let other: Counter = here.registry.register(Opts::new("count", "Other.")).unwrap();
    other.add(2);
    there.ask("add 100");
    assert_eq!([there.ask("show"), here.obey("show")], ["[2.0]", "[2.0]"]);
    assert!(here.registry.unregister("count_total"));

    // The old one again, by whom it was not ended.
    there.ask("again");
    assert_eq!([there.ask("show"), here.obey("show")], ["[0.0]", "[0.0]"]);
    there.ask("add 3");
    here.obey("add 4");
    assert_eq!([there.ask("show"), here.obey("show")], ["[7.0]", "[7.0]"]);
    other.add(50);
    assert_eq!([there.ask("show"), here.obey("show")], ["[7.0]", "[7.0]"]);
}

#[test]
fn a_process_that_comes_finds_what_there_is_after_all_others_died() {
    let shm = Shm::new("after");
    {
        let [mut one, mut two] = [(); 2].map(|()| start(&shm));
        one.ask("add 3");
        two.ask("add 4");
        one.ask("hold 9");
        two.ask("set 8");
        one.kill();
        two.kill();
    }
    let mut late = start(&shm);
    assert_eq!(late.ask("get"), "7 7");
    assert_eq!(late.ask("held"), "0 0");
    let here = Metrics::open(&shm.file());
    assert_eq!((here.shown("count_total"), here.shown("latest")), (vec![7.0], vec![8.0]));
    assert_eq!(here.shown("open"), [0.0]);
    assert_eq!(here.owned(), [vec![0.0], vec![], vec![], vec![]]);
}

#[test]
fn processes_that_start_and_count_at_once_add_up() {
    let shm = Shm::new("at-once");
    let counted = std::thread::scope(|scope| {
        let threads = [(); 6].map(|()| {
            scope.spawn(|| {
                let mut process = start(&shm);
                (0..20).for_each(|_| drop(process.ask("add 5")));
                process
            })
        });
        drop(threads.map(|thread| thread.join().unwrap()));
        Metrics::open(&shm.file())
    });
    assert_eq!(counted.shown("count_total"), [600.0]);
    assert_eq!(counted.registry.snapshot().total("users_total", &[]), Some(1200.0));
    assert_eq!(counted.registry.snapshot().histogram("size", &[]).unwrap().count(), 600);
}

#[test]
fn a_service_that_runs_gets_the_path_that_it_was_given_once_that_is_free() {
    let shm = Shm::new("beside");
    // Others may write to it, so it is not used.
    std::fs::write(shm.file(), b"").unwrap();
    std::fs::set_permissions(shm.file(), Permissions::from_mode(0o666)).unwrap();
    let here = Metrics::open(&shm.file());
    here.count.add(3);
    let sibling = shm.file().with_extension("talea.1");
    let counted = |path: &Path| {
        let look = talea::outside::Reader::open(path).and_then(|reader| reader.look());
        look.ok().and_then(|look| look.snapshot.value("count_total", &[]))
    };
    (0..3).for_each(|_| here.registry.sweep());
    assert_eq!((counted(&shm.file()), counted(&sibling)), (None, Some(3.0)));
    std::fs::remove_file(shm.file()).unwrap();
    (0..2).for_each(|_| here.registry.sweep());
    here.count.inc();
    assert_eq!((counted(&shm.file()), counted(&sibling)), (Some(4.0), None));
    let mut later = start(&shm);
    later.ask("add 5");
    assert_eq!(here.shown("count_total"), [9.0]);
}

mod forked {
    #![allow(unsafe_code)]

    use super::*;

    /// A child that was made by `fork` and waits; it is killed at the end.
    struct Child(libc::pid_t);

    impl Drop for Child {
        fn drop(&mut self) {
            // SAFETY: the child is ours and not yet waited for.
            unsafe {
                libc::kill(self.0, libc::SIGKILL);
                libc::waitpid(self.0, std::ptr::null_mut(), 0);
            }
        }
    }

    /// Forks a child that does `work` and then waits. Returns when the work is done.
    fn fork(work: impl FnOnce()) -> Child {
        let mut pipe = [0; 2];
        // SAFETY: `pipe` has room for two descriptors.
        assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
        // SAFETY: the child calls nothing that another thread may hold a lock of: it
        // adds to cells, writes to a pipe and pauses.
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
        let child = Child(pid);
        let mut done = 0_u8;
        // SAFETY: one byte is read into one byte, then both ends are closed once.
        unsafe {
            libc::close(pipe[1]);
            assert_eq!(libc::read(pipe[0], (&raw mut done).cast(), 1), 1);
            libc::close(pipe[0]);
        }
        child
    }

    #[test]
    fn a_forked_child_holds_its_own_and_counts_for_all() {
        let here = Metrics::of(Registry::for_test().unwrap());
        let work = |n: i64| {
            let here = &here;
            move || {
                here.open.add(n);
                here.count.add(n as u64);
                here.kept.add(n as u64);
                here.users.with(By { user: "looked up" }).add(n as u64);
                here.owned.iter().for_each(|gauge| gauge.set(n));
                here.latest.set(n);
            }
        };
        work(1)();
        let (one, other) = (fork(work(10)), fork(work(100)));
        assert_eq!(here.open.get(), 1, "a parent does not hold what its children do");
        assert_eq!(here.owned[0].get(), 1);
        assert_eq!(here.shown("open"), [111.0]);
        assert_eq!(here.owned(), [vec![111.0], vec![100.0], vec![1.0], vec![1.0, 10.0, 100.0]]);
        let snapshot = here.registry.snapshot();
        assert_eq!(snapshot.value("each", &[("pid", &other.0.to_string())]), Some(100.0));

        drop(other);
        assert_eq!(here.shown("open"), [11.0]);
        assert_eq!(here.owned(), [vec![11.0], vec![10.0], vec![1.0], vec![1.0, 10.0]]);
        drop(one);
        assert_eq!(here.owned(), [vec![1.0], vec![1.0], vec![1.0], vec![1.0]]);
        assert_eq!((here.shown("open"), here.shown("latest")), (vec![1.0], vec![100.0]));
        assert_eq!((here.count.get(), here.kept.get()), (111, 111));
        assert_eq!(here.registry.snapshot().total("users_total", &[]), Some(222.0));
    }

    #[test]
    fn a_forked_child_observes_into_the_buckets_of_its_parent_and_makes_some() {
        let here = Metrics::of(Registry::for_test().unwrap());
        let shown = || here.registry.snapshot().histogram("size", &[]).unwrap();
        (0..10).for_each(|_| here.sizes.observe(3));
        let children = [1, 2].map(|n| {
            fork(|| {
                here.sizes.observe(3);
                (0..5).for_each(|_| here.sizes.observe(1_000_000 * n));
            })
        });
        here.sizes.observe(1_000_000);
        let native = shown().native().unwrap().clone();
        let counts: Vec<u64> = native.positive().iter().map(|&(_, count)| count).collect();
        assert_eq!((counts, shown().count()), (vec![12, 6, 5], 23));
        assert_eq!(shown().sum(), 12.0 * 3.0 + 16_000_000.0);

        // After a wipe all count from zero, whichever process made the buckets.
        assert!(here.registry.wipe(|_| true));
        let later = fork(|| here.sizes.observe(2_000_000));
        here.sizes.observe(3);
        let native = shown().native().unwrap().clone();
        assert_eq!((native.positive().len(), native.count(), shown().count()), (2, 2, 2));
        drop((children, later));
        assert_eq!(shown().native(), Some(&native), "the dead leave what they counted");
    }

    #[test]
    fn a_count_that_a_parent_held_before_it_forked_counts_once() {
        let here = Metrics::of(Registry::for_test().unwrap());
        here.open.add(5);
        here.owned.iter().for_each(|gauge| gauge.set(5));
        // The child adds the value that it reads to a count that both see.
        let child = fork(|| here.count.add(here.open.get() as u64 * 100 + 1));
        assert_eq!(here.count.get(), 1, "a child begins with nothing");
        assert_eq!(here.shown("open"), [5.0]);
        assert_eq!(here.owned(), [vec![5.0], vec![5.0], vec![5.0], vec![5.0]]);
        drop(child);
        assert_eq!(here.shown("open"), [5.0]);
    }
}
