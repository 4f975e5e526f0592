//! Texts with placeholders, and JSON made of them, as they stand in a file.

use super::reader::At;
use super::shape::Shape;
use super::tree::{Content, Scalar};
use super::words::{self, Placeholders};
use crate::plan::template::{JsonTemplate, Template};
use serde_yaml::Value;

impl At<'_> {
    /// A text with placeholders, each of which must be one of `known`.
    pub fn template(&self, known: &Placeholders<'_>) -> Option<Template> {
        let text = self.text()?;
        match Template::parse(text) {
            Ok(template) => {
                let mut right = true;
                for name in template.names() {
                    right &= self.placeholder(text, name, known);
                }
                right.then_some(template)
            }
            Err(error) => {
                self.wrong(
                    error.to_string(),
                    "close the placeholder with `>`, or write `<<` for a plain `<`",
                );
                None
            }
        }
    }

    fn placeholder(&self, text: &str, name: &str, known: &Placeholders<'_>) -> bool {
        let Err(help) = known.find(name) else {
            return true;
        };
        let offset = text
            .find(&format!("<{name}"))
            .map_or(0, |byte| text[..byte].chars().count());
        self.wrong_within(
            offset,
            format!("nothing is known as <{name}> here"),
            Some(help),
        );
        false
    }

    /// Any JSON value whose texts are templates.
    pub fn json(&self, known: &Placeholders<'_>) -> Option<JsonTemplate> {
        self.expect(Shape::Json);
        match &self.node.content {
            Content::Scalar(scalar) => match &scalar.value {
                Value::String(text) if text.is_empty() => {
                    Some(JsonTemplate::Text(Template::literal("")))
                }
                Value::String(_) if scalar.plain && words::is_ambiguous(&scalar.text) => {
                    self.ambiguous(scalar)
                }
                Value::String(_) => self.template(known).map(JsonTemplate::Text),
                other => self.json_plain(scalar, other),
            },
            Content::List(items) => {
                let items: Vec<_> = items
                    .iter()
                    .enumerate()
                    .map(|(row, item)| self.item(row, item).json(known))
                    .collect();
                items
                    .into_iter()
                    .collect::<Option<Vec<_>>>()
                    .map(JsonTemplate::List)
            }
            Content::Map(entries) => {
                let pairs: Vec<_> = entries
                    .iter()
                    .map(|entry| Some((entry.key.clone(), self.below(entry).json(known)?)))
                    .collect();
                pairs
                    .into_iter()
                    .collect::<Option<Vec<_>>>()
                    .map(JsonTemplate::Map)
            }
        }
    }

    fn json_plain(&self, scalar: &Scalar, value: &Value) -> Option<JsonTemplate> {
        match serde_json::to_value(value) {
            Ok(json) if json.is_null() == value.is_null() && !words::is_ambiguous(&scalar.text) => {
                Some(JsonTemplate::Plain(json))
            }
            _ => self.ambiguous(scalar),
        }
    }

    fn ambiguous<T>(&self, scalar: &Scalar) -> Option<T> {
        self.wrong(
            format!(
                "`{}` means different things to different readers of YAML and JSON",
                scalar.text
            ),
            "write it as a plain number, as `true` or `false`, or in quotes if it is a text",
        );
        None
    }
}
