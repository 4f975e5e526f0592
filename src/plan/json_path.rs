//! The small part of JSONPath that target files need: `$.a.b[0].c`, `$["odd name"]`.

use serde_json::Value;
use std::fmt;

/// A way to one value inside a JSON document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

/// A path that can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a path like `$.bikes[0].id`")]
pub struct BadPath(String);

impl JsonPath {
    /// Reads a path.
    ///
    /// # Errors
    /// If the text is anything but `$` followed by `.name`, `[number]` and `["name"]`.
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

    /// The value at the end of the path.
    #[must_use]
    pub fn find<'a>(&self, document: &'a Value) -> Option<&'a Value> {
        self.steps
            .iter()
            .try_fold(document, |value, step| match step {
                Step::Key(key) => value.get(key),
                Step::Index(index) => value.get(index),
            })
    }

    /// The value as the text that a placeholder stands for: a string without quotes, a number or a truth value as written.
    #[must_use]
    pub fn text(&self, document: &Value) -> Option<String> {
        match self.find(document)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(truth) => Some(truth.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
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
            }
        }
        Ok(())
    }
}
