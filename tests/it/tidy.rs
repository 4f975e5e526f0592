//! The rules of the tree: who may know whom, sizes, words that mark unfinished work.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const LONGEST_FILE: usize = 500;
const LONGEST_FUNCTION: usize = 70;

/// Each row may use itself, what it names, and what those may use.
const MAY_USE: &[(&str, &[&str])] = &[
    ("event", &[]),
    ("dice", &["event"]),
    ("arrivals", &["event", "dice"]),
    ("retry", &["event", "dice"]),
    ("plan", &["event", "dice", "arrivals", "retry"]),
    ("spec", &["plan"]),
    ("agents", &["plan"]),
    ("measure", &["plan"]),
    ("net", &["event", "plan"]),
    ("live", &["agents", "net"]),
    ("chaos", &["net"]),
    ("probe", &["net", "measure"]),
    ("report", &["measure"]),
    ("watch", &["measure", "net"]),
    (
        "run",
        &["spec", "live", "chaos", "probe", "report", "watch"],
    ),
    ("lab", &[]),
    ("cli", &["run", "lab"]),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.expect("the tree can be listed").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn all_rust_files() -> Vec<PathBuf> {
    ["src", "tests", "benches"]
        .iter()
        .flat_map(|folder| rust_files(&root().join(folder)))
        .collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("a file of the tree can be read")
}

/// The module at the top level that a file below `src` belongs to.
fn area(path: &Path) -> Option<String> {
    let inside = path.strip_prefix(root().join("src")).ok()?;
    let first = inside.components().next()?.as_os_str().to_str()?;
    Some(first.trim_end_matches(".rs").to_owned())
}

fn closure(area: &str) -> BTreeSet<&'static str> {
    let rows: BTreeMap<&str, &[&'static str]> = MAY_USE.iter().copied().collect();
    let mut allowed = BTreeSet::new();
    let mut open: Vec<&str> = rows.get(area).map_or_else(Vec::new, |named| named.to_vec());
    while let Some(next) = open.pop() {
        if let Some((row, named)) = MAY_USE.iter().find(|(row, _)| *row == next)
            && allowed.insert(*row)
        {
            open.extend(named.iter());
        }
    }
    allowed
}

/// Every top-level module that the text names by `crate::` (also inside `use crate::{a, b::c}`).
fn named_areas(text: &str) -> BTreeSet<String> {
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    let mut named = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        if let Some(list) = rest.strip_prefix('{') {
            let mut depth = 1;
            let mut word = String::new();
            let mut at_item_start = true;
            for letter in list.chars() {
                if at_item_start && (letter.is_alphanumeric() || letter == '_') {
                    word.push(letter);
                    continue;
                }
                if !word.is_empty() {
                    named.insert(std::mem::take(&mut word));
                    at_item_start = false;
                }
                match letter {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 1 => at_item_start = true,
                    _ => {}
                }
                if depth == 0 {
                    break;
                }
            }
        } else {
            named.insert(
                rest.chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect(),
            );
        }
    }
    named
}

#[test]
fn areas_know_only_whom_the_table_allows() {
    let areas: BTreeSet<&str> = MAY_USE.iter().map(|(row, _)| *row).collect();
    let mut broken = Vec::new();
    for path in rust_files(&root().join("src")) {
        let Some(area) = area(&path) else { continue };
        if area == "main" || area == "lib" || area == "cli" {
            continue;
        }
        assert!(
            areas.contains(area.as_str()),
            "{}: `{area}` has no row in the table of who may know whom",
            path.display()
        );
        let allowed = closure(&area);
        for named in named_areas(&read(&path)) {
            if areas.contains(named.as_str()) && named != area && !allowed.contains(named.as_str())
            {
                broken.push(format!(
                    "{}: `{area}` must not know `{named}`",
                    path.display()
                ));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_scan_sees_every_form_of_use() {
    let text = "use crate::plan::Plan;\nuse crate::{event::{Offset, Mark}, dice};\nlet x = crate::lab::run();\n// crate::spec\nsupercrate::run;";
    let named: Vec<String> = named_areas(text).into_iter().collect();
    assert_eq!(named, ["dice", "event", "lab", "plan"]);
}

#[test]
fn files_stay_short() {
    let long: Vec<String> = all_rust_files()
        .iter()
        .map(|path| (path, read(path).lines().count()))
        .filter(|(_, lines)| *lines > LONGEST_FILE)
        .map(|(path, lines)| format!("{}: {lines} lines, at most {LONGEST_FILE}", path.display()))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// Functions by the layout that rustfmt gives them: from `fn` to the closing brace at the same indentation.
fn long_functions(text: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut long = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let words: Vec<&str> = code
            .split_whitespace()
            .take_while(|word| !word.contains('('))
            .collect();
        let is_function = code.starts_with("fn ")
            || (words.contains(&"fn")
                && ["pub", "pub(crate)", "pub(super)", "async", "const"].contains(&words[0]));
        if !is_function || code.ends_with(';') || code.ends_with('}') {
            continue;
        }
        let indent = &line[..line.len() - code.len()];
        let close = format!("{indent}}}");
        if let Some(length) = lines[start..].iter().position(|line| *line == close)
            && length + 1 > LONGEST_FUNCTION
        {
            long.push((start + 1, length + 1));
        }
    }
    long
}

#[test]
fn functions_stay_short() {
    let mut long = Vec::new();
    for path in all_rust_files() {
        for (line, length) in long_functions(&read(&path)) {
            long.push(format!(
                "{}:{line}: a function of {length} lines, at most {LONGEST_FUNCTION}",
                path.display()
            ));
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn the_function_scan_sees_a_long_function() {
    let body = "    let x = 1;\n".repeat(LONGEST_FUNCTION);
    assert_eq!(
        long_functions(&format!("pub async fn long() {{\n{body}}}\n")),
        [(1, LONGEST_FUNCTION + 2)]
    );
    assert!(long_functions("fn short() {\n}\n").is_empty());
}

#[test]
fn nothing_is_left_unfinished() {
    // Put together here so that this file does not find itself.
    let marks = [
        "TO".to_owned() + "DO",
        "FIX".to_owned() + "ME",
        "#[al".to_owned() + "low(",
        "#![al".to_owned() + "low(",
    ];
    let mut found = Vec::new();
    for path in all_rust_files() {
        for (number, line) in read(&path).lines().enumerate() {
            if marks.iter().any(|mark| line.contains(mark.as_str())) {
                found.push(format!(
                    "{}:{}: {}",
                    path.display(),
                    number + 1,
                    line.trim()
                ));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_top_level_is_the_owners() {
    let known = [
        ".ci",
        ".git",
        ".gitignore",
        "Cargo.lock",
        "Cargo.toml",
        "README.md",
        "benches",
        "chaos",
        "clippy.toml",
        "dashboards",
        "fuzz",
        "profiles",
        "src",
        "tests",
        "runs",
        "target",
    ];
    for entry in fs::read_dir(root()).expect("the tree can be listed") {
        let name = entry
            .expect("the tree can be listed")
            .file_name()
            .to_string_lossy()
            .into_owned();
        assert!(
            known.contains(&name.as_str()),
            "`{name}` has no place at the top level"
        );
    }
}
