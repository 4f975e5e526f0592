//! Words of the files: names that users choose, near misses, placeholders, and texts that YAML readers do not agree on.

use super::units::Wrong;
use serde_yaml::Value;

/// Words that the grammar of expectations gives a meaning.
const RESERVED: [&str; 36] = [
    "after",
    "at",
    "attempts",
    "blind",
    "command",
    "commands",
    "connect",
    "connected",
    "connects",
    "critical",
    "drain",
    "during",
    "each",
    "fault",
    "for",
    "from",
    "handshake",
    "hubs",
    "if",
    "in",
    "outside",
    "pool",
    "queue",
    "reconnects",
    "recovery",
    "synchronisation",
    "trigger",
    "triggers",
    "faults",
    "within",
    "lost",
    "telemetry",
    "answer",
    "reauthenticate",
    "returns",
    "status",
];

/// A name that a user may give: letters, digits, `-` and `_`, and no word of the grammar of expectations.
pub(super) fn check_name(name: &str) -> Result<(), Wrong> {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let within = name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if !starts || !within || name.len() > 60 {
        return Err(Wrong::new(
            format!("`{name}` is no name"),
            "use letters, digits, `-` and `_`, a letter first, at most 60 of them",
        ));
    }
    if RESERVED.contains(&name) {
        let help = format!("choose another name, such as `my-{name}`");
        return Err(Wrong::new(
            format!("`{name}` has a meaning in expectations"),
            help,
        ));
    }
    Ok(())
}

/// `a`, `b`, `c`
pub(super) fn listed<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words
        .map(|word| format!("`{word}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The word that was probably meant.
pub(super) fn nearest<'a>(text: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |word: &str| word.to_lowercase().replace('-', "_");
    let wanted = plain(text);
    words
        .map(|word| (distance(&wanted, &plain(word)), word))
        .filter(|(distance, word)| *distance <= word.chars().count().min(9) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut rows = vec![(0..=right.len()).collect::<Vec<usize>>()];
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let mut best = (rows[i][j] + usize::from(a != b))
                .min(rows[i][j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && left[i - 1] == *b && right[j - 1] == *a {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

/// What a plain scalar is to some reader of YAML, if not a text.
pub(super) fn other_reading(text: &str, value: &Value) -> Option<&'static str> {
    match value {
        Value::Bool(_) => Some("a truth value"),
        Value::Number(_) => Some("a number"),
        Value::Null => Some("nothing"),
        _ if is_ambiguous(text) => Some("something else than a text to some readers of YAML"),
        _ => None,
    }
}

/// Whether YAML 1.1 and 1.2 read a plain scalar differently: `yes`, `010`, `1:30`, `1_000`, `2026-12-04`.
pub(super) fn is_ambiguous(text: &str) -> bool {
    let lower = text.to_lowercase();
    if matches!(
        lower.as_str(),
        "yes" | "no" | "on" | "off" | "y" | "n" | "="
    ) {
        return true;
    }
    let unsigned = text.trim_start_matches(['-', '+']);
    let digits =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit() || c == '_');
    let (first, rest) = unsigned.split_once(':').unwrap_or((unsigned, ""));
    let sixty = digits(first)
        && !rest.is_empty()
        && rest
            .split(':')
            .all(|part| digits(&part.replace('.', "")) && part.len() <= 5);
    let octal = unsigned.len() > 1 && unsigned.starts_with('0') && digits(unsigned);
    let based = ["0o", "0x", "0b"]
        .iter()
        .any(|base| lower.trim_start_matches(['-', '+']).starts_with(base));
    let grouped = unsigned.contains('_')
        && unsigned.starts_with(|c: char| c.is_ascii_digit())
        && digits(&unsigned.replace('.', ""));
    let date: Vec<&str> = text.splitn(3, '-').collect();
    let dated = date.len() == 3
        && date[0].len() == 4
        && digits(date[0])
        && digits(date[1])
        && date[2].starts_with(|c: char| c.is_ascii_digit());
    sixty || octal || based || grouped || dated
}

/// The placeholders that have a value at some place of a file.
#[derive(Clone, Default)]
pub(super) struct Placeholders<'a> {
    /// Names of the agent that acts: `serial`, `command`, kept values.
    pub agent: Vec<String>,
    /// Names after `secret.`
    pub secrets: &'a [String],
    /// Names after `lab.`; empty without `lab:`.
    pub lab: &'a [String],
    /// Why the agent's names are missing, if that needs saying.
    pub note: Option<&'static str>,
}

impl Placeholders<'_> {
    /// Whether `name` is known; else what to do about it.
    pub fn find(&self, name: &str) -> Result<(), String> {
        let (known, prefix, rest) = match name.split_once('.') {
            Some(("secret", rest)) => (self.secrets, "secret.", rest),
            Some(("lab", rest)) => (self.lab, "lab.", rest),
            _ => (self.agent.as_slice(), "", name),
        };
        if known.iter().any(|word| word == rest) {
            return Ok(());
        }
        if let Some(near) = nearest(rest, known.iter().map(String::as_str)) {
            return Err(format!("did you mean `<{prefix}{near}>`?"));
        }
        Err(match (prefix, known) {
            ("secret.", []) => "add it to `secrets:`".to_owned(),
            ("lab.", []) => "`<lab.…>` needs `lab: {}` in the target file".to_owned(),
            _ => match (self.note, known) {
                (Some(note), _) => note.to_owned(),
                (None, []) => "write `<<` for a plain `<`".to_owned(),
                (None, known) => {
                    let all: Vec<String> = known
                        .iter()
                        .map(|word| format!("<{prefix}{word}>"))
                        .collect();
                    format!("known here: {}", all.join(", "))
                }
            },
        })
    }
}
