//! Untrusted text, escaped for a terminal.

/// Escapes characters that cannot be seen or that turn the direction of what follows: a writer to a region could
/// otherwise control the terminal of a user who inspects it. `web/src/printable.ts` does the same for the live page.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            character if character.is_control() || hides(character) => {
                shown.extend(character.escape_default());
            }
            character => shown.push(character),
        }
    }
    shown
}

/// Whether a character cannot be seen, or turns the direction of what follows.
fn hides(character: char) -> bool {
    matches!(
        character,
        '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts and what is shown of them, which the live page's tests read too.
    const CASES: &str = include_str!("printable.json");

    #[test]
    fn what_a_terminal_would_obey_or_hide_is_escaped() {
        let cases: Vec<(String, String)> = serde_json::from_str(CASES).unwrap();
        assert!(cases.len() >= 5);
        for (text, shown) in cases {
            assert_eq!(printable(&text), shown);
        }
    }
}
