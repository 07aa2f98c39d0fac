//! Text from volumes and clients, made harmless for terminals and logs.

/// A name or path for the terminal. Names come from the volume and may hold anything. Escapes
/// replace control characters, which could drive the terminal. They also replace invisible
/// characters that change how others show, such as the right-to-left override.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if shows_itself(c) { out.push(c) } else { out.extend(c.escape_default()) }
    }
    out
}

/// Whether a character shows as itself and does nothing else. The standard library knows which do
/// not, up to its version of Unicode; newer characters are not shown either.
pub fn shows_itself(c: char) -> bool {
    match c {
        ' '..='~' => true,
        // Separators of lines and paragraphs; other spaces are spaces.
        _ if c.is_whitespace() => !c.is_control() && !('\u{2028}'..='\u{2029}').contains(&c),
        // Letters that show nothing, in Korean.
        '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' => false,
        // Behind another letter: there a combining accent is not escaped.
        _ => String::from_iter(['a', c]).escape_debug().nth(1) == Some(c),
    }
}
