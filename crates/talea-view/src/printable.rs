//! Untrusted text, escaped for a terminal.

/// Escapes characters that a terminal would obey: a writer to a region could otherwise control
/// the terminal of a user who inspects it.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            character if character.is_control() || turns(character) => {
                shown.extend(character.escape_default());
            }
            character => shown.push(character),
        }
    }
    shown
}

/// Whether a character turns the direction of what follows.
fn turns(character: char) -> bool {
    matches!(character, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_control_characters_are_escaped() {
        assert_eq!(printable("a\u{1B}[2Jb\r\nc\u{202E}"), "a\\u{1b}[2Jb\\r\\nc\\u{202e}");
        assert_eq!(printable("größe=\"1\\n\""), "größe=\"1\\n\"");
    }
}
