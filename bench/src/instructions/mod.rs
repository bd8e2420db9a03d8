//! Instructions of the hottest paths: unlike times, they are the same on every
//! machine that runs the same build.
//!
//! They are counted in `talea-operations`, a program beside this one that does each operation in
//! a function of its own. Callgrind counts the atomic path as it runs. Valgrind has no restartable
//! sequences, and a debugger that steps through one aborts it, so that path is counted in the
//! disassembly.

mod callgrind;
mod disassembly;
mod straight_path;

use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, ensure};
use talea_region::{AddPath, Region};

use crate::http_layer::case::LAYERS;
use crate::measure::pin_by_number;
use crate::row::Row;
use crate::verdict::Verdict;

pub(crate) const NAME: &str = "instructions";

pub(crate) const NOTE: &str = "instructions: of one operation, without call and return, on a \
    handle that a family gave. talea-atomic is counted by callgrind as it runs; talea in the \
    disassembly, as the shortest path through the function that makes the operation's add in a \
    restartable sequence and calls nothing. encode: of one series, in a text of 1,000. \
    request-5: of a request beyond the same router, with 5 layers, unmetered. existing-5: of a \
    request beyond axum's own router with 5 layers, metered from outside; per_layer-5: with a \
    meter around each of the 5.";

struct Operation {
    name: &'static str,
    /// Times in one call.
    times: u64,
    /// Calls to count in valgrind: a multiple of 15 and of 18, so that each of the operation's
    /// values is used equally often.
    calls: u64,
    /// The function to count in the disassembly.
    function: Option<&'static str>,
}

const OPERATIONS: [Operation; 7] = [
    Operation { name: "counter-kept", times: 1, calls: 9000, function: Some("counter_kept") },
    Operation { name: "float-kept", times: 1, calls: 9000, function: Some("float_kept") },
    // It goes on in another function.
    Operation { name: "observe-classic", times: 1, calls: 9000, function: None },
    // Its two adds are one sequence.
    Operation { name: "observe-dual", times: 1, calls: 9000, function: Some("observe") },
    Operation { name: "counter-enum18", times: 1, calls: 9000, function: None },
    Operation { name: "counter-fixed18", times: 1, calls: 9000, function: None },
    Operation { name: "encode", times: 1000, calls: 10, function: None },
];

/// Counts all operations. Those that cannot be counted here are left out, and reported on
/// standard error.
pub(crate) fn count() -> Vec<Row> {
    // A thread of its own, as only its programs are to be pinned.
    let counted = thread::scope(|scope| scope.spawn(all).join());
    counted.unwrap_or_else(|panic| resume_unwind(panic)).unwrap_or_else(|error| {
        eprintln!("{NAME}: left out: {error:#}");
        Vec::new()
    })
}

fn all() -> Result<Vec<Row>> {
    // The programs that it starts stay on its CPU: on another one they would claim a plane, for 130,000
    // instructions.
    pin_by_number(0);
    let own = std::env::current_exe().context("finding this program")?;
    let program = own.with_file_name("talea-operations");
    ensure!(program.exists(), "{} is not there: build all of talea-bench", program.display());
    let mut rows = Vec::new();
    let mut add = |name: &str, subject: &str, counted: Result<f64>| match counted {
        Ok(count) => {
            eprintln!("{NAME}: {name} of {subject}: {count:.0}");
            let row = Row::new(format!("{NAME}/{name}"), subject);
            rows.push(Row { instructions: Some(count), ..row });
        }
        Err(error) => eprintln!("{NAME}: {name} of {subject}: left out: {error:#}"),
    };
    for &Operation { name, times, calls, function } in &OPERATIONS {
        if let Some(function) = function {
            add(name, "talea", in_disassembly(&program, function));
        }
        let counted = of_call(&program, name, calls);
        add(name, "talea-atomic", counted.map(|count| count / times as f64));
    }
    for (metered, bare) in REQUESTS {
        for layers in LAYERS {
            let counted = of_request(&program, metered, bare, layers);
            add(&format!("{metered}-{layers}"), "talea-atomic", counted);
        }
    }
    Ok(rows)
}

/// The budget beside the counts: instructions of a request do not grow with the layers.
pub(crate) fn judge(rows: &[Row]) -> Vec<Verdict> {
    let [few, .., many] = LAYERS.map(|layers| {
        let bench = format!("{NAME}/request-{layers}");
        rows.iter().find(|row| row.bench == bench)?.instructions
    });
    few.zip(many)
        .map(|(few, many)| Verdict {
            budget: "instructions of a request, 20 layers to 1",
            found: many / few,
            limit: 1.02,
        })
        .into_iter()
        .collect()
}

fn in_disassembly(program: &Path, function: &str) -> Result<f64> {
    Region::choose_add_path(AddPath::Restartable);
    ensure!(Region::add_path() == AddPath::Restartable, "there are no restartable sequences here");
    let count = straight_path::length(&disassembly::function(program, function)?);
    count.map(|count| count as f64).context("no path through the function fits")
}

/// Metered routers, and the same without a meter.
const REQUESTS: [(&str, &str); 3] =
    [("request", "unmetered"), ("existing", "bare"), ("per_layer", "bare")];

/// The cost of metering a request of a router with so many layers.
fn of_request(program: &Path, metered: &str, bare: &str, layers: usize) -> Result<f64> {
    // So many that the first observations of each octave, whose number depends on the time, add little.
    const CALLS: u64 = 3000;
    let of = |name| of_call(program, &format!("{name}-{layers}"), CALLS);
    Ok(of(metered)? - of(bare)?)
}

/// Instructions of one call of an operation, by callgrind.
fn of_call(program: &Path, operation: &str, calls: u64) -> Result<f64> {
    // The extra work of the first call is in both runs.
    let all = 2 * calls;
    let collected = |calls| callgrind::collected(program, operation, calls, all);
    let (more, less) = (collected(all)?, collected(calls)?);
    ensure!(more > less, "{all} calls took {more} instructions, {calls} of them {less}");
    Ok((more - less) as f64 / calls as f64)
}
