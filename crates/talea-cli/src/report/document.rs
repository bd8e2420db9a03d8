//! The frame of all pages: one file, without a script, that loads nothing from elsewhere.

use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The style that is in each page.
pub(crate) const STYLE: &str = include_str!("style.css");

pub(crate) fn document(title: &str, body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { main { (body) } }
        }
    }
    .into_string()
}
