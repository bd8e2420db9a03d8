//! What is lost if a sender is killed while its receiver is down: `talea serve --push`, beside a Prometheus in agent mode
//! that scrapes `talea serve` and forwards what it finds. The receiver is a real Prometheus, which is asked what it has.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use crate::agent::Agent;
use crate::{Arguments, Running, prometheus_agent};

/// From one part to the next: up, down, down after the senders were killed, up again.
const PART: Duration = Duration::from_secs(20);
/// The longest that the senders have to send what waits, or the receiver to start.
const LONGEST: Duration = Duration::from_secs(90);

const SENDERS: [&str; 2] = ["talea", "prometheus"];

/// A Prometheus that takes what is pushed, and can be killed and started again.
struct Receiver<'a> {
    program: &'a str,
    folder: &'a Path,
    address: SocketAddr,
    process: Option<Running>,
}

impl Receiver<'_> {
    fn start(&mut self) -> Result<()> {
        let config = self.folder.join("receiver.yml");
        fs::write(&config, "")?;
        let child = Command::new(self.program)
            .arg("--web.enable-remote-write-receiver")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", self.folder.join("received").display()))
            .arg(format!("--web.listen-address={}", self.address))
            .arg("--log.level=error")
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| format!("starting {}", self.program))?;
        self.process = Some(Running(child));
        let began = Instant::now();
        while get(self.address, "/-/ready").is_err() {
            if began.elapsed() > LONGEST {
                bail!("the receiver does not start");
            }
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// The samples of a sender's series between two times, in seconds since 1970.
    fn samples(&self, sender: &str, from: f64, to: f64) -> Result<u64> {
        let range = (to - from).ceil() as u64;
        // The names of all series are the same: there are fewer than make a second family.
        let query = format!(
            "/api/v1/query?time={to}&query=sum(count_over_time(%7B__name__%3D%22shop_orders_0_total%22,agent%3D%22{sender}%22%7D%5B{range}s%5D))"
        );
        let body = get(self.address, &query)?;
        // The last text of the response is the value.
        let value = body.rsplit('"').nth(1).context("a value")?;
        value.parse().with_context(|| format!("found {body}, expected a number of samples"))
    }
}

/// Prints what each sender lost.
pub(crate) fn run(arguments: &Arguments, folder: &Path, region: &Path) -> Result<()> {
    let free = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let mut receiver =
        Receiver { program: &arguments.prometheus, folder, address: free, process: None };
    receiver.start()?;
    let push = folder.join("push.toml");
    let text = format!(
        "[[remote_write]]\nurl = \"http://{free}/api/v1/write\"\ninterval = \"1s\"\nqueue = \"queue\"\n\
         labels = {{ agent = \"talea\" }}\nbackoff = [\"100ms\", \"1s\"]\n"
    );
    fs::write(&push, text)?;
    let plain = Agent::serve_with(region, &[])?;
    let talea = || Agent::serve_with(region, &["--push".as_ref(), push.as_os_str()]);
    let url = format!("http://{free}/api/v1/write");
    let prometheus = || prometheus_agent(arguments, folder, plain.address, &url, 1);

    let (mut first, mut second) = (talea()?, prometheus()?);
    sleep(PART / 4);
    let began = now();
    sleep(PART);
    receiver.process = None;
    sleep(PART);
    // Each is killed by SIGKILL as it is dropped.
    drop((first, second));
    (first, second) = (talea()?, prometheus()?);
    sleep(PART);
    receiver.start()?;
    sleep(PART);
    let ended = now();

    // One sample a second of each.
    let expected = (ended - began).round() as u64 * arguments.series as u64;
    println!("{:12}  samples expected  in the receiver     missing", "");
    for sender in SENDERS {
        let since = Instant::now();
        let mut found = receiver.samples(sender, began, ended)?;
        while since.elapsed() < LONGEST {
            sleep(PART / 4);
            let next = receiver.samples(sender, began, ended)?;
            if next == found {
                break;
            }
            found = next;
        }
        let missing = expected.saturating_sub(found);
        let share = missing as f64 / expected as f64 * 100.0;
        println!("{sender:12}  {expected:16}  {found:15}  {missing:9} ({share:.1} %)");
    }
    drop((first, second));
    Ok(())
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// The body of a response.
fn get(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(LONGEST))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    let (head, body) = response.split_once("\r\n\r\n").context("a response with a head")?;
    if !head.contains(" 200 ") {
        bail!("{path}: {response}");
    }
    Ok(body.to_owned())
}
