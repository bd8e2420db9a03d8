//! A way to a server that can be cut.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// A way to a server that can be cut.
#[derive(Clone, Debug)]
pub struct Way {
    /// Where clients connect to.
    pub address: SocketAddr,
    is_open: Arc<AtomicBool>,
}

impl Way {
    /// An open way.
    pub fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("sockets work");
        let way = Self {
            address: listener.local_addr().expect("sockets work"),
            is_open: Arc::new(AtomicBool::new(true)),
        };
        let is_open = way.is_open.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.expect("sockets work");
                if is_open.load(Relaxed) {
                    let server = TcpStream::connect(server).expect("the server listens");
                    forward(
                        client.try_clone().expect("sockets work"),
                        server.try_clone().expect("sockets work"),
                        &is_open,
                    );
                    forward(server, client, &is_open);
                }
            }
        });
        way
    }

    /// Opens or cuts it. Connections that were open when it was cut are closed with their next bytes.
    pub fn set_open(&self, is_open: bool) {
        self.is_open.store(is_open, Relaxed);
    }
}

/// Copies bytes until the way is cut.
fn forward(mut from: TcpStream, mut to: TcpStream, is_open: &Arc<AtomicBool>) {
    let is_open = is_open.clone();
    thread::spawn(move || {
        let mut bytes = [0; 1 << 16];
        while let Ok(len @ 1..) = from.read(&mut bytes) {
            if !is_open.load(Relaxed) || to.write_all(&bytes[..len]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    });
}
