//! The actions of keys.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::state::{Next, State, View};

/// Each key with its meaning, for the help.
pub(super) const KEYS: [(&str, &str); 10] = [
    ("↑ ↓ j k", "move the cursor; PgUp, PgDn, g and G further"),
    ("Enter", "show the endpoint at the cursor"),
    ("Esc", "go back; remove the filter"),
    ("s S", "sort by the next column, by the one before"),
    ("r", "reverse the order"),
    ("/", "show endpoints whose names have a text in them"),
    ("Space", "pause, and go on"),
    ("?", "this help"),
    ("q", "quit"),
    ("Ctrl-C", "quit"),
];

pub(super) fn press(state: &mut State, key: KeyEvent) -> Next {
    if key.kind == KeyEventKind::Release {
        return Next::GoOn;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return if key.code == KeyCode::Char('c') { Next::Quit } else { Next::GoOn };
    }
    if state.is_typing {
        type_filter(state, key.code);
        return Next::GoOn;
    }
    let page = isize::try_from(state.height).unwrap_or(1).max(1);
    match key.code {
        KeyCode::Char('q') => return Next::Quit,
        KeyCode::Char('?') => state.view = View::Help,
        KeyCode::Char(' ') => state.pause(),
        KeyCode::Esc | KeyCode::Backspace => go_back(state),
        _ if state.view != View::Endpoints => {}
        KeyCode::Down | KeyCode::Char('j') => state.move_by(1),
        KeyCode::Up | KeyCode::Char('k') => state.move_by(-1),
        KeyCode::PageDown => state.move_by(page),
        KeyCode::PageUp => state.move_by(-page),
        KeyCode::Home | KeyCode::Char('g') => state.move_by(isize::MIN),
        KeyCode::End | KeyCode::Char('G') => state.move_by(isize::MAX),
        KeyCode::Enter => {
            if let Some(endpoint) = state.at_cursor() {
                state.view = View::Endpoint(endpoint);
            }
        }
        KeyCode::Char('s') | KeyCode::Right => state.sort_by_next(1),
        KeyCode::Char('S') | KeyCode::Left => state.sort_by_previous(),
        KeyCode::Char('r') => state.is_reversed = !state.is_reversed,
        KeyCode::Char('/') => state.is_typing = true,
        _ => {}
    }
    Next::GoOn
}

fn go_back(state: &mut State) {
    match state.view {
        View::Endpoints => state.filter.clear(),
        View::Endpoint(_) | View::Help => state.view = View::Endpoints,
    }
}

fn type_filter(state: &mut State, code: KeyCode) {
    match code {
        KeyCode::Enter => state.is_typing = false,
        KeyCode::Esc => {
            state.is_typing = false;
            state.filter.clear();
        }
        KeyCode::Backspace => {
            state.filter.pop();
        }
        KeyCode::Char(character) => state.filter.extend(character.to_lowercase()),
        _ => {}
    }
}
