//! The small part of JSONPath that target files need: `$.a.b[0].c`, `$["odd name"]`, and `[*]` for every item of a list.

use serde_json::Value;
use std::fmt;

/// A way to a value inside a JSON document, or with `[*]` to several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
    /// Every item of a list.
    Each,
}

/// A path that can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a path like `$.bikes[0].id`")]
pub struct BadPath(String);

impl JsonPath {
    /// Reads a path.
    ///
    /// # Errors
    /// If the text is anything but `$` followed by `.name`, `[number]`, `["name"]` and `[*]`.
    pub fn parse(text: &str) -> Result<JsonPath, BadPath> {
        let bad = || BadPath(text.to_owned());
        let mut rest = text.strip_prefix('$').ok_or_else(bad)?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('.') {
                let end = after.find(['.', '[']).unwrap_or(after.len());
                let key = &after[..end];
                if key.is_empty()
                    || !key
                        .chars()
                        .all(|c| c.is_alphanumeric() || c == '_' || c == '-')
                {
                    return Err(bad());
                }
                steps.push(Step::Key(key.to_owned()));
                rest = &after[end..];
            } else if let Some(after) = rest.strip_prefix("[\"") {
                let end = after.find("\"]").ok_or_else(bad)?;
                steps.push(Step::Key(after[..end].to_owned()));
                rest = &after[end + 2..];
            } else if let Some(after) = rest.strip_prefix("[*]") {
                steps.push(Step::Each);
                rest = after;
            } else if let Some(after) = rest.strip_prefix('[') {
                let end = after.find(']').ok_or_else(bad)?;
                steps.push(Step::Index(after[..end].parse().map_err(|_| bad())?));
                rest = &after[end + 1..];
            } else {
                return Err(bad());
            }
        }
        Ok(JsonPath { steps })
    }

    /// Whether it leads to several values.
    #[must_use]
    pub fn is_list(&self) -> bool {
        self.steps.contains(&Step::Each)
    }

    /// The value at the end of the path; where it leads to several, the first that is there.
    #[must_use]
    pub fn find<'a>(&self, document: &'a Value) -> Option<&'a Value> {
        walk(&self.steps, document, &mut |_| false)
    }

    /// The texts of all values that it leads to, in the order of the document; those that are no text, number or truth value are
    /// left out.
    #[must_use]
    pub fn texts(&self, document: &Value) -> Vec<String> {
        let mut texts = Vec::new();
        walk(&self.steps, document, &mut |value| {
            texts.extend(text_of(value));
            true
        });
        texts
    }

    /// The value as the text that a placeholder stands for: a string without quotes, a number or a truth value as written.
    #[must_use]
    pub fn text(&self, document: &Value) -> Option<String> {
        text_of(self.find(document)?)
    }
}

/// Shows `pass_by` every value at the end of the way, in order; the first by which it does not pass is found.
fn walk<'a>(
    steps: &[Step],
    value: &'a Value,
    pass_by: &mut dyn FnMut(&'a Value) -> bool,
) -> Option<&'a Value> {
    let Some((step, rest)) = steps.split_first() else {
        return (!pass_by(value)).then_some(value);
    };
    match step {
        Step::Key(key) => walk(rest, value.get(key)?, pass_by),
        Step::Index(index) => walk(rest, value.get(index)?, pass_by),
        Step::Each => value
            .as_array()?
            .iter()
            .find_map(|item| walk(rest, item, pass_by)),
    }
}

/// A string without quotes, a number or a truth value as written.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("$")?;
        for step in &self.steps {
            match step {
                Step::Key(key)
                    if key
                        .chars()
                        .all(|c| c.is_alphanumeric() || c == '_' || c == '-') =>
                {
                    write!(formatter, ".{key}")?;
                }
                Step::Key(key) => write!(formatter, "[\"{key}\"]")?,
                Step::Index(index) => write!(formatter, "[{index}]")?,
                Step::Each => formatter.write_str("[*]")?,
            }
        }
        Ok(())
    }
}
