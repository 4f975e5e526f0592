//! From a file to a tree whose places are known and on whose meaning two independent readers of YAML agree.

use super::log::{Log, Place};
use super::tree::{self, Content, Node};
use serde_yaml::Value;
use std::io::Read;
use std::path::Path;

/// No file of this project comes near to it.
const LARGEST_BYTES: u64 = 1024 * 1024;

/// Reads a file; `None` if it can't be used at all. What is wrong with it is in the log.
pub(super) fn load(log: &Log, path: &Path) -> Option<Node> {
    let file = log.open(path);
    let text = read_text(log, file, path)?;
    log.set_text(file, &text);
    let mut root = tree::build(log, file, &text)?;
    tree::settle(log, &mut root, "");
    if log.is_clean_in(file) {
        confirm(log, file, &text, &root)?;
    }
    Some(root)
}

fn read_text(log: &Log, file: usize, path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(path);
    let read = opened.and_then(|handle| handle.take(LARGEST_BYTES + 1).read_to_end(&mut bytes));
    if let Err(error) = read {
        let help = "paths inside a file are relative to that file".to_owned();
        log.wrong_file(file, &format!("can't be read: {error}"), Some(help));
        return None;
    }
    if bytes.len() as u64 > LARGEST_BYTES {
        log.wrong_file(
            file,
            "larger than 1 MiB",
            Some("give the path of a profile, target or experiment".to_owned()),
        );
        return None;
    }
    match String::from_utf8(bytes) {
        // The mark that some editors put before UTF-8 is no part of the text.
        Ok(text) => Some(
            text.strip_prefix('\u{feff}')
                .map_or(text.clone(), str::to_owned),
        ),
        Err(error) => {
            let good = error.utf8_error().valid_up_to();
            let line = 1 + error.as_bytes()[..good]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count();
            let message = format!("not UTF-8: byte {good} (line {line}) is no part of a character");
            log.wrong_file(file, &message, Some("save the file as UTF-8".to_owned()));
            None
        }
    }
}

/// `serde_yaml` must accept the document and see the same in it.
fn confirm(log: &Log, file: usize, text: &str, root: &Node) -> Option<()> {
    let read = serde_yaml::from_str::<Value>(text)
        .and_then(|mut value| value.apply_merge().map(|()| value));
    match read {
        Err(error) => {
            let message = format!("not YAML: {error}");
            match error.location() {
                Some(at) => log.wrong(
                    Place {
                        file,
                        line: at.line(),
                        column: at.column(),
                    },
                    "",
                    message,
                    None,
                ),
                None => log.wrong_file(file, &message, None),
            }
            None
        }
        Ok(value) if value == root.value() => Some(()),
        Ok(value) => {
            let (place, path) = first_difference(root, &value, String::new());
            let message = "readers of YAML do not agree on what this means".to_owned();
            log.wrong(
                place,
                &path,
                message,
                Some("put it into quotes, or write it in another way".to_owned()),
            );
            None
        }
    }
}

/// The deepest place at which tree and value part.
fn first_difference(node: &Node, value: &Value, path: String) -> (Place, String) {
    let differs =
        |child: &Node, other: Option<&Value>| other.is_none_or(|other| *other != child.value());
    match (&node.content, value) {
        (Content::List(items), Value::Sequence(others)) => items
            .iter()
            .enumerate()
            .find(|(row, item)| differs(item, others.get(*row)))
            .map(|(row, item)| {
                let other = others.get(row).unwrap_or(&Value::Null);
                first_difference(item, other, format!("{path}[{row}]"))
            }),
        (Content::Map(entries), Value::Mapping(others)) => entries
            .iter()
            .find(|entry| differs(&entry.node, others.get(entry.key.as_str())))
            .map(|entry| {
                let other = others.get(entry.key.as_str()).unwrap_or(&Value::Null);
                first_difference(&entry.node, other, tree::join(&path, &entry.key))
            }),
        _ => None,
    }
    .unwrap_or((node.place, path))
}
