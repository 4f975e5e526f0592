//! Texts with placeholders `<name>`.
//!
//! Which names exist is decided by whoever renders. `<<` stands for a plain `<`.

use std::fmt;

/// A text in which `<name>` is replaced when it is used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Template {
    parts: Vec<Owned>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Owned {
    Text(String),
    Name(String),
}

/// A part of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    Text(&'a str),
    Name(&'a str),
}

/// A template that can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}`: the placeholder that starts at character {at} has no closing `>`; write `<<` for a plain `<`"
)]
pub struct Unclosed {
    text: String,
    at: usize,
}

/// A name that nobody gave a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("nothing is known as <{0}> here")]
pub struct UnknownName(pub String);

impl Template {
    /// Reads a text with placeholders.
    ///
    /// # Errors
    /// If a placeholder is not closed.
    pub fn parse(text: &str) -> Result<Template, Unclosed> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(open) = rest.find('<') {
            plain.push_str(&rest[..open]);
            let after = &rest[open + 1..];
            if let Some(escaped) = after.strip_prefix('<') {
                plain.push('<');
                rest = escaped;
                continue;
            }
            let Some(close) = after.find('>') else {
                let at = text.len() - rest.len() + open + 1;
                return Err(Unclosed {
                    text: text.to_owned(),
                    at,
                });
            };
            if !plain.is_empty() {
                parts.push(Owned::Text(std::mem::take(&mut plain)));
            }
            parts.push(Owned::Name(after[..close].trim().to_owned()));
            rest = &after[close + 1..];
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Owned::Text(plain));
        }
        Ok(Template { parts })
    }

    /// A text without placeholders.
    #[must_use]
    pub fn literal(text: &str) -> Template {
        Template {
            parts: vec![Owned::Text(text.to_owned())],
        }
    }

    /// The placeholder `<name>` alone.
    #[must_use]
    pub fn placeholder(name: &str) -> Template {
        Template {
            parts: vec![Owned::Name(name.to_owned())],
        }
    }

    /// Its parts, in order.
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.parts.iter().map(|part| match part {
            Owned::Text(text) => Part::Text(text),
            Owned::Name(name) => Part::Name(name),
        })
    }

    /// The names that it needs, in order, repeated where they repeat.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Owned::Name(name) => Some(name.as_str()),
            Owned::Text(_) => None,
        })
    }

    /// Appends the text with every name replaced by what `value` appends for it; `value` answers whether it knew the name.
    ///
    /// # Errors
    /// If a name is unknown to `value`.
    pub fn render_into(
        &self,
        out: &mut String,
        mut value: impl FnMut(&str, &mut String) -> bool,
    ) -> Result<(), UnknownName> {
        for part in &self.parts {
            match part {
                Owned::Text(text) => out.push_str(text),
                Owned::Name(name) => {
                    if !value(name, out) {
                        return Err(UnknownName(name.clone()));
                    }
                }
            }
        }
        Ok(())
    }

    /// The template with the names that `value` knows made part of the text; the others stay placeholders.
    #[must_use]
    pub fn resolve(&self, value: &dyn Fn(&str) -> Option<String>) -> Template {
        let mut parts: Vec<Owned> = Vec::new();
        for part in &self.parts {
            let text = match part {
                Owned::Text(text) => text.clone(),
                Owned::Name(name) => match value(name) {
                    Some(text) => text,
                    None => {
                        parts.push(part.clone());
                        continue;
                    }
                },
            };
            match parts.last_mut() {
                Some(Owned::Text(before)) => before.push_str(&text),
                _ => parts.push(Owned::Text(text)),
            }
        }
        Template { parts }
    }
}

impl fmt::Display for Template {
    /// As it was written.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                Owned::Text(text) => formatter.write_str(&text.replace('<', "<<"))?,
                Owned::Name(name) => write!(formatter, "<{name}>")?,
            }
        }
        Ok(())
    }
}

/// A JSON body whose strings are templates.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonTemplate {
    /// A number, true, false or null.
    Plain(serde_json::Value),
    Text(Template),
    List(Vec<JsonTemplate>),
    Map(Vec<(String, JsonTemplate)>),
}

impl JsonTemplate {
    /// The body with its placeholders replaced.
    ///
    /// # Errors
    /// If a name is unknown to `value`.
    pub fn render(
        &self,
        value: &mut dyn FnMut(&str, &mut String) -> bool,
    ) -> Result<serde_json::Value, UnknownName> {
        Ok(match self {
            JsonTemplate::Plain(plain) => plain.clone(),
            JsonTemplate::Text(template) => {
                let mut text = String::new();
                template.render_into(&mut text, &mut *value)?;
                serde_json::Value::String(text)
            }
            JsonTemplate::List(items) => serde_json::Value::Array(
                items
                    .iter()
                    .map(|item| item.render(value))
                    .collect::<Result<_, _>>()?,
            ),
            JsonTemplate::Map(entries) => serde_json::Value::Object(
                entries
                    .iter()
                    .map(|(key, item)| Ok((key.clone(), item.render(value)?)))
                    .collect::<Result<_, UnknownName>>()?,
            ),
        })
    }

    /// The same with known names made part of the text, as [`Template::resolve`] does.
    #[must_use]
    pub fn resolve(&self, value: &dyn Fn(&str) -> Option<String>) -> JsonTemplate {
        match self {
            JsonTemplate::Plain(plain) => JsonTemplate::Plain(plain.clone()),
            JsonTemplate::Text(template) => JsonTemplate::Text(template.resolve(value)),
            JsonTemplate::List(items) => {
                JsonTemplate::List(items.iter().map(|item| item.resolve(value)).collect())
            }
            JsonTemplate::Map(entries) => JsonTemplate::Map(
                entries
                    .iter()
                    .map(|(key, item)| (key.clone(), item.resolve(value)))
                    .collect(),
            ),
        }
    }

    /// Every name used anywhere in the body.
    pub fn names(&self, each: &mut dyn FnMut(&str)) {
        match self {
            JsonTemplate::Plain(_) => {}
            JsonTemplate::Text(template) => template.names().for_each(each),
            JsonTemplate::List(items) => items.iter().for_each(|item| item.names(each)),
            JsonTemplate::Map(entries) => entries.iter().for_each(|(_, item)| item.names(each)),
        }
    }
}
