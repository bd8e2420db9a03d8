//! `talea serve --push`: pushes the agent's page to the receivers of a file, also after the file has changed.

mod file;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use talea::{Counter, Family, Gauge, Labels, Metrics};
use talea_agent::serve::Agent;
use talea_load::stop::Stop;
use talea_push::{Config, Pusher};
use talea_view::screen::note;

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often a pusher is tried again that could not start.
const START_EVERY: Duration = Duration::from_secs(10);

/// Pushers, one for each receiver of a file. Each has a thread of its own, so that no receiver delays a scrape or
/// another receiver.
pub(crate) struct Pushing {
    agent: Agent,
    path: PathBuf,
    metrics: PushingMetrics,
    /// What the file held when it was looked at last, or why it could not be read.
    content: Result<Vec<Config>, String>,
    /// By the names of the receivers.
    pushers: BTreeMap<String, Push>,
}

/// A receiver of the file.
struct Push {
    config: Config,
    /// `None` if it could not start.
    pusher: Option<Pusher>,
    tried: Instant,
    error: String,
}

#[derive(Labels)]
struct TargetLabel<'a> {
    target: &'a str,
}

#[derive(Debug, Metrics)]
#[metrics(prefix = "talea_agent")]
struct PushingMetrics {
    /// Whether metrics are pushed to a receiver: 0 if its pusher cannot start, for the reason on standard error.
    push_up: Family<TargetLabel<'static>, Gauge>,
    /// Changes of the push configuration that were not taken because they were bad.
    push_config_errors: Counter,
}

impl Pushing {
    /// Starts to push what an agent serves.
    ///
    /// # Errors
    /// The file cannot be read, or says what cannot be done. That a queue or a certificate cannot be used is no
    /// error: it is reported, and tried again.
    pub(crate) fn start(agent: &Agent, path: &Path) -> Result<Self> {
        let configs = file::read(path)?;
        let metrics = PushingMetrics::new();
        talea::install(agent.registry(), &[&metrics])?;
        let (agent, path, content) = (agent.clone(), path.to_owned(), Ok(configs.clone()));
        let mut pushing = Self { agent, path, metrics, content, pushers: BTreeMap::new() };
        pushing.replace(configs);
        pushing.start_missing();
        Ok(pushing)
    }

    /// Goes on until it is stopped. Then each pusher collects for the last time and has a second to send.
    pub(crate) async fn run(mut self, mut stop: Stop) {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let is_over = tokio::select! {
                () = stop.requested() => true,
                _ = ticks.tick() => false,
            };
            // It reads files, and ends pushers.
            let looked = tokio::task::spawn_blocking(move || {
                match is_over {
                    true => end(std::mem::take(&mut self.pushers).into_values()),
                    false => self.refresh(),
                }
                self
            });
            let Ok(pushing) = looked.await else { return };
            self = pushing;
            if is_over {
                return;
            }
        }
    }

    fn refresh(&mut self) {
        let content = file::read(&self.path).map_err(|error| format!("{error:#}"));
        if content != self.content {
            match &content {
                Ok(configs) => self.replace(configs.clone()),
                Err(error) => {
                    self.metrics.push_config_errors.inc();
                    note(format_args!("talea serve: {error}; the receivers in force stay"));
                }
            }
            self.content = content;
        }
        self.start_missing();
    }

    /// Ends the pushers that are not in the file as they are. What waits in a folder waits for the next one there.
    fn replace(&mut self, configs: Vec<Config>) {
        let mut wanted: BTreeMap<String, Config> =
            configs.into_iter().map(|config| (config.target(), config)).collect();
        let (kept, ended) = std::mem::take(&mut self.pushers)
            .into_iter()
            .partition(|(name, push)| wanted.get(name) == Some(&push.config));
        self.pushers = kept;
        for name in ended.keys() {
            self.metrics.push_up.remove(TargetLabel { target: name });
        }
        end(ended.into_values());
        wanted.retain(|name, _| !self.pushers.contains_key(name));
        for (name, config) in wanted {
            self.pushers.insert(name, Push::new(config));
        }
    }

    fn start_missing(&mut self) {
        for (name, push) in &mut self.pushers {
            if push.pusher.is_none()
                && (push.error.is_empty() || push.tried.elapsed() >= START_EVERY)
            {
                push.start(&self.agent, name);
            }
            let is_up = push.pusher.is_some();
            self.metrics.push_up.with(TargetLabel { target: name }).set(is_up.into());
        }
    }
}

impl Push {
    fn new(config: Config) -> Self {
        Self { config, pusher: None, tried: Instant::now(), error: String::new() }
    }

    fn start(&mut self, agent: &Agent, name: &str) {
        self.tried = Instant::now();
        match Pusher::start_for(agent, agent.registry(), self.config.clone()) {
            Ok(pusher) => {
                note(format_args!("talea serve: pushing to {name}"));
                self.pusher = Some(pusher);
            }
            Err(error) => {
                let error = error.to_string();
                if error != self.error {
                    note(format_args!(
                        "talea serve: nothing is pushed to {name}, which is tried again every {START_EVERY:?}: {error}"
                    ));
                }
                self.error = error;
            }
        }
    }
}

/// Ends pushers at the same time, since each may take a second.
fn end(pushes: impl Iterator<Item = Push>) {
    thread::scope(|scope| {
        for push in pushes {
            scope.spawn(move || drop(push.pusher));
        }
    });
}
