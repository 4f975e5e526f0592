//! A YAML document as a tree in which every key and value knows its place.
//!
//! Decides how anchors, aliases and merge keys are laid out, and refuses what this project's files never need: duplicate
//! keys, tags, several documents, keys that are no text. What a plain scalar means is decided by `serde_yaml` (see `load`).

use super::log::{Log, Place};
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_yaml::Value;
use std::collections::HashMap;

/// Aliases may lay out at most so many nodes: a few nested ones could otherwise fill the memory.
const ALIAS_BUDGET: usize = 20_000;
/// Deeper than any file of this project needs.
const DEEPEST: usize = 64;

/// A key's or value's content with its place.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub place: Place,
    pub content: Content,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A scalar as written, and what `serde_yaml` makes of it.
#[derive(Debug, Clone)]
pub(super) struct Scalar {
    pub text: String,
    /// Written without quotes, so that its type is a matter of rules.
    pub plain: bool,
    pub value: Value,
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub key: String,
    pub key_place: Place,
    /// The key as `serde_yaml` types it.
    key_value: Value,
    pub node: Node,
}

impl Scalar {
    /// A plain scalar means what `serde_yaml` makes of it; a quoted one is a text.
    fn read(text: String, plain: bool) -> Scalar {
        let typed = if plain {
            serde_yaml::from_str(&text).ok()
        } else {
            None
        };
        let value = typed.filter(|value: &Value| !value.is_mapping() && !value.is_sequence());
        Scalar {
            value: value.unwrap_or_else(|| Value::String(text.clone())),
            text,
            plain,
        }
    }
}

impl Node {
    /// The whole as `serde_yaml` would have it.
    pub fn value(&self) -> Value {
        match &self.content {
            Content::Scalar(scalar) => scalar.value.clone(),
            Content::List(items) => Value::Sequence(items.iter().map(Node::value).collect()),
            Content::Map(entries) => Value::Mapping(
                entries
                    .iter()
                    .map(|entry| (entry.key_value.clone(), entry.node.value()))
                    .collect(),
            ),
        }
    }

    /// True for `~`, `null` and nothing at all.
    pub fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar(scalar) if scalar.value.is_null())
    }

    fn size(&self) -> usize {
        1 + match &self.content {
            Content::Scalar(_) => 0,
            Content::List(items) => items.iter().map(Node::size).sum(),
            Content::Map(entries) => entries.iter().map(|entry| entry.node.size()).sum(),
        }
    }
}

/// A list or map whose end has not been seen yet.
struct Open {
    node: Node,
    anchor: usize,
    key: Option<(Scalar, Place)>,
}

struct Builder<'a> {
    log: &'a Log,
    file: usize,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    budget: usize,
    documents: Vec<(Place, Option<Node>)>,
    broken: bool,
}

/// Builds the tree of the only document of `text`; `None` if something was wrong (and is in the log).
pub(super) fn build(log: &Log, file: usize, text: &str) -> Option<Node> {
    let mut builder = Builder {
        log,
        file,
        open: Vec::new(),
        anchors: HashMap::new(),
        budget: ALIAS_BUDGET,
        documents: Vec::new(),
        broken: false,
    };
    for step in Parser::new_from_str(text) {
        match step {
            Ok((event, span)) => builder.take(
                event,
                Place {
                    file,
                    line: span.start.line(),
                    column: span.start.col() + 1,
                },
            ),
            Err(error) => {
                let mark = error.marker();
                builder.syntax(
                    Place {
                        file,
                        line: mark.line(),
                        column: mark.col() + 1,
                    },
                    error.info(),
                );
            }
        }
        if builder.broken {
            return None;
        }
    }
    builder.finish()
}

impl Builder<'_> {
    fn wrong(&mut self, place: Place, message: String, help: Option<&str>) {
        self.log
            .wrong(place, &self.path(), message, help.map(str::to_owned));
    }

    fn stop(&mut self, place: Place, message: String, help: Option<&str>) {
        self.wrong(place, message, help);
        self.broken = true;
    }

    fn syntax(&mut self, place: Place, info: &str) {
        let tab = (place.line.saturating_sub(1)..=place.line).find_map(|line| {
            let text = self.log.line(Place { line, ..place });
            let indent = text.len() - text.trim_start_matches([' ', '\t']).len();
            text[..indent].find('\t').map(|at| Place {
                line,
                column: at + 1,
                ..place
            })
        });
        match tab {
            Some(place) => self.stop(
                place,
                "a tab in the indentation; YAML indents with blanks".to_owned(),
                Some("replace the tab by two blanks"),
            ),
            None => self.stop(place, format!("not YAML: {info}"), None),
        }
    }

    /// The path of what is being read.
    fn path(&self) -> String {
        let mut path = String::new();
        for open in &self.open {
            match &open.node.content {
                Content::List(items) => path.push_str(&format!("[{}]", items.len())),
                _ => {
                    if let Some((key, _)) = &open.key {
                        path = join(&path, &key.text);
                    }
                }
            }
        }
        path
    }

    fn take(&mut self, event: Event<'_>, place: Place) {
        let tag = match &event {
            Event::Scalar(_, _, _, tag)
            | Event::SequenceStart(_, tag)
            | Event::MappingStart(_, tag) => tag.as_ref().map(|tag| {
                format!("{}{}", tag.handle, tag.suffix).replace("tag:yaml.org,2002:", "!!")
            }),
            _ => None,
        };
        if let Some(tag) = tag {
            self.wrong(
                place,
                format!("the tag `{tag}`: tags are no part of these files"),
                Some("leave it out"),
            );
        }
        match event {
            Event::DocumentStart(_) => self.documents.push((place, None)),
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == ScalarStyle::Plain;
                let scalar = Scalar::read(text.into_owned(), plain);
                self.done(
                    Node {
                        place,
                        content: Content::Scalar(scalar),
                    },
                    anchor,
                );
            }
            Event::SequenceStart(anchor, _) => self.begin(place, Content::List(Vec::new()), anchor),
            Event::MappingStart(anchor, _) => self.begin(place, Content::Map(Vec::new()), anchor),
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(open) = self.open.pop() {
                    self.done(open.node, open.anchor);
                }
            }
            Event::Alias(anchor) => self.alias(anchor, place),
            Event::DocumentEnd | Event::Nothing | Event::StreamStart | Event::StreamEnd => {}
        }
    }

    fn begin(&mut self, place: Place, content: Content, anchor: usize) {
        if self.open.len() >= DEEPEST {
            self.stop(place, format!("nested deeper than {DEEPEST} levels"), None);
        } else {
            self.open.push(Open {
                node: Node { place, content },
                anchor,
                key: None,
            });
        }
    }

    fn alias(&mut self, anchor: usize, place: Place) {
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            return self.stop(
                place,
                "an alias inside the very thing that it stands for".to_owned(),
                None,
            );
        };
        match self.budget.checked_sub(node.size()) {
            Some(rest) => self.budget = rest,
            None => {
                return self.stop(
                    place,
                    format!("aliases lay out more than {ALIAS_BUDGET} values"),
                    None,
                );
            }
        }
        self.done(node, 0);
    }

    /// A whole node has been read: it is a document, an item, a key or a value.
    fn done(&mut self, node: Node, anchor: usize) {
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            if let Some((_, root)) = self.documents.last_mut() {
                *root = Some(node);
            }
            return;
        };
        match (&mut open.node.content, open.key.take()) {
            (Content::List(items), _) => items.push(node),
            (Content::Map(entries), Some((key, key_place))) => {
                entries.push(Entry {
                    key: key.text,
                    key_place,
                    key_value: key.value,
                    node,
                });
            }
            (_, None) => match node.content {
                Content::Scalar(scalar) => open.key = Some((scalar, node.place)),
                Content::List(_) | Content::Map(_) => {
                    self.stop(node.place, "a key must be plain text".to_owned(), None)
                }
            },
            (Content::Scalar(_), Some(_)) => {}
        }
    }

    fn finish(self) -> Option<Node> {
        if let Some((place, _)) = self.documents.get(1) {
            let help = Some("keep one document a file; take out the `---`".to_owned());
            self.log
                .wrong(*place, "", "a second document starts here".to_owned(), help);
            return None;
        }
        let root = self.documents.into_iter().next().and_then(|(_, root)| root);
        if root.as_ref().is_none_or(Node::is_null) {
            self.log.wrong_file(
                self.file,
                "the file is empty",
                Some("see profiles/ for examples".to_owned()),
            );
            return None;
        }
        root
    }
}

/// Refuses duplicate keys and lays out merge keys, everywhere below `node`.
pub(super) fn settle(log: &Log, node: &mut Node, path: &str) {
    match &mut node.content {
        Content::Scalar(_) => {}
        Content::List(items) => {
            for (row, item) in items.iter_mut().enumerate() {
                settle(log, item, &format!("{path}[{row}]"));
            }
        }
        Content::Map(entries) => {
            let mut seen: HashMap<String, usize> = HashMap::new();
            entries.retain(|entry| match seen.get(&entry.key) {
                None => {
                    seen.insert(entry.key.clone(), entry.key_place.line);
                    true
                }
                Some(line) => {
                    let message = format!("`{}` is given twice, first on line {line}", entry.key);
                    let help = Some("keep one of the two".to_owned());
                    log.wrong(entry.key_place, &join(path, &entry.key), message, help);
                    false
                }
            });
            for entry in entries.iter_mut() {
                settle(log, &mut entry.node, &join(path, &entry.key));
            }
            merge(log, entries, path);
        }
    }
}

/// `<<: *base` or `<<: [*a, *b]`: keys that are not given stand as in the merged map, the earlier map first.
fn merge(log: &Log, entries: &mut Vec<Entry>, path: &str) {
    let Some(at) = entries.iter().position(|entry| entry.key == "<<") else {
        return;
    };
    let merged = entries.remove(at);
    let sources = match merged.node.content {
        Content::List(items) => items,
        content => vec![Node {
            place: merged.node.place,
            content,
        }],
    };
    for source in sources {
        match source.content {
            Content::Map(given) => {
                for entry in given {
                    if !entries.iter().any(|own| own.key == entry.key) {
                        entries.push(entry);
                    }
                }
            }
            _ => log.wrong(
                merged.key_place,
                &join(path, "<<"),
                "`<<` takes a map, or a list of maps".to_owned(),
                Some("write `<<: *name`, with `&name` at the map to merge".to_owned()),
            ),
        }
    }
}

/// `path.key`
pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}
