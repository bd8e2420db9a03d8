//! A metrics server in a child made by `fork`.
#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};

use talea::Registry;
use talea_http::MetricsServer;

#[test]
fn a_child_that_drops_its_copy_leaves_its_parent_the_server_and_the_port() {
    let registry = Registry::for_test().unwrap();
    let server = MetricsServer::bind(([127, 0, 0, 1], 0).into(), &registry).unwrap();
    let address = server.local_addr();
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(b"HEAD / HTTP/1.1\r\n\r\n").unwrap();
    client.read_exact(&mut [0]).unwrap();
    let (mut ours, mut theirs) = UnixStream::pair().unwrap();
    // SAFETY: this is the only test here, and the child drops values, waits and ends.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // SAFETY: the calls have no conditions. The alarm ends a child that waits for ever.
        unsafe {
            libc::alarm(60);
            drop(ours);
            let is_dropped = catch_unwind(AssertUnwindSafe(|| drop(server))).is_ok();
            let _ = theirs.write(&[0]);
            let _ = theirs.read(&mut [0]);
            libc::_exit(i32::from(!is_dropped));
        }
    }
    drop(theirs);
    ours.read_exact(&mut [0]).unwrap();
    TcpStream::connect(address).unwrap();
    drop(server);
    // The connection ends or is reset while the child lives on, and not when its alarm has ended it.
    let _ = client.read_to_end(&mut Vec::new());
    TcpListener::bind(address).unwrap();
    drop(ours);
    let mut status = 0;
    // SAFETY: the child is ours and not yet waited for.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child ended by itself");
}
