//! Instructions of the hottest paths: unlike times, they are the same on every
//! machine that runs the same build.
//!
//! What is counted is `talea-operations`, a program beside this one that does
//! each operation by a function of its own. The atomic path is counted in
//! valgrind as it runs. There are no restartable sequences in valgrind, and
//! a debugger that steps through one aborts it, so that path is counted in the
//! disassembly.

mod callgrind;
mod disassembly;
mod straight_path;

use std::path::Path;

use anyhow::{Context, Result, ensure};
use talea_region::{AddPath, Region};

use crate::http_layer;
use crate::report::Row;
use crate::verdict::Verdict;

/// How the command line and the results call it.
pub(crate) const NAME: &str = "instructions";

pub(crate) const NOTE: &str = "instructions: of one operation, without call and return, on a \
    handle that a family gave. talea-atomic is counted by callgrind as it runs; talea in the \
    disassembly, as the shortest way through the function that makes the operation's adds in \
    restartable sequences and calls nothing. encode: of one series, in a text of 1,000. \
    request-5: what a request takes more than where the same router, with 5 layers, is unmetered. \
    existing-5: what it takes more than axum's own router with 5 layers, metered from outside; \
    per_layer-5: with a meter around each of the 5.";

struct Operation {
    name: &'static str,
    /// Times in one call.
    times: u64,
    /// Calls to count in valgrind: a multiple of 15 and of 18, after which the
    /// operations' values start anew.
    calls: u64,
    /// Where it is counted in the disassembly.
    path: Option<Straight>,
}

/// The mark of an operation's straight path among others through its function.
#[derive(Clone, Copy)]
struct Straight {
    function: &'static str,
    /// Adds in restartable sequences.
    adds: usize,
    /// How often it goes back to where a loop begins.
    rounds: usize,
}

const OPERATIONS: [Operation; 7] = [
    Operation {
        name: "counter-kept",
        times: 1,
        calls: 9000,
        path: Some(Straight { function: "counter_kept", adds: 1, rounds: 0 }),
    },
    Operation {
        name: "float-kept",
        times: 1,
        calls: 9000,
        path: Some(Straight { function: "float_kept", adds: 1, rounds: 0 }),
    },
    // It goes on in another function.
    Operation { name: "observe-classic", times: 1, calls: 9000, path: None },
    Operation {
        name: "observe-dual",
        times: 1,
        calls: 9000,
        // Two adds in a row end once.
        path: Some(Straight { function: "observe", adds: 1, rounds: 0 }),
    },
    Operation { name: "counter-enum18", times: 1, calls: 9000, path: None },
    Operation { name: "counter-fixed18", times: 1, calls: 9000, path: None },
    Operation { name: "encode", times: 1000, calls: 10, path: None },
];

/// Counts all of them. Operations that cannot be counted here are left out, and reported on
/// standard error.
pub(crate) fn count() -> Vec<Row> {
    all().unwrap_or_else(|error| {
        eprintln!("{NAME}: left out: {error:#}");
        Vec::new()
    })
}

fn all() -> Result<Vec<Row>> {
    let own = std::env::current_exe().context("finding this program")?;
    let program = own.with_file_name("talea-operations");
    ensure!(program.exists(), "{} is not there: build all of talea-bench", program.display());
    let mut rows = Vec::new();
    for operation in &OPERATIONS {
        eprintln!("{NAME}: {}", operation.name);
        let row = |subject, counted: Result<f64>| match counted {
            Ok(instructions) => Some(row(operation.name, subject, instructions)),
            Err(error) => {
                eprintln!("{NAME}: {} of {subject}: left out: {error:#}", operation.name);
                None
            }
        };
        if let Some(straight) = operation.path {
            rows.extend(row("talea", in_disassembly(&program, straight)));
        }
        rows.extend(row("talea-atomic", in_valgrind(&program, operation)));
    }
    for (metered, bare) in REQUESTS {
        for layers in http_layer::LAYERS {
            let name = format!("{metered}-{layers}");
            eprintln!("{NAME}: {name}");
            match of_request(&program, metered, bare, layers) {
                Ok(instructions) => rows.push(row(&name, "talea-atomic", instructions)),
                Err(error) => eprintln!("{NAME}: {name}: left out: {error:#}"),
            }
        }
    }
    Ok(rows)
}

/// The budget beside what was counted: what a request takes does not grow with the layers.
pub(crate) fn judge(rows: &[Row]) -> Vec<Verdict> {
    let of = |layers: usize| {
        let bench = format!("{NAME}/request-{layers}");
        rows.iter().find(|row| row.bench == bench)?.instructions
    };
    let [few, .., many] = http_layer::LAYERS.map(of);
    let verdict = |(few, many)| Verdict {
        budget: "instructions of a request, 20 layers to 1",
        found: many / few,
        limit: 1.02,
    };
    few.zip(many).map(verdict).into_iter().collect()
}

fn row(name: &str, subject: &str, instructions: f64) -> Row {
    Row {
        bench: format!("{NAME}/{name}"),
        threads: 1,
        subject: subject.to_owned(),
        ns: None,
        allocs_per_op: None,
        bytes_per_op: None,
        ratio_to_talea: None,
        instructions: Some(instructions),
        latencies: None,
        more: None,
        takes: None,
    }
}

fn in_disassembly(program: &Path, straight: Straight) -> Result<f64> {
    Region::choose_add_path(AddPath::Restartable);
    ensure!(
        (Region::add_path() == AddPath::Restartable),
        "there are no restartable sequences here"
    );
    let function = disassembly::function(program, straight.function)?;
    let count = straight_path::length(&function, straight.adds, straight.rounds);
    count.map(|count| count as f64).context("no way through the function fits")
}

fn in_valgrind(program: &Path, operation: &Operation) -> Result<f64> {
    let of_call = of_call(program, operation.name, operation.calls)?;
    Ok(of_call / operation.times as f64)
}

/// Metered routers, and the same without a meter.
const REQUESTS: [(&str, &str); 3] =
    [("request", "unmetered"), ("existing", "bare"), ("per_layer", "bare")];

/// The cost of metering for a request of a router with so many layers.
fn of_request(program: &Path, metered: &str, bare: &str, layers: usize) -> Result<f64> {
    const CALLS: u64 = 300;
    let of = |name| of_call(program, &format!("{name}-{layers}"), CALLS);
    Ok(of(metered)? - of(bare)?)
}

fn of_call(program: &Path, operation: &str, calls: u64) -> Result<f64> {
    // What only the first call does is in both runs.
    let all = 2 * calls;
    let collected = |calls| callgrind::collected(program, operation, calls, all);
    let (more, less) = (collected(all)?, collected(calls)?);
    ensure!(more > less, "{all} calls took {more} instructions, {calls} of them {less}");
    Ok((more - less) as f64 / calls as f64)
}
