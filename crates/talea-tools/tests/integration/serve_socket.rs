//! `talea serve --listen unix:PATH`: the real agent, and curl.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::region_folder::{RegionFolder, count_orders};
use crate::support::{Running, TALEA, assert_refused, signal, talea, wait_for};

fn agent(folder: &RegionFolder, socket: &Path, more: &[&str]) -> Running {
    let mut command = Command::new(TALEA);
    command.arg("serve").arg(folder.region());
    command.arg("--listen").arg(format!("unix:{}", socket.display())).args(more);
    Running(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// The body of a path, once there is one.
fn body(socket: &Path, path: &str) -> String {
    wait_for(|| {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--fail", "--noproxy", "*", "--unix-socket"]).arg(socket);
        let output = curl.arg(format!("http://agent.example{path}")).output().unwrap();
        let is_done = output.status.success();
        is_done.then(|| String::from_utf8(output.stdout).unwrap()).ok_or(output.status)
    })
}

#[test]
fn a_client_of_this_machine_scrapes_a_unix_socket_that_its_mode_opens() {
    let folder = RegionFolder::new();
    let (_shop, _) = count_orders(&folder.region(), 3);
    let socket = folder.at("metrics.sock");
    let group = fs::metadata(folder.0.path()).unwrap().gid().to_string();
    for (more, mode) in [
        (&[][..], 0o600),
        (&["--socket-group", &group], 0o660),
        (&["--socket-mode", "666"], 0o666),
        (&["--socket-group", &group, "--socket-mode", "620"], 0o620),
    ] {
        let mut agent = agent(&folder, &socket, more);
        assert!(body(&socket, "/metrics").contains("orders_total 3"));
        assert_eq!(body(&socket, "/healthz"), "ok\n", "any host is answered for");
        assert!(body(&socket, "/readyz").starts_with("ready"));
        let found = fs::metadata(&socket).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{more:?}");
        signal(&agent.0, "TERM");
        agent.0.wait().unwrap();
        assert!(!socket.exists(), "it goes with the agent");
    }
}

#[test]
fn the_socket_of_a_killed_agent_is_replaced_and_the_one_of_a_living_agent_is_not() {
    let folder = RegionFolder::new();
    let (_shop, _) = count_orders(&folder.region(), 3);
    let socket = folder.at("metrics.sock");
    let mut first = agent(&folder, &socket, &[]);
    body(&socket, "/healthz");
    first.0.kill().unwrap();
    first.0.wait().unwrap();
    assert!(socket.exists(), "nobody removed it");
    let _second = agent(&folder, &socket, &[]);
    assert!(body(&socket, "/metrics").contains("orders_total 3"));
    let listen = format!("unix:{}", socket.display());
    let region = folder.region().display().to_string();
    let third = talea(["serve", &region, "--listen", &listen]);
    crate::support::assert_ends(&third, 2, &["metrics.sock", "a living process listens there"]);
    assert!(body(&socket, "/metrics").contains("orders_total 3"));
}

#[test]
fn options_of_a_socket_are_refused_where_there_is_no_socket() {
    let folder = RegionFolder::new();
    let region = folder.region().display().to_string();
    let output = talea(["serve", &region, "--socket-mode", "660"]);
    assert_refused(&output, &["--socket-mode", "for 127.0.0.1:9465", "--listen unix:"]);
    for (arguments, part) in [
        (["--listen", "unix:"], "expected a path"),
        (["--socket-mode", "rw"], "a mode in octal"),
        (["--socket-mode", "1777"], "a mode in octal"),
        (["--socket-group", "no-such-group"], "no such group"),
    ] {
        let output = talea(["serve", &region].into_iter().chain(arguments));
        crate::support::assert_ends(&output, 2, &[part]);
    }
}
