//! The schemas are what the reader expects, no more and no less.
//!
//! Every file of the repository is read, good and bad; what the reader expected at each path is a schema. It must equal the one
//! that is shipped: `RUSHHOUR_REFRESH_SCHEMA=1 cargo test --lib spec::schema` writes it anew. A key that no file shows has no
//! shape, and the test asks for an example in `tests/it/schema/`.

use super::super::log::Log;
use super::super::shape::Shape;
use super::super::{Sources, build};
use super::{FileKind, schema};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const KINDS: [FileKind; 3] = [FileKind::Profile, FileKind::Target, FileKind::Experiment];

type Expected = BTreeMap<String, BTreeSet<Shape>>;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn yaml_files(folder: &str) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(here(folder)).expect("a folder of the repository can be listed");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("its entries can be read").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .collect();
    files.sort();
    files
}

/// A file of the repository: its kind, and the run in which it is read.
fn kind_of(file: &Path) -> FileKind {
    let text = file.display().to_string();
    let name = file
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    if text.contains("/chaos/") || name.starts_with("chaos") || name.starts_with("experiment") {
        FileKind::Experiment
    } else if text.contains("/targets/") || name.starts_with("target") {
        FileKind::Target
    } else {
        FileKind::Profile
    }
}

fn run_with(file: &Path) -> Sources {
    let in_samples = file.starts_with(here("tests/it/schema"));
    let good = here(if in_samples {
        "tests/it/schema/profile.yaml"
    } else {
        "tests/it/bad/good/profile.yaml"
    });
    match kind_of(file) {
        FileKind::Profile => Sources {
            profile: file.to_owned(),
            ..Sources::default()
        },
        FileKind::Target => Sources {
            profile: good,
            target: Some(file.to_owned()),
            ..Sources::default()
        },
        FileKind::Experiment => Sources {
            profile: good,
            chaos: vec![file.to_owned()],
            ..Sources::default()
        },
    }
}

fn all_files() -> Vec<PathBuf> {
    const FOLDERS: [&str; 6] = [
        "profiles",
        "profiles/targets",
        "chaos",
        "tests/it/bad",
        "tests/it/bad/good",
        "tests/it/schema",
    ];
    FOLDERS
        .iter()
        .flat_map(|folder| yaml_files(folder))
        .collect()
}

/// What the reader expects in each kind of file.
fn expected() -> [Expected; 3] {
    let mut expected: [Expected; 3] = Default::default();
    for file in all_files() {
        let sources = run_with(&file);
        let log = Log::default();
        build(&log, &sources);
        for ((number, path), shapes) in log.shapes.all() {
            let opened = log.path(number);
            let kind = if sources.chaos.contains(&opened) {
                FileKind::Experiment
            } else if opened == sources.profile {
                FileKind::Profile
            } else {
                FileKind::Target
            };
            expected[kind as usize]
                .entry(path)
                .or_default()
                .extend(shapes);
        }
    }
    expected
}

/// The schema of a path; `bare` gets the paths that nothing is known about.
fn schema_of(expected: &Expected, path: &str, bare: &mut Vec<String>) -> Value {
    let Some(shapes) = expected.get(path) else {
        return match elsewhere(expected, path) {
            Some(path) => schema_of(expected, path, bare),
            None => {
                bare.push(path.to_owned());
                json!(true)
            }
        };
    };
    if shapes.contains(&Shape::Json) {
        return json!(true);
    }
    // Readers look whether there is a word before they read it as what it should be.
    let is_told = shapes
        .iter()
        .any(|shape| *shape != Shape::Scalar && plain(shape).is_some());
    let mut ways: Vec<Value> = shapes
        .iter()
        .filter(|shape| !(is_told && **shape == Shape::Scalar))
        .filter_map(plain)
        .collect();
    if shapes.contains(&Shape::List) {
        let items = schema_of(expected, &format!("{path}/[]"), bare);
        ways.push(json!({ "type": "array", "minItems": 1, "items": items }));
    }
    if shapes.contains(&Shape::Names) {
        let each = schema_of(expected, &format!("{path}/*"), bare);
        ways.push(json!({ "type": "object", "minProperties": 1, "additionalProperties": each }));
    }
    ways.extend(keys(expected, path, shapes, bare));
    if ways.len() == 1 {
        ways.remove(0)
    } else {
        json!({ "anyOf": ways })
    }
}

/// A key that no file shows here means what it means elsewhere, if it means one thing: the path that shows most of it.
fn elsewhere<'a>(expected: &'a Expected, path: &str) -> Option<&'a str> {
    let key = &path[path.rfind('/')?..];
    let same = || {
        let others = expected.iter();
        others.filter(|(other, _)| other.ends_with(key) && !path.starts_with(other.as_str()))
    };
    let (most, shapes) = same().max_by_key(|(_, shapes)| shapes.len())?;
    same()
        .all(|(_, others)| others.is_subset(shapes))
        .then_some(most.as_str())
}

/// The schema of a value without parts.
fn plain(shape: &Shape) -> Option<Value> {
    Some(match shape {
        Shape::Text => json!({ "type": "string", "minLength": 1 }),
        Shape::Duration => json!({ "type": "string", "pattern": "^[0-9][0-9_.]*(us|ms|s|m|h|d)" }),
        Shape::Rate => json!({ "type": "string", "pattern": "^[0-9][0-9_.]*/(s|min|h)$" }),
        Shape::Share => json!({ "type": "string", "pattern": "^[0-9][0-9_.]*%$" }),
        Shape::Size => json!({ "type": "string", "pattern": "^[0-9][0-9_.]* *[A-Za-z]+$" }),
        Shape::ByteRate => {
            json!({ "type": "string", "pattern": "^[0-9][0-9_.]* *[A-Za-z]+/[a-z]+$" })
        }
        Shape::Number => json!({ "type": "number" }),
        Shape::Count(from, to) => json!({
            "anyOf": [
                { "type": "integer", "minimum": from, "maximum": to },
                { "type": "string", "pattern": "^[0-9][0-9_]*$" }
            ]
        }),
        Shape::Truth => json!({ "type": "boolean" }),
        Shape::Words(words) => {
            // A word such as `1.3` is a number to a reader of YAML.
            let numbers = words.iter().filter_map(|word| word.parse::<f64>().ok());
            let all: Vec<Value> = words
                .iter()
                .map(|word| json!(word))
                .chain(numbers.map(|number| json!(number)))
                .collect();
            json!({ "enum": all })
        }
        Shape::Scalar => json!({ "type": ["string", "number", "boolean"] }),
        Shape::Json | Shape::List | Shape::Names | Shape::Keys(_) => return None,
    })
}

/// The map with known keys, whatever reading asked for them; needed is what every reading needs.
fn keys(
    expected: &Expected,
    path: &str,
    shapes: &BTreeSet<Shape>,
    bare: &mut Vec<String>,
) -> Option<Value> {
    let readings: Vec<_> = shapes
        .iter()
        .filter_map(|shape| match shape {
            Shape::Keys(keys) => Some(keys),
            _ => None,
        })
        .collect();
    let first = readings.first()?;
    let known: BTreeSet<&str> = readings
        .iter()
        .flat_map(|keys| keys.known.iter().copied())
        .collect();
    let properties: Map<String, Value> = known
        .iter()
        .map(|key| {
            (
                (*key).to_owned(),
                schema_of(expected, &format!("{path}/{key}"), bare),
            )
        })
        .collect();
    let needed = first
        .needed
        .iter()
        .filter(|group| readings.iter().all(|keys| keys.needed.contains(*group)));
    let (single, several): (Vec<_>, Vec<_>) = needed.partition(|group| group.len() == 1);
    let mut schema =
        json!({ "type": "object", "additionalProperties": false, "properties": properties });
    if !single.is_empty() {
        schema["required"] = json!(single.into_iter().flatten().collect::<Vec<_>>());
    }
    let several: Vec<Value> = several
        .into_iter()
        .map(|group| {
            let ways: Vec<Value> = group
                .iter()
                .map(|key| json!({ "required": [key] }))
                .collect();
            json!({ "oneOf": ways })
        })
        .collect();
    if !several.is_empty() {
        schema["allOf"] = json!(several);
    }
    Some(schema)
}

/// A check of the few words of JSON Schema that are used here, but for patterns, which editors check.
fn fits(value: &Value, schema: &Value) -> bool {
    let Some(rules) = schema.as_object() else {
        return schema == &json!(true);
    };
    let list = |rule: &str| rules.get(rule).and_then(Value::as_array);
    let of_type = |name: &Value| match name.as_str() {
        Some("string") => value.is_string(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_u64(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        _ => value.is_object(),
    };
    let typed = rules.get("type").is_none_or(|names| match names {
        Value::Array(names) => names.iter().any(of_type),
        name => of_type(name),
    });
    let bound = |rule: &str| rules.get(rule).and_then(Value::as_u64);
    let within = value.as_u64().is_none_or(|number| {
        bound("minimum").is_none_or(|least| number >= least)
            && bound("maximum").is_none_or(|most| number <= most)
    });
    let items = value.as_array().is_none_or(|items| {
        items
            .iter()
            .all(|item| rules.get("items").is_none_or(|each| fits(item, each)))
    });
    let entries = value.as_object().is_none_or(|map| {
        let known = rules.get("properties").and_then(Value::as_object);
        map.iter().all(|(key, value)| {
            let own = known
                .and_then(|known| known.get(key))
                .or(rules.get("additionalProperties"));
            own.is_none_or(|own| *own != json!(false) && fits(value, own))
        })
    });
    let present = list("required").is_none_or(|keys| {
        keys.iter()
            .all(|key| value.get(key.as_str().unwrap_or_default()).is_some())
    });
    typed
        && within
        && items
        && entries
        && present
        && list("enum").is_none_or(|words| words.contains(value))
        && list("anyOf").is_none_or(|ways| ways.iter().any(|way| fits(value, way)))
        && list("allOf").is_none_or(|all| all.iter().all(|one| fits(value, one)))
        && list("oneOf").is_none_or(|ways| ways.iter().filter(|way| fits(value, way)).count() == 1)
}

/// A YAML file as an editor hands it to the schema.
fn document(file: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(file).ok()?;
    let value: serde_yaml::Value = serde_yaml::from_str(&text).ok()?;
    serde_json::to_value(value).ok()
}

fn parsed(kind: FileKind) -> Value {
    serde_json::from_str(schema(kind)).expect("the schema is JSON")
}

#[test]
fn the_schemas_are_what_the_reader_expects() {
    let mut bare = Vec::new();
    for (kind, expected) in KINDS.iter().zip(expected()) {
        let name = format!("{kind:?}").to_lowercase();
        let mut schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": format!("rushhour {name}"),
        });
        let mut unknown = Vec::new();
        let body = schema_of(&expected, "", &mut unknown);
        schema
            .as_object_mut()
            .expect("it is a map")
            .extend(body.as_object().expect("a file is a map").clone());
        bare.extend(unknown.into_iter().map(|path| format!("{name}: {path}")));
        let text = serde_json::to_string_pretty(&schema).expect("a schema is plain data") + "\n";
        if std::env::var_os("RUSHHOUR_REFRESH_SCHEMA").is_some() {
            std::fs::write(here("src/spec/schema").join(format!("{name}.json")), text)
                .expect("the schema can be written");
        } else {
            assert_eq!(
                super::schema(*kind),
                text,
                "refresh src/spec/schema/{name}.json"
            );
        }
    }
    assert!(
        bare.is_empty(),
        "no file of the repository shows what stands behind these keys:\n{}",
        bare.join("\n")
    );
}

#[test]
fn every_good_file_fits_its_schema() {
    let good = all_files()
        .into_iter()
        .filter(|file| file.parent() != Some(&here("tests/it/bad")));
    let mut seen = 0;
    for file in good {
        let document = document(&file).unwrap_or_else(|| panic!("{} can be read", file.display()));
        assert!(
            fits(&document, &parsed(kind_of(&file))),
            "{}",
            file.display()
        );
        seen += 1;
    }
    assert!(seen >= 12, "only {seen} good files were found");
}

/// What the reader calls wrong in shape, the schema refuses too.
#[test]
fn every_file_of_a_bad_shape_is_refused() {
    let mut seen = 0;
    for file in yaml_files("tests/it/bad") {
        let said = std::fs::read_to_string(file.with_extension("txt")).unwrap_or_default();
        let by_shape = [
            "unknown field `",
            "expected a list, found",
            "expected a map, found",
            "can't stand beside `",
        ];
        let Some(document) =
            document(&file).filter(|_| by_shape.iter().any(|words| said.contains(words)))
        else {
            continue;
        };
        assert!(
            !fits(&document, &parsed(kind_of(&file))),
            "{}",
            file.display()
        );
        seen += 1;
    }
    assert!(seen >= 5, "only {seen} files of a bad shape were found");
}
