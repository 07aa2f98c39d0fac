//! Numbers as people read them.

/// Units of 1024, by their first letter.
pub const UNITS: [char; 6] = ['K', 'M', 'G', 'T', 'P', 'E'];

/// A number of bytes to read: `812 B`, `1.5 KiB`, `240 MiB`.
pub fn size(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64;
    let mut unit = ' ';
    for letter in UNITS {
        // Never "1024 KiB": a value that rounds to it moves to the next unit.
        if value < 1023.5 {
            break;
        }
        value /= 1024.0;
        unit = letter;
    }
    if value < 9.95 { format!("{value:.1} {unit}iB") } else { format!("{value:.0} {unit}iB") }
}

/// `1 file`, `3 files`, `12,345 files`.
pub fn count(n: u64, what: &str) -> String {
    let plural = match what.strip_suffix('y') {
        _ if n == 1 => what.to_owned(),
        Some(stem) => format!("{stem}ies"),
        None if what.ends_with("ss") || what.ends_with("ch") => format!("{what}es"),
        None => format!("{what}s"),
    };
    format!("{} {plural}", grouped(n))
}

/// A number with its thousands separated by commas.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
