//! Bodies of requests, with the words that Go's decoder has for what is wrong with them: clients show them to people.

use super::answer::Failure;
use serde_json::Value;
use serde_json::error::Category;

/// An object of a body, read field by field. What isn't there keeps its value, as does a `null`; other fields are ignored.
pub(super) struct Object {
    /// The name of Go's type, which is part of the words.
    of: &'static str,
    fields: Value,
}

/// The first value of a body; what follows it is ignored.
pub(super) fn value(body: &[u8]) -> Result<Value, Failure> {
    match serde_json::Deserializer::from_slice(body)
        .into_iter::<Value>()
        .next()
    {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(Failure::Body(words(&error, body))),
        None => Err(Failure::Body("EOF".to_owned())),
    }
}

fn words(error: &serde_json::Error, body: &[u8]) -> String {
    if error.classify() == Category::Eof {
        return "unexpected EOF".to_owned();
    }
    let said = error.to_string();
    let place = if said.starts_with("expected `:`") {
        "after object key"
    } else if said.starts_with("expected `,` or `}`") {
        "after object key:value pair"
    } else if said.starts_with("expected `,` or `]`") {
        "after array element"
    } else if said.starts_with("key must be a string") || said.starts_with("trailing comma") {
        "looking for beginning of object key string"
    } else {
        "looking for beginning of value"
    };
    let line = body
        .split(|byte| *byte == b'\n')
        .nth(error.line().saturating_sub(1));
    let byte = line.and_then(|line| line.get(error.column().saturating_sub(1)));
    match byte {
        Some(byte) => format!("invalid character '{}' {place}", char::from(*byte)),
        None => said,
    }
}

/// What Go calls the kind of a value.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The elements of a list of proxies.
pub(super) fn list(body: &[u8]) -> Result<Vec<Value>, Failure> {
    match value(body)? {
        Value::Array(values) => Ok(values),
        Value::Null => Ok(Vec::new()),
        other => Err(Failure::Body(format!(
            "json: cannot unmarshal {} into Go value of type []toxiproxy.Proxy",
            kind(&other)
        ))),
    }
}

impl Object {
    /// Takes a value as an object.
    pub(super) fn of(of: &'static str, value: Value) -> Result<Object, Failure> {
        match value {
            Value::Object(_) | Value::Null => Ok(Object { of, fields: value }),
            other => Err(Failure::Body(format!(
                "json: cannot unmarshal {} into Go value of type {}",
                kind(&other),
                if of == "Proxy" {
                    "toxiproxy.Proxy"
                } else {
                    "toxics.ToxicWrapper"
                },
            ))),
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    fn wrong(&self, name: &str, value: &Value, wanted: &str) -> Failure {
        let mut of = self.of;
        let mut shown = kind(value).to_owned();
        if let (Value::Number(number), true) = (value, wanted == "int64") {
            shown = format!("number {number}");
        }
        if wanted == "int64" && of == "ToxicWrapper" {
            of = "attributes";
        }
        Failure::Body(format!(
            "json: cannot unmarshal {shown} into Go struct field {of}.{name} of type {wanted}"
        ))
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Failure> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.wrong(name, other, "string")),
        }
    }

    pub(super) fn truth(&self, name: &str) -> Result<Option<bool>, Failure> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(truth)) => Ok(Some(*truth)),
            Some(other) => Err(self.wrong(name, other, "bool")),
        }
    }

    pub(super) fn share(&self, name: &str) -> Result<Option<f32>, Failure> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => match value.as_f64() {
                Some(share) => Ok(Some(share as f32)),
                None => Err(self.wrong(name, value, "float32")),
            },
        }
    }

    pub(super) fn whole(&self, name: &str) -> Result<Option<i64>, Failure> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => match value.as_i64() {
                Some(whole) => Ok(Some(whole)),
                None => Err(self.wrong(name, value, "int64")),
            },
        }
    }

    /// The object of this name; an empty one if it isn't there.
    pub(super) fn object(&self, name: &str, of: &'static str) -> Result<Object, Failure> {
        match self.get(name) {
            None => Ok(Object {
                of,
                fields: Value::Null,
            }),
            Some(value @ Value::Object(_)) => Ok(Object {
                of,
                fields: value.clone(),
            }),
            Some(other) => Err(self.wrong(name, other, of)),
        }
    }
}
