//! The screen, from a state.

use std::time::Instant;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Sparkline, Table, TableState};
use talea_statistics::figures::{bytes, count, in_unit, plain};

use super::keys::KEYS;
use super::state::{Column, State, View};
use talea_agent::live;
use talea_agent::live::words::{level, rate, share, sparkline, time};
use talea_view::printable;

/// From this share of errors on a row is red.
const MANY_ERRORS: f64 = 0.05;
/// Narrower screens have no column P90.
const WIDE: u16 = 100;

pub(super) fn draw(frame: &mut Frame<'_>, state: &mut State) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(3), Constraint::Min(1), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(Paragraph::new(heading(state)), head);
    match state.view.clone() {
        View::Endpoints => draw_endpoints(frame, body, state),
        View::Endpoint(name) => draw_endpoint(frame, body, state, &name),
        View::Help => draw_help(frame, body),
    }
    frame.render_widget(Paragraph::new(footing(state)), foot);
}

/// Source, process, and all endpoints together.
fn heading(state: &State) -> Vec<Line<'static>> {
    let table = &state.table;
    let mut first = vec![Span::from(printable(&state.source)).bold()];
    let mut add = |text: String, style: Style| {
        first.push(Span::from("  "));
        first.push(Span::styled(text, style));
    };
    match table.processes {
        Some(0) => add("no process lives".to_owned(), Style::new().fg(Color::Red)),
        Some(processes) => add(count(processes as u64, "process", "processes"), Style::new()),
        None => {}
    }
    if let Some(cores) = table.cpu_cores {
        add(format!("CPU {}", in_unit(cores, Some("cores"))), Style::new());
    }
    if let Some(memory) = table.memory_bytes.filter(|bytes| *bytes > 0.0) {
        add(format!("memory {}", bytes(memory as u64)), Style::new());
    }
    if let Some(at) = table.restarted {
        add(format!("restarted {} ago", ago(at)), Style::new().fg(Color::Yellow));
    }
    if state.is_paused {
        add("paused".to_owned(), Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD));
    }
    let all = &table.total;
    let mut second = vec![
        Span::from(format!("{} req/s", rate(all.rate))).bold(),
        Span::from("  errors "),
        Span::styled(share(all.errors), of_errors(all.errors)),
        Span::from(format!("  {}  in flight {}", quantiles(all), level(all.in_flight))),
    ];
    if table.uncertainty > 0.01 {
        second.push(Span::from(format!("  ±{:.0}%", table.uncertainty * 1e2)));
    }
    let third = match &state.trouble {
        Some((since, reason)) => {
            let text = format!("no reading for {}: {}", ago(*since), printable(reason));
            Line::styled(text, Style::new().fg(Color::Red))
        }
        None => Line::styled(latest_change(state).unwrap_or_default(), changed()),
    };
    vec![Line::from(first), Line::from(second), third]
}

fn changed() -> Style {
    Style::new().fg(Color::Yellow)
}

/// The change of the first row, and how many others there are.
fn latest_change(state: &State) -> Option<String> {
    let first = state.changes.iter().min_by_key(|it| (it.quantity, -it.since_unix_millis))?;
    let more = match state.changes.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    Some(printable(&format!("{} is {}{more}", first.endpoint, first.line())))
}

fn quantiles(row: &live::Row) -> String {
    let [p50, p90, p99] = row.times.each().map(time);
    format!("p50 {p50}  p90 {p90}  p99 {p99}")
}

fn ago(since: Instant) -> String {
    let seconds = since.elapsed().as_secs();
    if seconds < 60 { format!("{seconds} s") } else { format!("{} min", seconds / 60) }
}

fn of_errors(errors: Option<f64>) -> Style {
    match errors {
        Some(share) if share >= MANY_ERRORS => Style::new().fg(Color::Red),
        Some(share) if share > 0.0 => Style::new().fg(Color::Yellow),
        _ => Style::new(),
    }
}

fn footing(state: &State) -> Line<'static> {
    if state.is_typing {
        return Line::from(format!("/{}█", printable(&state.filter)));
    }
    let keys = match state.view {
        View::Endpoints => {
            "q quit  ? help  Enter endpoint  s sort  r reverse  / filter  Space pause"
        }
        View::Endpoint(_) | View::Help => "q quit  Esc back  Space pause",
    };
    if state.view == View::Endpoints && !state.filter.is_empty() {
        return Line::from(format!("filter: {}  Esc removes it", printable(&state.filter)));
    }
    Line::from(keys).dim()
}

fn draw_endpoints(frame: &mut Frame<'_>, area: Rect, state: &mut State) {
    let is_wide = area.width >= WIDE;
    let columns: Vec<Column> =
        Column::ALL.into_iter().filter(|column| is_wide || *column != Column::P90).collect();
    let trend = if is_wide { 24 } else { 12 };
    let mut widths: Vec<Constraint> = columns
        .iter()
        .map(|column| match column {
            Column::Endpoint => Constraint::Min(12),
            Column::Rate => Constraint::Length(8),
            Column::Errors | Column::InFlight => Constraint::Length(7),
            Column::P50 | Column::P90 | Column::P99 => Constraint::Length(9),
        })
        .collect();
    widths.push(Constraint::Length(trend));
    let headings = columns.iter().map(|column| {
        let mark = match (*column == state.sorted_by, state.is_reversed) {
            (false, _) => "",
            (true, false) => "▼",
            (true, true) => "▲",
        };
        let heading = Line::from(format!("{}{mark}", column.heading()));
        Cell::new(if *column == Column::Endpoint { heading } else { heading.right_aligned() })
    });
    let headings = Row::new(headings.chain([Cell::new("TREND")])).reversed();

    let rows = state.rows();
    let cursor = state.cursor(&rows);
    let is_empty = rows.is_empty();
    let shown = rows.iter().map(|row| {
        let cells = columns.iter().map(|column| cell(row, *column));
        let row_of = Row::new(cells.chain([Cell::new(sparkline(&row.trend, trend.into()))]));
        match state.changes_of(&row.name).next() {
            Some(_) => row_of.style(changed()),
            None => row_of,
        }
    });
    let table = Table::new(shown, widths)
        .header(headings)
        .row_highlight_style(Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED));
    let mut place = TableState::default().with_offset(state.first).with_selected(Some(cursor));
    frame.render_stateful_widget(table, area, &mut place);
    state.first = place.offset();
    state.height = usize::from(area.height.saturating_sub(1));
    if is_empty {
        let text = match state.table.rows.is_empty() {
            true => {
                "No endpoints: found no histogram of the durations of requests with a label for a \
                     method or a route."
            }
            false => "No endpoint's name contains the filter; Esc removes it.",
        };
        let below = Rect { y: area.y + 2, height: area.height.saturating_sub(2), ..area };
        let wrap = ratatui::widgets::Wrap { trim: true };
        frame.render_widget(Paragraph::new(text).wrap(wrap), below);
    }
}

fn cell(row: &live::Row, column: Column) -> Cell<'static> {
    let text = Line::from(column.text(row));
    match column {
        Column::Endpoint => Cell::new(text),
        Column::Errors => Cell::new(text.style(of_errors(row.errors)).right_aligned()),
        _ => Cell::new(text.right_aligned()),
    }
}

fn draw_endpoint(frame: &mut Frame<'_>, area: Rect, state: &State, name: &str) {
    let Some(row) = state.table.rows.iter().find(|row| row.name == name) else {
        let text = format!("{} is gone.", printable(name));
        return frame.render_widget(Paragraph::new(text), area);
    };
    let most = row.trend.iter().copied().fold(0.0, f64::max);
    let mut lines = vec![
        Line::from(printable(name)).bold(),
        Line::from(format!(
            "{} req/s, {} since its series began, {} in flight",
            rate(row.rate),
            plain(row.requests),
            level(row.in_flight)
        )),
        Line::from(quantiles(row)),
    ];
    for change in state.changes_of(name) {
        lines.push(Line::styled(printable(&change.line()), changed()));
    }
    lines.push(Line::from(""));
    for (status, per_second) in &row.statuses {
        let style = if status.starts_with('5') && *per_second > 0.0 {
            Style::new().fg(Color::Red)
        } else {
            Style::new()
        };
        let text = format!("{:<8}{:>10} a second", printable(status), rate(*per_second));
        lines.push(Line::styled(text, style));
    }
    let span = in_unit(row.trend.len() as f64 * state.every.as_secs_f64(), Some("seconds"));
    let slowest = row.p99_trend.iter().flatten().copied().fold(0.0, f64::max);
    let latency = match slowest > 0.0 {
        true => format!("p99, up to {}, last {span}", in_unit(slowest / 1e3, Some("seconds"))),
        false => format!("p99: no requests, last {span}"),
    };
    let requests = format!("requests a second, up to {}, last {span}", rate(most));
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let [above, slow, many] =
        Layout::vertical([Constraint::Length(height), Constraint::Fill(1), Constraint::Fill(1)])
            .areas(area);
    frame.render_widget(Paragraph::new(lines), above);
    let p99: Vec<f64> = row.p99_trend.iter().map(|it| it.unwrap_or(0.0)).collect();
    draw_bars(frame, slow, latency, &p99);
    draw_bars(frame, many, requests, &row.trend);
}

/// The latest values as bars, the highest of them at full height, below their title.
fn draw_bars(frame: &mut Frame<'_>, area: Rect, title: String, values: &[f64]) {
    let [head, below] = Layout::vertical([Constraint::Length(2), Constraint::Min(0)]).areas(area);
    let title = Line::from(title).dim();
    frame.render_widget(Paragraph::new(vec![Line::from(""), title]), head);
    // Whole numbers alone can be drawn; so small values keep their form.
    let most = values.iter().copied().fold(0.0, f64::max);
    let scale = if most > 0.0 { 1e6 / most } else { 0.0 };
    let bars: Vec<u64> = values.iter().map(|value| (value * scale).round() as u64).collect();
    let bars = &bars[bars.len().saturating_sub(usize::from(below.width))..];
    frame.render_widget(Sparkline::default().data(bars), below);
}

fn draw_help(frame: &mut Frame<'_>, area: Rect) {
    let keys = KEYS.iter().map(|(key, meaning)| Line::from(format!("{key:<10} {meaning}")));
    let notes = [
        "",
        "Errors are responses with a status of 500 or more. A time such as <250 ms is the bound of",
        "its bucket, if buckets are wide. ±3% is the uncertainty of rates, since reading",
        "the source takes some time. INFL are requests in flight. An endpoint that became slower, fails",
        "more often, or gets more or fewer requests than usual is yellow and first, whatever the order.",
    ];
    let lines: Vec<Line<'_>> = keys.chain(notes.into_iter().map(Line::from)).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::super::keys::press;
    use super::*;
    use talea_agent::change::{Change, Quantity};
    use talea_view::families::{Between, Quantiles};

    fn state() -> State {
        let row = |name: &str, rate: f64, errors| live::Row {
            name: name.to_owned(),
            rate,
            errors,
            times: Quantiles {
                p50_ms: Some(Between { low: 1.0, high: Some(1.09) }),
                p99_ms: Some(Between { low: 100.0, high: Some(250.0) }),
                ..Quantiles::default()
            },
            in_flight: Some(2.0),
            statuses: vec![("2xx".to_owned(), rate), ("5xx".to_owned(), 0.5)],
            requests: 12_345.0,
            trend: vec![1.0, 2.0, 0.0, rate],
            p99_trend: vec![Some(20.0), None, Some(250.0)],
            ..live::Row::default()
        };
        let mut rows: Vec<live::Row> =
            (0..40).map(|n| row(&format!("GET /items/{n:02}"), f64::from(n), None)).collect();
        rows.push(row("POST /\u{1b}[31mred\n\u{202e}", 99.0, Some(0.07)));
        let total = row("all", 800.0, Some(0.07));
        let table = live::Table { rows, total, processes: Some(2), ..live::Table::default() };
        let mut state = State::new("/dev/shm/shop\u{1b}.talea".to_owned(), Duration::from_secs(1));
        state.show(table, Vec::new());
        state
    }

    fn screen(state: &mut State, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let cell = |x, y| buffer[(x, y)].symbol().to_owned();
        (0..height).map(|y| (0..width).map(|x| cell(x, y)).collect()).collect()
    }

    fn press_all(state: &mut State, codes: &[KeyCode]) {
        codes.iter().for_each(|code| {
            press(state, KeyEvent::new(*code, KeyModifiers::NONE));
        });
    }

    #[test]
    fn a_terminal_of_80_columns_shows_the_busiest_first() {
        let lines = screen(&mut state(), 80, 24);
        assert_eq!(lines[0].trim_end(), "/dev/shm/shop\\u{1b}.talea  2 processes");
        assert!(lines[1].starts_with("800 req/s  errors 7.00%  p50 1.04 ms"), "{}", lines[1]);
        assert!(lines[3].contains("REQ/S▼") && !lines[3].contains("P90"), "{}", lines[3]);
        // Of names from outside, nothing reaches the terminal but characters.
        assert!(lines[4].starts_with("POST /\\u{1b}[31mred\\n"), "{}", lines[4]);
        assert!(lines[4].contains("7.00%") && lines[4].contains("<250 ms"), "{}", lines[4]);
        assert!(lines[5].starts_with("GET /items/39"), "{}", lines[5]);
        assert!(lines[23].starts_with("q quit"), "{}", lines[23]);
    }

    #[test]
    fn keys_choose_what_is_shown() {
        let mut state = state();
        press_all(&mut state, &[KeyCode::Char('s'), KeyCode::Left, KeyCode::Char('r')]);
        assert!(screen(&mut state, 120, 24)[4].starts_with("GET /items/00"));
        press_all(&mut state, &[KeyCode::Char('r'), KeyCode::End, KeyCode::Enter]);
        let lines = screen(&mut state, 80, 24);
        assert!(lines[3].starts_with("GET /items/00"), "{}", lines[3]);
        assert!(lines[4].contains("12,345 since"), "{}", lines[4]);
        press_all(&mut state, &[KeyCode::Esc, KeyCode::Char('/'), KeyCode::Char('P')]);
        press_all(&mut state, &[KeyCode::Char('O'), KeyCode::Char('q'), KeyCode::Backspace]);
        let lines = screen(&mut state, 80, 24);
        assert!(lines[4].starts_with("POST") && lines[5].trim().is_empty(), "{lines:?}");
        press_all(&mut state, &[KeyCode::Enter, KeyCode::Esc, KeyCode::Home, KeyCode::Char(' ')]);
        state.show(live::Table::default(), Vec::new());
        assert!(screen(&mut state, 80, 24)[0].contains("paused"));
        assert!(screen(&mut state, 80, 24)[5].starts_with("GET /items/39"));
        press_all(&mut state, &[KeyCode::Char(' ')]);
        assert!(screen(&mut state, 80, 24)[5].starts_with("No endpoints"));
        press_all(&mut state, &[KeyCode::Char('?')]);
        assert!(screen(&mut state, 80, 24)[3].starts_with("↑ ↓"));
    }

    #[test]
    fn an_endpoint_that_changed_is_first_and_says_what_changed() {
        let mut state = state();
        let change = |endpoint: &str, quantity, text: &str| Change {
            endpoint: endpoint.to_owned(),
            quantity,
            since_unix_millis: 22_358_000,
            text: text.to_owned(),
        };
        let slower = change("GET /items/07", Quantity::Slower, "p99 20.1 ms → 251 ms");
        let changes = vec![change("GET /items/03", Quantity::More, ""), slower];
        state.show(state.table.clone(), changes);
        let lines = screen(&mut state, 100, 24);
        let expected = "GET /items/07 is slower since 06:12:38Z: p99 20.1 ms → 251 ms (and 1 more)";
        assert_eq!(lines[2].trim_end(), expected);
        assert!(lines[4].starts_with("GET /items/07"), "{}", lines[4]);
        assert!(lines[5].starts_with("GET /items/03"), "{}", lines[5]);
        assert!(lines[6].starts_with("POST"), "{}", lines[6]);
        press_all(&mut state, &[KeyCode::Home, KeyCode::Enter]);
        let lines = screen(&mut state, 100, 24);
        assert!(lines[6].starts_with("slower since 06:12:38Z"), "{lines:?}");
    }

    #[test]
    fn an_endpoint_shows_its_latency_over_time_beside_its_requests() {
        let mut state = state();
        press_all(&mut state, &[KeyCode::Enter]);
        let lines = screen(&mut state, 80, 24);
        let title = |text: &str| lines.iter().position(|line| line.starts_with(text));
        let (latency, requests) =
            (title("p99, up to 250 ms, last 4.00 s"), title("requests a second"));
        let (latency, requests) = (latency.unwrap(), requests.unwrap());
        // The bars of 20 ms, of a second without requests, and of 250 ms, in the row below the highest one.
        let foot: Vec<char> = lines[requests - 2].chars().take(4).collect();
        assert!(
            latency < requests && foot[0] != ' ' && foot[1] == ' ' && foot[2] == '█',
            "{lines:?}"
        );
    }

    #[test]
    fn every_size_and_view_can_be_drawn() {
        let mut state = state();
        for keys in [&[][..], &[KeyCode::End, KeyCode::Enter], &[KeyCode::Char('?')]] {
            press_all(&mut state, keys);
            for (width, height) in [(1, 1), (3, 2), (20, 3), (40, 5), (375, 4), (10, 100)] {
                screen(&mut state, width, height);
            }
        }
    }
}
