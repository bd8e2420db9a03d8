//! `talea serve` that the system refuses things: the real agent, whose limit of file descriptors is
//! lowered under it, or whose paths cannot be looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Instant;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::support::agent::Agent;
use crate::support::keep_alive::KeepAlive;
use crate::support::region_folder::{RegionFolder, count_orders as region};
use crate::support::{TALEA, sample, stderr, wait_for};

/// The counts of the regions of a page, by their names.
fn orders(page: &str) -> BTreeMap<&str, u64> {
    let lines = page.lines().filter_map(|line| line.strip_prefix("orders_total{region=\""));
    lines
        .map(|line| {
            let (region, value) = line.split_once("\"} ").unwrap();
            (region, value.parse().unwrap())
        })
        .collect()
}

/// The value of a series of the agent's own.
fn own(page: &str, series: &str) -> u64 {
    sample(page, series).unwrap_or_else(|| panic!("{series}: {page}"))
}

struct Client(KeepAlive);

impl Client {
    fn of(agent: &Agent) -> Self {
        let mut client = Self(KeepAlive::new(TcpStream::connect(&agent.address).unwrap()));
        // So that the agent has accepted it.
        assert_eq!(client.get("/healthz").0, 200);
        client
    }

    fn get(&mut self, path: &str) -> (u16, String, String) {
        self.0.get(path, "")
    }

    fn scrape(&mut self) -> String {
        let (status, head, body) = self.get("/metrics");
        assert_eq!(status, 200, "{head}{body}");
        body
    }

    /// Scrapes until an answer is as expected.
    fn until(&mut self, is: impl Fn(u16, &str) -> bool, mut before_each: impl FnMut()) -> String {
        wait_for(|| {
            before_each();
            let (status, head, body) = self.get("/metrics");
            let answer = format!("{head}{body}");
            if is(status, &body) { Ok(answer) } else { Err(answer) }
        })
    }
}

/// Lowers the agent's limit of descriptors, or lifts it again.
fn limit(agent: &Agent, descriptors: Option<u64>) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit { current: descriptors.or(maximum), maximum };
    prlimit(Pid::from_raw(agent.pid() as i32), Resource::Nofile, limit).unwrap();
}

/// Leaves the agent no descriptor that it could open. A descriptor that is open for a moment only
/// is missed: repeat it until the shortage shows.
fn leave_none(agent: &Agent) {
    let names = fs::read_dir(format!("/proc/{}/fd", agent.pid())).unwrap();
    let open: BTreeSet<u64> =
        names.map(|name| name.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect();
    limit(agent, (0..).find(|number| !open.contains(number)));
}

#[test]
fn out_of_descriptors_it_serves_what_it_has_open() {
    let place = RegionFolder::new();
    let regions: Vec<_> =
        (0..3).map(|n| region(&place.at(&format!("r{n}.talea")), 100 * n)).collect();
    let agent = place.agent();
    let mut client = Client::of(&agent);
    let all = BTreeMap::from([("r0", 0), ("r1", 100), ("r2", 200)]);
    assert_eq!(orders(&client.scrape()), all);

    let errors = |page: &str| own(page, "talea_agent_directory_errors_total");
    client.until(
        |status, page: &str| {
            assert_eq!((status, orders(page)), (200, all.clone()), "{page}");
            errors(page) > 10
        },
        || leave_none(&agent),
    );
    regions[0].1.add(7);
    let page = client.scrape();
    assert_eq!(orders(&page), BTreeMap::from([("r0", 7), ("r1", 100), ("r2", 200)]));
    for region in ["r0", "r1", "r2"] {
        assert_eq!(own(&page, &format!("talea_agent_region_up{{region=\"{region}\"}}")), 1);
    }

    // A removed region goes, a replaced one stays as it is, a new one waits.
    fs::remove_file(place.at("r2.talea")).unwrap();
    let _new = [region(&place.at("new"), 500), region(&place.at("r3.talea"), 300)];
    fs::rename(place.at("new"), place.at("r1.talea")).unwrap();
    let page = client.scrape();
    assert_eq!(orders(&page), BTreeMap::from([("r0", 7), ("r1", 100)]), "{page}");
    assert_eq!(own(&page, "talea_agent_region_up{region=\"r1\"}"), 1);
    assert!(own(&page, "talea_agent_region_errors_total{region=\"r1\"}") > 0);

    limit(&agent, None);
    let all = BTreeMap::from([("r0", 7), ("r1", 500), ("r3", 300)]);
    client.until(|status, page| status == 200 && orders(page) == all, || ());
}

/// However many regions there are, the agent listens, answers many clients at a time and keeps its history.
#[test]
fn regions_leave_descriptors_for_clients_and_for_the_agent() {
    let place = RegionFolder::new();
    let (_seed, _counter) = region(&place.at("seed"), 7);
    for n in 0..120 {
        fs::copy(place.at("seed"), place.at(&format!("r{n:03}.talea"))).unwrap();
    }
    for (limit, share) in [(32, 4), (64, 20), (100, 38)] {
        let history = place.at(&format!("{limit}.history"));
        let script = format!("ulimit -n {limit}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, TALEA, "serve", "--dir"]).arg(place.0.path());
        let agent = Agent::by(command.arg("--history").arg(&history)).unwrap();
        let mut clients: Vec<Client> = (0..share).map(|_| Client::of(&agent)).collect();
        let page = clients[0].scrape();
        assert_eq!(orders(&page).len(), share, "{page}");
        assert_eq!(own(&page, "talea_agent_history_file_up"), 1);
        let up = |page: &str, up| {
            page.lines()
                .filter(|line: &&str| {
                    line.starts_with("talea_agent_region_up{") && line.ends_with(up)
                })
                .count()
        };
        assert_eq!((up(&page, "} 1"), up(&page, "} 0")), (share, 120 - share), "{page}");
        let line = agent.says(&format!("{} of 120 regions wait for file descriptors", 120 - share));
        assert!(line.contains("ulimit -n"), "{line}");
        let few = agent.says(&format!("at most {share} clients and {share} regions"));
        assert!(few.contains(&format!("{limit} files may be open")), "{few}");
        // They are served once there is room.
        let moved = place.at("moved");
        let served = "r000.talea";
        fs::rename(place.at(served), &moved).unwrap();
        let next = format!("r{share:03}");
        clients[1].until(|status, page| status == 200 && orders(page).contains_key(&*next), || ());
        fs::rename(&moved, place.at(served)).unwrap();
        let page = clients[2].scrape();
        assert!(!orders(&page).contains_key("r000") && orders(&page).len() == share, "{page}");
        for client in &mut clients {
            assert_eq!(client.get("/healthz").0, 200);
        }
        assert_eq!(own(&page, "talea_agent_accept_errors_total"), 0);
    }
}

#[test]
fn lines_about_descriptors_that_come_and_go_are_written_once_a_minute() {
    let place = RegionFolder::new();
    let _stays = region(&place.at("shop.talea"), 1);
    let began = Instant::now();
    let agent = place.agent();
    let mut client = Client::of(&agent);
    let errors = |page: &str| own(page, "talea_agent_directory_errors_total");
    for _ in 0..20 {
        let before = errors(&client.scrape());
        client.until(|_, page| errors(page) > before, || leave_none(&agent));
        limit(&agent, None);
        // The directory is listed again: a scrape adds no error.
        let page = client.scrape();
        client.until(|_, now: &str| errors(now) == errors(&page), || ());
    }
    let lines = agent.stderr();
    let minutes = began.elapsed().as_secs() / 60;
    for part in ["cannot be listed: Too many open files", "shop"] {
        let about = lines.iter().filter(|line| line.contains(part)).count() as u64;
        assert!((1..=1 + minutes).contains(&about), "{about} lines about {part:?}: {lines:#?}");
    }
}

#[test]
fn without_a_descriptor_for_any_region_a_scrape_is_refused_rather_than_empty() {
    let place = RegionFolder::new();
    let agent = place.agent();
    let mut client = Client::of(&agent);
    assert!(orders(&client.scrape()).is_empty(), "there is none, which is no shortage");
    let refused = client.until(|status, _| status == 503, || leave_none(&agent));
    assert!(refused.contains("retry-after: 1\r\n"), "{refused}");
    assert!(refused.contains("out of file descriptors"), "{refused}");
    let _comes = region(&place.at("shop.talea"), 5);
    assert_eq!(client.get("/metrics").0, 503);
    assert_eq!(client.get("/readyz").0, 503);
    assert_eq!(client.get("/healthz").0, 200);

    limit(&agent, None);
    let page = client.until(
        |status, page: &str| status == 200 && orders(page) == BTreeMap::from([("shop", 5)]),
        || (),
    );
    assert!(own(&page, "talea_agent_scrapes_total{outcome=\"refused\"}") >= 2, "{page}");
}

#[test]
fn a_named_file_that_cannot_be_opened_for_want_of_descriptors_is_no_empty_page() {
    let place = RegionFolder::new();
    let path = place.at("shop.talea");
    let agent = Agent::start([&path]);
    let mut client = Client::of(&agent);
    assert!(!client.scrape().contains("orders"), "it is not there, which is no shortage");
    leave_none(&agent);
    let _comes = region(&path, 5);
    client.until(|status, page| status == 503 || page.contains("orders"), || leave_none(&agent));
    limit(&agent, None);
    let page = client.until(|status, _| status == 200, || ());
    assert!(page.contains("orders_total 5\n"), "{page}");
}

#[test]
fn an_agent_without_a_descriptor_for_metrics_of_its_own_says_so_once() {
    // With one descriptor more each time it comes further.
    let said = (6..64).map(|descriptors| {
        let script = format!("ulimit -n {descriptors}; exec {TALEA} serve --dir /dev/shm");
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        stderr(&output)
    });
    let said = said.into_iter().find(|said| said.contains("cannot make a region")).unwrap();
    let expected = "error: cannot make a region in memory: Too many open files (os error 24)\n";
    assert_eq!(said, expected);
}

#[test]
fn a_region_whose_path_cannot_be_looked_at_is_served_as_it_is_open() {
    let place = RegionFolder::new();
    let folder = place.at("folder");
    fs::create_dir(&folder).unwrap();
    let (_stays, counter) = region(&folder.join("shop.talea"), 5);
    let agent = Agent::start(["--dir".as_ref(), folder.as_os_str()]);
    let mut client = Client::of(&agent);
    assert_eq!(orders(&client.scrape())["shop"], 5);
    // A link that leads to itself, which is not that there is no such file.
    fs::rename(&folder, place.at("away")).unwrap();
    let began = Instant::now();
    symlink(&folder, &folder).unwrap();
    counter.add(1);
    for _ in 0..10 {
        let page = client.scrape();
        assert_eq!(orders(&page).get("shop"), Some(&6), "{page}");
        assert_eq!(own(&page, "talea_agent_region_up{region=\"shop\"}"), 1);
    }
    let line = agent.says("what is open goes on being served");
    assert!(line.contains("shop: cannot look at ") && line.contains("symbolic links"), "{line}");
    let times = agent.stderr().iter().filter(|said| **said == line).count() as u64;
    assert!(times <= 1 + began.elapsed().as_secs() / 60, "{times}");
    fs::remove_file(&folder).unwrap();
    assert!(orders(&client.scrape()).is_empty(), "nothing is there");
}

#[test]
fn a_directory_that_is_a_file_by_now_has_no_regions() {
    let place = RegionFolder::new();
    let folder = place.at("folder");
    fs::create_dir(&folder).unwrap();
    let _goes = region(&folder.join("shop.talea"), 5);
    let agent = Agent::start(["--dir".as_ref(), folder.as_os_str()]);
    let mut client = Client::of(&agent);
    assert_eq!(orders(&client.scrape()).len(), 1);
    fs::rename(&folder, place.at("away")).unwrap();
    fs::write(&folder, "").unwrap();
    assert!(orders(&client.scrape()).is_empty());
    assert!(agent.says("cannot be listed").contains("Not a directory"));
}
