//! A metrics server in a child made by `fork`.
#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};

use talea::Registry;
use talea_http::MetricsServer;

#[test]
fn a_child_that_drops_its_copy_ends_and_its_parent_serves_on() {
    let registry = Registry::for_test().unwrap();
    let server = MetricsServer::bind(([127, 0, 0, 1], 0).into(), &registry).unwrap();
    // SAFETY: this is the only test here, and the child drops a value and ends.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // SAFETY: the calls have no conditions. The alarm ends a child that waits for ever.
        unsafe {
            libc::alarm(60);
            let is_dropped = catch_unwind(AssertUnwindSafe(|| drop(server))).is_ok();
            libc::_exit(i32::from(!is_dropped));
        }
    }
    let mut status = 0;
    // SAFETY: the child is ours and not yet waited for.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child ended by itself");
    TcpStream::connect(server.local_addr()).unwrap();
}
