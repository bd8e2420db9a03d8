//! The frame of all pages: one file, without a script, that loads nothing from elsewhere.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::printable;

pub const STYLE: &str = include_str!("style.css");

/// A page; characters that cannot be seen in its texts are shown as in a terminal.
pub fn document(title: &str, body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (printable(title)) }
                style { (PreEscaped(STYLE)) }
            }
            body { main { (PreEscaped(printable(&body.0))) } }
        }
    }
    .into_string()
}

/// A table in a box that can be scrolled.
pub fn data_table(headings: &[&str], rows: &Markup) -> Markup {
    html! {
        div.scroll {
            table.cases {
                thead { tr { @for heading in headings { th scope="col" { (heading) } } } }
                tbody { (rows) }
            }
        }
    }
}

/// A wide table in a box that can be scrolled, also by keys.
pub fn wide_table(label: &str, classes: &str, headings: &Markup, rows: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table class=(classes) { thead { (headings) } tbody { (rows) } }
        }
    }
}

/// A drawing with its title, its unit and its one number.
pub fn figure(title: &str, unit: &str, headline: Option<&Markup>, drawing: &Markup) -> Markup {
    html! {
        figure.card {
            figcaption {
                span { b { (title) } span.unit { (unit) } }
                @if let Some(headline) = headline { span.headline { (headline) } }
            }
            (drawing)
        }
    }
}
