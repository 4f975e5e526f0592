//! Strict reading of a located tree: one problem for each thing that is wrong, and on to the next.
//!
//! Everything here answers `None` after it has put into the log what is wrong, so that readers of a file can go on with
//! whatever else there is.

use super::fields::Fields;
use super::log::{Log, Place};
use super::shape::Shape;
use super::tree::{Content, Entry, Node, Scalar, join};
use super::units::{self, Wrong};
use super::words;
use serde_yaml::Value;
use std::ops::RangeInclusive;
use std::time::Duration;

/// A value, where it stands and how one comes to it.
#[derive(Clone)]
pub(super) struct At<'a> {
    pub node: &'a Node,
    /// Where its key stands, if it has one.
    pub key_place: Option<Place>,
    /// The path inside the file.
    pub path: String,
    /// The same without names that users choose; see [`super::shape::Shapes`].
    kind: String,
    log: &'a Log,
}

impl<'a> At<'a> {
    /// The root of a file.
    pub fn root(log: &'a Log, node: &'a Node) -> At<'a> {
        At {
            node,
            key_place: None,
            path: String::new(),
            kind: String::new(),
            log,
        }
    }

    /// Notes what is expected here.
    pub fn expect(&self, shape: Shape) {
        self.log
            .shapes
            .note(self.node.place.file, &self.kind, shape);
    }

    pub fn log(&self) -> &'a Log {
        self.log
    }

    /// A path as it is written here: relative to this file.
    pub fn beside(&self, path: &str) -> std::path::PathBuf {
        super::target::beside(&self.log.path(self.node.place.file), path)
    }

    /// The file that this stands in.
    pub fn file(&self) -> std::path::PathBuf {
        self.log.path(self.node.place.file)
    }

    pub fn is_list(&self) -> bool {
        matches!(self.node.content, Content::List(_))
    }

    /// Where to point at: the value, or the key if there is nothing behind it.
    pub fn place(&self) -> Place {
        if self.node.is_null() {
            self.key_place.unwrap_or(self.node.place)
        } else {
            self.node.place
        }
    }

    /// This value is wrong.
    pub fn wrong(&self, message: impl Into<String>, help: impl Into<String>) {
        self.log
            .wrong(self.place(), &self.path, message.into(), Some(help.into()));
    }

    /// This value is wrong at character `offset` of a text on one line.
    pub fn wrong_within(&self, offset: usize, message: String, help: Option<String>) {
        let mut place = self.place();
        if let Content::Scalar(scalar) = &self.node.content {
            place.column += offset + usize::from(!scalar.plain);
        }
        self.log.wrong(place, &self.path, message, help);
    }

    /// The key is wrong, not its value.
    pub fn wrong_key(&self, message: impl Into<String>, help: impl Into<String>) {
        self.log.wrong(
            self.key_place.unwrap_or(self.node.place),
            &self.path,
            message.into(),
            Some(help.into()),
        );
    }

    fn unit<T>(&self, read: Result<T, Wrong>) -> Option<T> {
        read.map_err(|wrong| {
            self.log
                .wrong(self.place(), &self.path, wrong.message, wrong.help)
        })
        .ok()
    }

    fn scalar(&self, wanted: &str) -> Option<&'a Scalar> {
        match &self.node.content {
            Content::Scalar(scalar) if !scalar.value.is_null() => Some(scalar),
            _ => {
                self.wrong(
                    format!("expected {wanted}, found {}", self.found()),
                    format!("write {wanted}"),
                );
                None
            }
        }
    }

    fn found(&self) -> &'static str {
        match &self.node.content {
            Content::List(_) => "a list",
            Content::Map(_) => "a map",
            Content::Scalar(scalar) if scalar.value.is_null() => "nothing",
            Content::Scalar(_) => "a value",
        }
    }

    /// A plain text: what some reader of YAML takes for something else must be quoted.
    pub fn text(&self) -> Option<&'a str> {
        self.expect(Shape::Text);
        let scalar = self.scalar("a text")?;
        if scalar.plain
            && let Some(other) = words::other_reading(&scalar.text, &scalar.value)
        {
            self.wrong(
                format!("`{}` is {other}, and a text is expected", scalar.text),
                format!("write \"{}\"", scalar.text),
            );
            return None;
        }
        if scalar.text.is_empty() {
            self.wrong("the text is empty", "write something, or leave the key out");
            return None;
        }
        Some(&scalar.text)
    }

    /// A number or quantity as it is written, which must stand without quotes.
    fn raw(&self, wanted: &str) -> Option<&'a str> {
        Some(&self.scalar(wanted)?.text)
    }

    pub fn duration(&self) -> Option<Duration> {
        self.expect(Shape::Duration);
        self.unit(units::duration(self.raw("a duration such as `5s`")?))
    }

    /// A duration of more than nothing.
    pub fn time(&self) -> Option<Duration> {
        let time = self.duration()?;
        if time.is_zero() {
            self.wrong(
                "must be longer than nothing",
                "write a duration such as `5s`",
            );
            return None;
        }
        Some(time)
    }

    pub fn rate(&self) -> Option<f64> {
        self.expect(Shape::Rate);
        self.unit(units::rate(self.raw("a rate such as `20/s`")?))
    }

    /// Bytes.
    pub fn size(&self) -> Option<u64> {
        self.expect(Shape::Size);
        self.unit(units::size(self.raw("a size such as `10kB`")?))
    }

    /// Bytes per second.
    pub fn byte_rate(&self) -> Option<u64> {
        self.expect(Shape::ByteRate);
        self.unit(units::byte_rate(
            self.raw("a rate of bytes such as `100kB/s`")?,
        ))
    }

    pub fn share(&self) -> Option<f64> {
        self.expect(Shape::Share);
        self.unit(units::share(self.raw("a share such as `38%`")?))
    }

    pub fn number(&self) -> Option<f64> {
        self.expect(Shape::Number);
        self.unit(units::plain_number(self.raw("a number such as `1.5`")?))
    }

    /// A whole number within a range.
    pub fn count(&self, range: RangeInclusive<u64>) -> Option<u64> {
        self.expect(Shape::Count(*range.start(), *range.end()));
        let scalar = self.scalar("a whole number such as `400`")?;
        if !scalar.plain {
            self.wrong(
                format!("\"{}\" is a text", scalar.text),
                format!("write {} without quotes", scalar.text),
            );
            return None;
        }
        let count = self.unit(units::count(&scalar.text))?;
        if !range.contains(&count) {
            let (low, high) = range.into_inner();
            self.wrong(
                format!("{count} is out of range"),
                format!("write a number from {low} to {high}"),
            );
            return None;
        }
        Some(count)
    }

    /// As [`At::count`], for what the plan holds in 32 bits.
    pub fn count32(&self, range: RangeInclusive<u32>) -> Option<u32> {
        let wide = u64::from(*range.start())..=u64::from(*range.end());
        self.count(wide).and_then(|count| u32::try_from(count).ok())
    }

    pub fn truth(&self) -> Option<bool> {
        self.expect(Shape::Truth);
        let scalar = self.scalar("`true` or `false`")?;
        match &scalar.value {
            Value::Bool(truth) if scalar.plain => Some(*truth),
            _ => {
                self.wrong(
                    format!("`{}` is neither true nor false", scalar.text),
                    "write `true` or `false`",
                );
                None
            }
        }
    }

    /// One of a closed list of words.
    pub fn word<T: Copy>(&self, words: &[(&'static str, T)]) -> Option<T> {
        self.expect(Shape::Words(words.iter().map(|(word, _)| *word).collect()));
        let all = words::listed(words.iter().map(|(word, _)| *word));
        let text = self.raw(&all)?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let near = words::nearest(text, words.iter().map(|(word, _)| *word));
        let help = near.map_or(format!("write one of {all}"), |near| {
            format!("did you mean `{near}`?")
        });
        self.wrong(format!("unknown `{text}`, expected one of {all}"), help);
        None
    }

    pub(super) fn item(&self, row: usize, node: &'a Node) -> At<'a> {
        At {
            node,
            key_place: None,
            path: format!("{}[{row}]", self.path),
            kind: format!("{}/[]", self.kind),
            log: self.log,
        }
    }

    /// The value of an entry of this map.
    pub fn below(&self, entry: &'a Entry) -> At<'a> {
        let path = join(&self.path, &entry.key);
        At {
            node: &entry.node,
            key_place: Some(entry.key_place),
            path,
            kind: format!("{}/{}", self.kind, entry.key),
            log: self.log,
        }
    }

    /// The same where the key is a name.
    fn named_below(&self, entry: &'a Entry) -> At<'a> {
        At {
            kind: format!("{}/*", self.kind),
            ..self.below(entry)
        }
    }

    /// The items of a list of at least one.
    pub fn items(&self) -> Option<Vec<At<'a>>> {
        self.expect(Shape::List);
        match &self.node.content {
            Content::List(items) if !items.is_empty() => Some(
                items
                    .iter()
                    .enumerate()
                    .map(|(row, item)| self.item(row, item))
                    .collect(),
            ),
            Content::List(_) => {
                self.wrong(
                    "the list is empty",
                    "give at least one, or leave the key out",
                );
                None
            }
            _ => {
                self.wrong(
                    format!("expected a list, found {}", self.found()),
                    "write `[ one, another ]`, or a line `- one` for each",
                );
                None
            }
        }
    }

    /// The entries of a map of at least one, in the order of the file.
    pub fn entries(&self) -> Option<Vec<(&'a str, At<'a>)>> {
        self.expect(Shape::Names);
        match &self.node.content {
            Content::Map(entries) if !entries.is_empty() => Some(
                entries
                    .iter()
                    .map(|entry| (entry.key.as_str(), self.named_below(entry)))
                    .collect(),
            ),
            Content::Map(_) => {
                self.wrong(
                    "the map is empty",
                    "give at least one, or leave the key out",
                );
                None
            }
            _ => {
                self.wrong(
                    format!("expected a map, found {}", self.found()),
                    "write `name: …` lines below it, or `{ name: … }`",
                );
                None
            }
        }
    }

    /// The keys of a map, whatever stands behind them; empty for anything else.
    pub fn keys(&self) -> Vec<String> {
        match &self.node.content {
            Content::Map(entries) => entries.iter().map(|entry| entry.key.clone()).collect(),
            Content::List(_) | Content::Scalar(_) => Vec::new(),
        }
    }

    /// Whether this is the value of an entry of that name.
    pub fn has_key(&self, key: &str) -> bool {
        self.path == key || self.path.ends_with(&format!(".{key}"))
    }

    /// A value that is passed on as it is written.
    pub fn setting(&self) -> Option<&'a str> {
        self.expect(Shape::Scalar);
        self.raw("a text, a number, true or false")
    }

    /// The entries of a map whose keys are names that the user chose.
    pub fn named(&self) -> Option<Vec<(&'a str, At<'a>)>> {
        let entries = self.entries()?;
        for (name, at) in &entries {
            if let Err(wrong) = words::check_name(name) {
                at.wrong_key(wrong.message, wrong.help.unwrap_or_default());
            }
        }
        Some(entries)
    }

    /// The map as a struct with known keys.
    pub fn fields(&self) -> Option<Fields<'a>> {
        match &self.node.content {
            Content::Map(entries) => Some(Fields::of(self.clone(), entries)),
            _ => {
                self.wrong(
                    format!("expected a map, found {}", self.found()),
                    "write `key: value` lines below it, or `{ key: value }`",
                );
                None
            }
        }
    }

    /// A word that stands alone, such as `immediate` in place of `immediate: {}`.
    pub fn lone_word(&self) -> Option<&'a str> {
        self.expect(Shape::Scalar);
        match &self.node.content {
            Content::Scalar(scalar) if !scalar.value.is_null() => Some(&scalar.text),
            _ => None,
        }
    }

    /// The value at a path below, or as much of the way to it as there is.
    pub fn find(&self, keys: &[&str]) -> At<'a> {
        let mut at = self.clone();
        for key in keys {
            let next = match &at.node.content {
                Content::Map(entries) => entries
                    .iter()
                    .find(|entry| entry.key == *key)
                    .map(|entry| at.below(entry)),
                Content::List(items) => key
                    .parse::<usize>()
                    .ok()
                    .and_then(|row| Some(at.item(row, items.get(row)?))),
                Content::Scalar(_) => None,
            };
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        at
    }
}
