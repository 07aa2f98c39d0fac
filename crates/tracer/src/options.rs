//! What the plugin is asked for: `out=FILE,about=FILE,skip=N,measure=N,misses=N,line=N`.

use crate::caches::Geometry;
use crate::record::About;
use std::path::PathBuf;

/// A plugin's arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The trace.
    pub out: PathBuf,
    /// A file with three lines: program, package and arguments. They may hold commas, which the
    /// plugin's own arguments may not.
    pub about: PathBuf,
    /// Instructions that warm the caches up.
    pub skip: u64,
    /// Instructions that are traced, at most.
    pub measure: u64,
    /// Misses that are traced, at most.
    pub misses: u64,
    /// Bytes of a line.
    pub line: u32,
}

impl Options {
    /// Reads `name=value` arguments.
    ///
    /// # Errors
    /// A name that is not known, a value that is no number, a file that is missing.
    pub fn parse<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let (mut out, mut about) = (None, None);
        let (mut skip, mut measure, mut misses, mut line) = (0, u64::MAX, u64::MAX, 64);
        for argument in arguments {
            let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
            let number = || value.parse().map_err(|_| format!("{argument}: no number"));
            match name {
                "out" => out = Some(value.into()),
                "about" => about = Some(value.into()),
                "skip" => skip = number()?,
                "measure" => measure = number()?,
                "misses" => misses = number()?,
                "line" => line = u32::try_from(number()?).unwrap_or(0),
                _ => return Err(format!("{argument}: not known")),
            }
        }
        if !Geometry::paper(line).is_valid() {
            return Err(format!("line={line}: a line has 16 to 2048 bytes, a power of two"));
        }
        let missing = |name| format!("{name}=FILE is missing");
        Ok(Self {
            out: out.ok_or_else(|| missing("out"))?,
            about: about.ok_or_else(|| missing("about"))?,
            skip,
            measure,
            misses,
            line,
        })
    }

    /// What the trace says about itself, from the text of the file `about`.
    ///
    /// # Errors
    /// It does not have three lines.
    pub fn about(&self, text: &str) -> Result<About, String> {
        let lines: Vec<&str> = text.lines().collect();
        let &[program, package, arguments] = &lines[..] else {
            return Err(format!("{}: program, package, arguments", self.about.display()));
        };
        Ok(About {
            program: program.into(),
            package: package.into(),
            arguments: arguments.into(),
            geometry: Geometry::paper(self.line),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_or_refused() {
        let options = Options::parse(["out=a", "about=b", "skip=5", "line=128"]).unwrap();
        assert_eq!((options.skip, options.measure, options.line), (5, u64::MAX, 128));
        let refused = |more: &str| Options::parse(["out=a", "about=b", more]).unwrap_err();
        assert!(refused("line=100").contains("power of two"));
        assert!(refused("skip=x").contains("no number"));
        assert!(refused("colour=red").contains("not known"));
        assert!(Options::parse(["out=a"]).unwrap_err().contains("about"));
    }

    #[test]
    fn a_trace_says_what_it_is_of() {
        let options = Options::parse(["out=a", "about=b"]).unwrap();
        let about = options.about("p\nq 1.0\n-a, -b\n").unwrap();
        assert_eq!((&*about.program, &*about.arguments), ("p", "-a, -b"));
        assert!(options.about("p\n").is_err());
    }
}
