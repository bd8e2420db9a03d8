//! The file of the agent's history: what the real agent and the real `talea postmortem` do with one that is damaged,
//! hostile, or another user's.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Output};

use flate2::Compression;
use flate2::write::DeflateEncoder;

use crate::support::agent::Agent;
use crate::support::event_stream::EventStream;
use crate::support::region_folder::{RegionFolder, count_orders};
use crate::support::{TALEA, assert_refused, sample, stderr, stdout, talea};

fn agent(region: &Path, history: &Path) -> Agent {
    Agent::start([region.as_os_str(), "--history".as_ref(), history.as_os_str()])
}

/// An agent that has this as its history serves.
fn assert_serves(agent: &Agent, is_in_file: u64) {
    let page = agent.scrape();
    assert!(page.contains("orders_total 5\n"), "{page}");
    assert_eq!(sample(&page, "talea_agent_history_file_up"), Some(is_in_file), "{page}");
}

fn postmortem(region: &Path, history: &Path, more: &[&str]) -> Output {
    let arguments = ["postmortem".as_ref(), region, "--history".as_ref(), history];
    talea(arguments.into_iter().chain(more.iter().map(Path::new)))
}

#[test]
fn a_history_that_is_damaged_in_whatever_way_keeps_no_agent_from_serving() {
    let folder = RegionFolder::new();
    let (_registry, _counter) = count_orders(&folder.region(), 5);
    let history = folder.at("shop.history");
    let recorded = agent(&folder.region(), &history);
    recorded.until("/postmortem", |answer| answer.status == 200);
    assert_serves(&recorded, 1);
    assert_eq!(recorded.stop(), Some(0));
    let whole = fs::read(&history).unwrap();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        bytes
    };
    let cases: [(&str, Vec<u8>); 6] = [
        ("zeros", vec![0; 1 << 16]),
        ("a first page of zeros", with(&|it| it[..4096.min(whole.len() / 2)].fill(0))),
        ("a bit of the first line", with(&|it| it[3] ^= 1)),
        ("a bit of a record", with(&|it| it[100] ^= 1)),
        ("a newer version", with(&|it| it[14] = b'3')),
        ("another kind of file", b"precious\n".to_vec()),
    ];
    for (number, (name, bytes)) in (1..).zip(&cases) {
        fs::write(&history, bytes).unwrap();
        let agent = agent(&folder.region(), &history);
        let aside = folder.at(&format!("shop.history.stale-{number}"));
        let line = agent.says(aside.to_str().unwrap());
        assert!(line.contains("damaged") || line.contains("no history"), "{name}: {line}");
        assert_serves(&agent, 1);
        let lost: Option<u64> = sample(&agent.scrape(), "talea_agent_history_lost_bytes_total");
        assert!(lost.is_some_and(|lost| lost > 0), "{name}: {lost:?}");
        assert_eq!(&fs::read(aside).unwrap(), bytes, "{name}");
        agent.until("/postmortem", |answer| answer.status == 200);
        drop(agent);
        // The new file is whole: nothing is said of it.
        let read = postmortem(&folder.region(), &history, &[]);
        assert_eq!((read.status.code(), stderr(&read)), (Some(0), String::new()), "{name}");
    }
    // A kill leaves half a record, a crash of the machine zeros: what is behind the last whole record is cut off.
    for (lost, bytes) in [
        (None, whole[..whole.len() - 1].to_vec()),
        (None, whole[..whole.len() - 20].to_vec()),
        (Some(4096), with(&|it| it.extend([0; 4096]))),
    ] {
        fs::write(&history, bytes).unwrap();
        let agent = agent(&folder.region(), &history);
        agent.says("the rest is cut off");
        assert_serves(&agent, 1);
        let counted: Option<u64> = sample(&agent.scrape(), "talea_agent_history_lost_bytes_total");
        assert!(counted.is_some_and(|counted| counted > 0 && lost.is_none_or(|it| it == counted)));
        assert!(!agent.stderr().iter().any(|line| line.contains("stale")), "{:?}", agent.stderr());
    }
}

#[test]
fn the_book_names_every_metric_of_the_agent() {
    let folder = RegionFolder::new();
    let (_registry, _counter) = count_orders(&folder.region(), 5);
    let page = agent(&folder.region(), &folder.at("shop.history")).scrape();
    let book = include_str!("../../../../docs/reference/agent.md");
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE talea_"));
    let names: Vec<&str> = types.filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains(&"agent_region_up") && names.contains(&"agent_history_bytes"), "{page}");
    for name in names {
        assert!(book.contains(&format!("`{name}")), "docs/reference/agent.md lacks {name}");
    }
}

#[test]
fn a_history_that_cannot_be_opened_keeps_no_agent_from_serving() {
    let folder = RegionFolder::new();
    let (_registry, _counter) = count_orders(&folder.region(), 5);
    fs::create_dir(folder.at("folder")).unwrap();
    assert!(Command::new("mkfifo").arg(folder.at("fifo")).status().unwrap().success());
    symlink(folder.at("elsewhere"), folder.at("link")).unwrap();
    fs::write(folder.at("shared"), "").unwrap();
    fs::set_permissions(folder.at("shared"), PermissionsExt::from_mode(0o666)).unwrap();
    let held = folder.at("held");
    let _holder = agent(&folder.region(), &held);
    let region = folder.region();
    for (path, reason) in [
        (folder.at("folder"), "no regular file"),
        (folder.at("fifo"), "no regular file"),
        (folder.at("link"), "symbolic link"),
        (folder.at("shared"), "chmod go-w"),
        (folder.at("missing/shop.history"), "No such file"),
        (held, "another agent writes to it"),
        (region.clone(), "it is a region"),
        ("/dev/full".into(), "no regular file"),
    ] {
        let agent = agent(&region, &path);
        let line = agent.says("memory has the history");
        assert!(line.contains(reason), "{line}");
        assert_serves(&agent, 0);
        // Memory has it.
        agent.until("/postmortem", |answer| answer.status == 200);
    }
    assert!(!folder.at("elsewhere").exists());
}

#[test]
#[ignore = "needs root: a full disk"]
fn as_root_a_full_disk_keeps_no_agent_from_serving() {
    let folder = RegionFolder::new();
    let (_registry, _counter) = count_orders(&folder.region(), 5);
    // Seen by this agent alone, and gone with it.
    let script = "mount -t tmpfs -o size=8k none \"$0\" && ! head -c 9k /dev/zero >\"$0/filler\" && exec \"$@\"";
    let disk = folder.at("disk");
    fs::create_dir(&disk).unwrap();
    let can_mount = Command::new("unshare").args(["--mount", "true"]).status();
    if !can_mount.is_ok_and(|status| status.success()) {
        println!("ignored: no file system can be mounted here");
        return;
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(&disk).args([TALEA, "serve"]);
    let agent =
        Agent::by(command.arg(folder.region()).arg("--history").arg(disk.join("shop.history")));
    let agent = agent.unwrap();
    let line = agent.says("memory has the history");
    assert!(line.contains("No space left on device"), "{line}");
    assert_serves(&agent, 0);
    agent.until("/postmortem", |answer| answer.status == 200);
    let hello = EventStream::open(&agent.address, "/live/events").next().unwrap().1;
    let fault = hello["agentFaults"][0].as_str().unwrap();
    assert!(fault.contains("No space left on device"), "{hello}");
}

#[test]
#[ignore = "needs root: a history of another user"]
fn as_root_neither_agent_nor_postmortem_uses_the_history_of_another_user() {
    let folder = RegionFolder::new();
    let (registry, _counter) = count_orders(&folder.region(), 5);
    // Where `postmortem` looks by itself.
    let history = folder.at("shop.talea.history");
    let writer = agent(&folder.region(), &history);
    writer.until("/postmortem", |answer| answer.status == 200);
    drop(writer);
    chown(&history, Some(1), None).unwrap();
    let bytes = fs::read(&history).unwrap();

    let agent = agent(&folder.region(), &history);
    assert!(agent.says("memory has the history").contains("it belongs to the user 1, expected 0"));
    assert_serves(&agent, 0);
    drop(agent);
    assert_eq!(fs::read(&history).unwrap(), bytes);

    let reason = ["it belongs to the user 1, expected 0", "name it with --owner"];
    assert_refused(&postmortem(&folder.region(), &history, &[]), &reason);
    let of_region_alone = talea(["postmortem".as_ref(), folder.region().as_os_str()]);
    assert_eq!(of_region_alone.status.code(), Some(0));
    assert!(stderr(&of_region_alone).contains(reason[0]), "{}", stderr(&of_region_alone));
    let named = postmortem(&folder.region(), &history, &["--owner", "1"]);
    assert_eq!((named.status.code(), stderr(&named)), (Some(0), String::new()));
    assert_ne!(stdout(&named), stdout(&of_region_alone));
    drop(registry);
}

/// A number, seven bits a byte.
fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A history of one record.
fn history_of(record: &[u8]) -> Vec<u8> {
    // Of the first store, from the tick 0 on.
    let body = [&[0; 9], record].concat();
    let mut bytes = b"talea history 2\n\xC1re\xFE".to_vec();
    bytes.extend((body.len() as u32).to_le_bytes());
    bytes.extend(crc32fast::hash(&body).to_le_bytes());
    bytes.extend(body);
    bytes
}

/// A packed tick of so many bytes, all 0.
fn packed(len: u64) -> Vec<u8> {
    let mut record = vec![2];
    put_number(&mut record, 1);
    put_number(&mut record, len);
    let mut encoder = DeflateEncoder::new(record, Compression::best());
    (0..len >> 20).for_each(|_| encoder.write_all(&[0; 1 << 20]).unwrap());
    encoder.finish().unwrap()
}

/// A tick of so many series, all with one long text.
fn with_long_text(series: u64) -> Vec<u8> {
    // The first of its block, at the beginning of all times; no series is gone.
    let mut record = vec![1, 0, 0, 0];
    put_number(&mut record, series);
    record.push(0);
    put_number(&mut record, 100_000);
    record.extend([b'x'; 100_000]);
    record.extend([0; 5]);
    // The family and a label are that text.
    (1..series).for_each(|_| record.extend([1, 0, 1, 1, 1, 0, 0, 0]));
    record.push(0);
    record
}

#[test]
fn a_small_history_takes_little_memory() {
    let folder = RegionFolder::new();
    for (name, record, reason) in [
        // It is refused before it takes memory.
        ("packed", packed(256 << 20), "bytes are damaged"),
        ("text", with_long_text(20_000), "has nothing of a region"),
    ] {
        let history = folder.at(name);
        fs::write(&history, history_of(&record)).unwrap();
        assert!(record.len() < 300_000, "{}", record.len());
        let script = "ulimit -v 300000; exec timeout 300 $0 postmortem /dev/shm/none --history $1";
        let output = Command::new("sh").args(["-c", script, TALEA]).arg(&history).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}: {output:?}");
        assert!(stderr(&output).contains(reason), "{name}: {output:?}");
    }
}
