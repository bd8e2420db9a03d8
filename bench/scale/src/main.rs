//! `make bench-scale`: one counter without labels that more and more threads add to, for machines with
//! many CPUs. Each measurement is a process of its own; the subjects alternate.

mod subject;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use comfy_table::{CellAlignment, Table, presets::ASCII_MARKDOWN};
use talea_statistics::median;

use subject::Subject;

/// Measures the CPU time of an add to one counter by so many threads at once.
#[derive(Debug, Parser)]
struct Arguments {
    /// Numbers of threads. Default: 1, 2, 4 and so on up to the CPUs, 8 and 64.
    #[arg(long, value_delimiter = ',')]
    threads: Vec<usize>,
    /// Measurements of each subject with each number of threads.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Adds of a measurement, by all threads together.
    #[arg(long, default_value_t = 20_000_000)]
    adds: u64,
    /// This program as it is built for musl, for the subject `talea-musl`.
    #[arg(long)]
    musl: Option<PathBuf>,
    /// Only measures this subject, in this process.
    #[arg(long, hide = true)]
    run: Option<Subject>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some(subject) = arguments.run {
        let &[threads] = &arguments.threads[..] else { anyhow::bail!("one number of threads") };
        println!("{}", subject.measure(threads, arguments.adds)?);
        return Ok(());
    }
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
    let threads = match &arguments.threads[..] {
        [] => usual_threads(cpus),
        threads => threads.to_vec(),
    };
    let subjects: Vec<Subject> = Subject::all()
        .filter(|subject| *subject != Subject::TaleaMusl || arguments.musl.is_some())
        .collect();
    let mut found = vec![vec![Vec::new(); threads.len()]; subjects.len()];
    for _ in 0..arguments.rounds {
        for (column, &threads) in threads.iter().enumerate() {
            for (subject, row) in subjects.iter().zip(&mut found) {
                row[column].push(in_a_process(*subject, threads, &arguments)?);
            }
        }
    }
    let medians: Vec<Vec<f64>> = found
        .iter()
        .map(|row| row.iter().map(|rounds| median(rounds.iter().copied())).collect())
        .collect();
    println!("CPU time of one add to one counter, ns, by the number of threads; {cpus} CPUs\n");
    println!("{}", table(&subjects, &threads, &medians));
    Ok(())
}

/// Powers of two up to the number of CPUs, that number, and two that are more than few machines have.
fn usual_threads(cpus: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1), |threads| Some(threads * 2));
    let mut threads: Vec<usize> = powers.take_while(|threads| *threads < cpus).collect();
    threads.extend([cpus, 8, 64]);
    threads.sort_unstable();
    threads.dedup();
    threads
}

fn in_a_process(subject: Subject, threads: usize, arguments: &Arguments) -> Result<f64> {
    let this = std::env::current_exe().context("finding this program")?;
    let program: &Path = match (subject, &arguments.musl) {
        (Subject::TaleaMusl, Some(musl)) => musl,
        _ => &this,
    };
    let mut command = Command::new(program);
    command.args(["--run", &subject.name(), "--threads", &threads.to_string()]);
    command.args(["--adds", &arguments.adds.to_string()]).env_remove("TALEA_PLANES");
    if let Some(path) = subject.path() {
        command.env("TALEA_PLANES", path);
    }
    let output = command.output().with_context(|| format!("starting {}", program.display()))?;
    let (text, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{} failed: {errors}", subject.name());
    text.trim().parse().with_context(|| format!("{} printed {text:?}", subject.name()))
}

fn table(subjects: &[Subject], threads: &[usize], medians: &[Vec<f64>]) -> Table {
    let mut table = Table::new();
    table.load_preset(ASCII_MARKDOWN);
    table.set_header(
        std::iter::once("subject".to_owned())
            .chain(threads.iter().map(|threads| threads.to_string())),
    );
    for (subject, row) in subjects.iter().zip(medians) {
        let cells = row.iter().map(|ns| format!("{ns:.2}"));
        table.add_row(std::iter::once(subject.name()).chain(cells));
    }
    for column in 1..=threads.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
