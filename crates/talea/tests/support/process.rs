//! This test binary, started again to run one test in a process of its own.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Starts a test of a module in a process of its own: see `again!`. If the binary is
/// built for another processor, `TALEA_TEST_RUNNER` names the program that runs it.
pub(crate) fn again(module: &str, test: &str) -> Command {
    // The first part of a module's path is the binary.
    let test = match module.split_once("::") {
        Some((_, module)) => format!("{module}::{test}"),
        None => test.to_owned(),
    };
    let runner = std::env::var("TALEA_TEST_RUNNER").unwrap_or_default();
    let this = std::env::current_exe().unwrap();
    let mut words = runner.split_whitespace().map(OsString::from).chain([this.into()]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words).args(["--exact", &test, "--nocapture"]);
    command
}

/// Obeys orders of a worker, one a line, until there are no more.
pub(crate) fn obey(mut answer: impl FnMut(&str) -> String) {
    println!("\n{DONE}");
    for order in std::io::stdin().lines() {
        println!("{}\n{DONE}", answer(&order.unwrap()));
    }
}

/// The line at the end of an answer.
const DONE: &str = "> done";

/// A process that a test starts and sends orders, one a line. It is killed when dropped.
pub(crate) struct Worker {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let orders = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, orders, answers }
    }

    /// Starts one that [obeys](obey), and waits until it does.
    pub(crate) fn obeying(command: &mut Command) -> Self {
        let mut worker = Self::start(command);
        worker.lines_before(DONE);
        worker
    }

    pub(crate) fn ask(&mut self, order: &str) -> String {
        self.send(order);
        self.lines_before(DONE).trim_end().to_owned()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn send(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
    }

    /// The next line for which `pick` has a result, among others that the test harness prints.
    pub(crate) fn answer<T>(&mut self, pick: impl FnMut(String) -> Option<T>) -> T {
        let mut lines = self.answers.by_ref().map_while(Result::ok);
        lines.find_map(pick).expect("the other process ended by itself")
    }

    /// Kills it, and returns what it said that was not read yet; the last line may not be whole.
    pub(crate) fn kill(mut self) -> Vec<String> {
        let _ = self.child.kill();
        self.answers.by_ref().map_while(Result::ok).collect()
    }

    /// The lines before one that is `last`.
    pub(crate) fn lines_before(&mut self, last: &str) -> String {
        let lines = self.answers.by_ref().map_while(Result::ok);
        lines.take_while(|line| line != last).map(|line| line + "\n").collect()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It has no time to tidy up.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
