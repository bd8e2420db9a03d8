//! `talea top`: the endpoints of a service as it runs, in a terminal.
//!
//! `state` is what a user sees and chose, `keys` changes that, `draw` shows it; `plain` prints it where
//! there is no terminal. The readings come from [`talea_agent::live`].

mod draw;
mod keys;
mod plain;
mod state;

use std::convert::Infallible;
use std::io::{self, IsTerminal};
use std::pin::pin;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use talea_load::stop::Stop;
use tokio::sync::mpsc;

use self::state::{Next, State};
use crate::arguments::TopArguments;
use crate::ending::Ending;
use crate::page_source::Source;
use talea_agent::change::{Change, Changes};
use talea_agent::live::{Reading, Window};
use talea_view::screen;

/// Shows a source until the user quits, or prints it once. Fails if the source cannot be read at first.
pub(crate) async fn run(arguments: TopArguments, mut stop: Stop) -> Result<Ending> {
    let TopArguments { mut source, every, window, once, tls } = arguments;
    source.trust(&tls)?;
    let first = tokio::select! {
        first = source.read() => first?,
        () = stop.requested() => return Ok(Ending::Interrupted),
    };
    let mut window = Window::new(window);
    window.add(&first);
    if once || !io::stdout().is_terminal() {
        let second = tokio::select! {
            second = second(&mut source, every) => second?,
            () = stop.requested() => return Ok(Ending::Interrupted),
        };
        window.add(&second);
        let changes = Change::shown(&second.families).unwrap_or_default();
        let text = plain::text(&window.table(), &changes);
        screen::write(text.as_bytes()).context("standard output")?;
        return Ok(Ending::Clean);
    }
    let state = State::new(source.to_string(), every);
    // It restores the terminal also if the program panics.
    let mut terminal = ratatui::try_init().context("the terminal cannot be used")?;
    let ended = watch(&mut terminal, state, source, window, stop).await;
    ratatui::restore();
    ended
}

async fn second(source: &mut Source, every: Duration) -> Result<Reading> {
    tokio::time::sleep(every).await;
    source.read().await
}

async fn watch(
    terminal: &mut DefaultTerminal,
    mut state: State,
    source: Source,
    mut window: Window,
    mut stop: Stop,
) -> Result<Ending> {
    let mut events = events();
    let (send, mut readings) = mpsc::channel(1);
    let mut reads = pin!(read_on(source, state.every, send));
    let mut changes = Changes::default();
    state.show(window.table(), Vec::new());
    loop {
        terminal.draw(|frame| draw::draw(frame, &mut state)).context("the terminal")?;
        tokio::select! {
            event = events.recv() => match event {
                Some(Ok(Event::Key(key))) => {
                    if keys::press(&mut state, key) == Next::Quit {
                        return Ok(Ending::Clean);
                    }
                }
                // A change of size is drawn.
                Some(Ok(_)) => {}
                // Nobody is there any more.
                Some(Err(_)) | None => return Ok(Ending::Clean),
            },
            never = &mut reads => match never {},
            Some(reading) = readings.recv() => match reading {
                Ok(reading) => {
                    window.add(&reading);
                    state.trouble = None;
                    if let Some(step) = window.latest() {
                        changes.add(reading.unix_millis, step);
                    }
                    // An agent has watched for longer.
                    let shown = Change::shown(&reading.families);
                    let shown = shown.unwrap_or_else(|| changes.current().to_vec());
                    state.show(window.table(), shown);
                }
                Err(error) => {
                    let since = state.trouble.take().map_or_else(Instant::now, |it| it.0);
                    state.trouble = Some((since, format!("{error:#}")));
                }
            },
            () = stop.requested() => return Ok(Ending::Interrupted),
        }
    }
}

/// Reads a source again and again. A reading may take long, as that of a service that does not answer: keys have
/// their effect meanwhile.
async fn read_on(
    mut source: Source,
    every: Duration,
    readings: mpsc::Sender<Result<Reading>>,
) -> Infallible {
    let mut ticks = tokio::time::interval(every);
    // After a time in which the machine slept, one reading is enough.
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // The first is at once, and there is a reading already.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        // Nobody receives it any more once the terminal is given back.
        let _ = readings.send(source.read().await).await;
    }
}

/// The terminal's events, read on a thread of its own, which ends with the process.
fn events() -> mpsc::UnboundedReceiver<io::Result<Event>> {
    let (send, receive) = mpsc::unbounded_channel();
    thread::spawn(move || {
        loop {
            let event = event::read();
            let is_last = event.is_err();
            if send.send(event).is_err() || is_last {
                return;
            }
        }
    });
    receive
}
