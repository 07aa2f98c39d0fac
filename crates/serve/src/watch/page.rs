//! The page: one document, assembled from its parts, that loads nothing from elsewhere.

use crate::plain::plain;

const HTML: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");
/// In order of dependency.
const SCRIPTS: [&str; 4] = [
    include_str!("page/words.js"),
    include_str!("page/sight.js"),
    include_str!("page/draw.js"),
    include_str!("page/page.js"),
];
/// Placeholder of an answer's nonce.
const NONCE: &str = "@NONCE@";

/// The page of one volume.
#[derive(Debug)]
pub struct VolumePage(String);

impl VolumePage {
    /// `name` is the user's name of the volume, `identity` its own.
    pub fn new(name: &str, identity: &str, engine: &str) -> Self {
        let html = HTML
            .replace("@STYLE@", STYLE)
            .replace("@SCRIPT@", &SCRIPTS.concat())
            .replace("@ENGINE@", engine)
            .replace("@VOLUME@", &escaped(&plain(name)))
            .replace("@IDENTITY@", &escaped(identity));
        Self(html)
    }

    /// The document for one answer.
    pub fn with_nonce(&self, nonce: &str) -> String {
        self.0.replace(NONCE, nonce)
    }
}

/// Text without markup, for an element or an attribute.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // A name must not look like the placeholder of the nonce.
            '@' => out.push_str("&#64;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_markup() {
        let page =
            VolumePage::new("<script nonce=@NONCE@>'\"&", "0102", "tree").with_nonce("n0nce");
        assert!(page.contains("&lt;script nonce=&#64;NONCE&#64;&gt;&#39;&quot;&amp;"));
        assert_eq!(page.matches("<script").count(), 1);
        assert_eq!(page.matches("n0nce").count(), 2);
        assert!(!page.contains('@') || !page.contains("@NONCE@"));
    }

    #[test]
    fn nothing_comes_from_elsewhere() {
        let page = VolumePage::new("vault", "0102", "sequential");
        for word in ["http:", "https:", "src=", "url(", "@import", "innerHTML", "eval("] {
            assert!(!page.0.contains(word), "{word}");
        }
        // The policy runs none of these.
        for word in [" style=\"", " onclick", " onload", "javascript:"] {
            assert!(!page.0.contains(word), "{word}");
        }
    }
}
