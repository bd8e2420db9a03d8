//! Progress on standard error: a bar on a terminal, a plain line a minute otherwise.

use std::fmt::Write;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval_at};

use talea_load::Window;
use talea_statistics::figures::{counted, whole};
use talea_view::screen::note;

const BAR_EVERY: Duration = Duration::from_millis(100);
const LINE_EVERY: Duration = Duration::from_secs(60);

/// The progress of one load; it ends with [`Progress::end`] or when it is dropped.
pub struct Progress {
    /// None if nothing is shown.
    task: Option<JoinHandle<()>>,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Shows how many of `total` requests are done, if that is known, until it ends; nothing if `quiet`. Needs a
    /// tokio runtime.
    pub fn begin(label: &str, total: Option<u64>, window: Window, quiet: bool) -> Self {
        if quiet {
            return Self { task: None, bar: None };
        }
        if std::io::stderr().is_terminal() {
            let bar = bar(label, total);
            let shown = bar.clone();
            let task = every(BAR_EVERY, move || shown.set_position(window.requests_done()));
            return Self { task: Some(task), bar: Some(bar) };
        }
        let (label, begun) = (label.to_owned(), Instant::now());
        let task = every(LINE_EVERY, move || {
            let done = window.requests_done();
            let seconds = begun.elapsed().as_secs();
            let done = match total {
                Some(total) => format!("{} of {}", whole(done), counted(total, "request")),
                None => counted(done, "request"),
            };
            note(format_args!("{label}: {done} after {seconds} s"));
        });
        Self { task: Some(task), bar: None }
    }

    /// Takes the bar away.
    pub fn end(self) {}
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(label: &str, total: Option<u64>) -> ProgressBar {
    let template = match total {
        Some(_) => {
            "{prefix}  {bar:32.cyan/dim} {human_pos} of {human_len} requests  {rate:.dim}  \
             {eta:.dim}"
        }
        None => "{prefix}  {spinner:.cyan} {human_pos} requests  {rate:.dim}",
    };
    let style = ProgressStyle::with_template(template)
        .expect("the template is a constant")
        .progress_chars("━━╌")
        .with_key("rate", |state: &ProgressState, out: &mut dyn Write| {
            // There is nowhere to report a bar that cannot be written.
            let _ = write!(out, "{}/s", whole(state.per_sec() as u64));
        });
    let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new).with_style(style);
    bar.set_prefix(label.to_owned());
    bar
}

fn every(period: Duration, mut show: impl FnMut() + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut ticks = interval_at(tokio::time::Instant::now() + period, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            show();
        }
    })
}
