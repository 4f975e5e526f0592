//! Who hubs and riders are: `identities:` of a target file, and which rows each group has.

use super::log::Place;
use super::reader::At;
use super::target::{Names, beside};
use super::words::{self, Placeholders};
use crate::plan::identity::{IdentitySet, IdentitySource, IdentityTable, Issue, Rows};
use crate::plan::target::{CommandSend, Target};
use crate::plan::{HubGroup, IssuerGroup, RiderGroup, Template};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A table of a million devices is smaller.
const LARGEST_BYTES: u64 = 256 * 1024 * 1024;
/// Of a table that is made here.
const MOST_ROWS: u32 = 1_000_000;
/// Columns that hold paths, relative to the table.
const PATHS: [&str; 4] = ["cert", "key", "next_cert", "next_key"];
/// Certificates are valid for so long unless the file says otherwise.
const VALID: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// One entry of `identities:`.
pub(super) fn set(name: &str, at: &At<'_>, names: &Names) -> Option<IdentitySet> {
    let mut fields = at.fields()?;
    let source = fields
        .one_of(&["csv", "issue", "numbered"])
        .and_then(|(kind, at)| match kind {
            "numbered" => {
                let table = numbered(&at)?;
                Some(IdentitySource::Csv(Arc::new(table)))
            }
            "csv" => {
                let table = table(&at, &at.beside(at.text()?))?;
                Some(IdentitySource::Csv(Arc::new(table)))
            }
            _ => issue(&at, names).map(IdentitySource::Issue),
        });
    fields.finish(&[]);
    Some(IdentitySet {
        name: name.to_owned(),
        source: source?,
    })
}

/// What stands for a set that can't be read, as long as everything that is wrong is told.
pub(super) fn unread(name: &str) -> IdentitySet {
    let table = IdentityTable {
        file: PathBuf::new(),
        columns: Vec::new(),
        rows: Vec::new(),
        lines: Vec::new(),
    };
    IdentitySet {
        name: name.to_owned(),
        source: IdentitySource::Csv(Arc::new(table)),
    }
}

/// `{ count: 1_000, columns: { email: rider-<n>@example.com, password: pass-<n> } }`
fn numbered(at: &At<'_>) -> Option<IdentityTable> {
    let mut fields = at.fields()?;
    let count = fields
        .need("count")
        .and_then(|at| at.count32(1..=MOST_ROWS));
    let columns = fields.need("columns").and_then(|at| at.named());
    fields.finish(&[]);
    let known = Placeholders {
        agent: vec!["n".to_owned()],
        ..Placeholders::default()
    };
    let patterns: Vec<(String, Template)> = columns?
        .iter()
        .filter_map(|(name, at)| {
            check_column(name, &|message, help| at.wrong_key(message, help));
            Some(((*name).to_owned(), at.template(&known)?))
        })
        .collect();
    let row = |number: u32| {
        let value = |(_, pattern): &(String, Template)| {
            pattern.resolve(&|_| Some(number.to_string())).to_string()
        };
        patterns.iter().map(value).collect()
    };
    let rows: Vec<Box<[String]>> = (1..=count?).map(row).collect();
    Some(IdentityTable {
        file: at.file(),
        columns: patterns.iter().map(|(name, _)| name.clone()).collect(),
        lines: vec![at.place().line as u32; rows.len()],
        rows,
    })
}

fn issue(at: &At<'_>, names: &Names) -> Option<Issue> {
    let mut fields = at.fields()?;
    let (has_ca, has_key) = (fields.has("ca"), fields.has("key"));
    let ca = fields.get("ca").and_then(|at| path(&at, names, &[]));
    let key = fields.get("key").and_then(|at| path(&at, names, &[]));
    if has_ca != has_key {
        let (there, missing) = if has_ca { ("ca", "key") } else { ("key", "ca") };
        fields.at().find(&[there]).wrong_key(
            format!("`{there}` without `{missing}`"),
            "give both files of the authority, or neither: then one is made and kept",
        );
    }
    let valid = fields.get("valid").and_then(|at| lifetime(&at));
    fields.finish(&[]);
    Some(Issue {
        authority: ca.zip(key),
        valid: valid.unwrap_or(VALID),
    })
}

/// A time, or whole days such as `90d`, in which lifetimes of certificates are told.
fn lifetime(at: &At<'_>) -> Option<Duration> {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let days = at.lone_word().and_then(|text| text.strip_suffix('d'));
    match days.and_then(|days| days.parse::<u16>().ok()) {
        Some(days) if days > 0 => Some(DAY * u32::from(days)),
        _ => at.time(),
    }
}

/// A path that is relative to the file, unless it begins with `/` or a placeholder.
pub(super) fn path(at: &At<'_>, names: &Names, agent: &[&str]) -> Option<Template> {
    let own = at.template(&names.placeholders(agent))?;
    let text = own.to_string();
    if text.starts_with('/') || (text.starts_with('<') && !text.starts_with("<<")) {
        return Some(own);
    }
    let folder = at.beside("").display().to_string().replace('<', "<<");
    let folder = folder.trim_end_matches('/');
    let whole = if folder.is_empty() {
        text
    } else {
        format!("{folder}/{text}")
    };
    Template::parse(&whole).ok()
}

/// Reads a table; everything that is wrong with it is told with its line.
fn table(at: &At<'_>, file: &Path) -> Option<IdentityTable> {
    let text = match read_text(file) {
        Ok(text) => text,
        Err(why) => {
            at.wrong(
                format!("{} {why}", file.display()),
                "paths inside a file are relative to that file",
            );
            return None;
        }
    };
    let log = at.log();
    let opened = log.open(file);
    log.set_text(opened, &text);
    let wrong = |line: u64, message: String, help: &str| {
        let place = Place {
            file: opened,
            line: usize::try_from(line).unwrap_or(1).max(1),
            column: 1,
        };
        log.wrong(place, "", message, Some(help.to_owned()));
    };
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let columns = header(&mut reader, &wrong)?;
    let mut table = IdentityTable {
        file: file.to_owned(),
        columns,
        rows: Vec::new(),
        lines: Vec::new(),
    };
    rows(&mut reader, &mut table, &wrong);
    twice(&table, "serial", &wrong);
    if table.rows.is_empty() {
        wrong(
            1,
            "no row below the header".to_owned(),
            "give a row for each hub or rider",
        );
    }
    Some(table)
}

/// Reads every row below the header.
fn rows(
    reader: &mut csv::Reader<&[u8]>,
    table: &mut IdentityTable,
    wrong: &dyn Fn(u64, String, &str),
) {
    let file = table.file.clone();
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                let line = error.position().map_or(1, csv::Position::line);
                wrong(
                    line,
                    format!("no row of a table: {error}"),
                    "write comma-separated values",
                );
                continue;
            }
        };
        let line = record.position().map_or(1, csv::Position::line);
        if record.len() != table.columns.len() {
            let message = format!(
                "{} values, and the header names {} columns",
                record.len(),
                table.columns.len()
            );
            wrong(line, message, "give each row one value for each column");
            continue;
        }
        if let Some(long) = record.iter().position(|value| value.contains(['\n', '\r'])) {
            let message = format!(
                "the value under `{}` goes on over the end of its line, with everything that stands there",
                table.columns[long]
            );
            wrong(line, message, "close its quotes");
            continue;
        }
        if let Some(empty) = record.iter().position(str::is_empty) {
            let message = format!("nothing stands under `{}`", table.columns[empty]);
            wrong(line, message, "give a value");
        }
        let values = table.columns.iter().zip(&record);
        let row = values.map(|(column, value)| whole(&file, column, value));
        table.rows.push(row.collect());
        table.lines.push(u32::try_from(line).unwrap_or(u32::MAX));
    }
}

fn read_text(file: &Path) -> Result<String, String> {
    let size = std::fs::metadata(file).map_err(|error| format!("can't be read: {error}"))?;
    if size.len() > LARGEST_BYTES {
        return Err("is larger than 256 MiB".to_owned());
    }
    let bytes = std::fs::read(file).map_err(|error| format!("can't be read: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let read = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + read.iter().filter(|byte| **byte == b'\n').count();
        format!("is not UTF-8 on line {line}")
    })?;
    Ok(text
        .strip_prefix('\u{feff}')
        .map_or(text.clone(), str::to_owned))
}

fn header(
    reader: &mut csv::Reader<&[u8]>,
    wrong: &dyn Fn(u64, String, &str),
) -> Option<Vec<String>> {
    let header = match reader.headers() {
        Ok(header) => header.clone(),
        Err(error) => {
            wrong(
                1,
                format!("no header: {error}"),
                "name the columns on the first line",
            );
            return None;
        }
    };
    if header.is_empty() {
        wrong(
            1,
            "the file is empty".to_owned(),
            "name the columns on the first line",
        );
        return None;
    }
    let mut columns: Vec<String> = Vec::new();
    for column in &header {
        check_column(column, &|message, help| wrong(1, message, help));
        if columns.iter().any(|known| known == column) {
            wrong(
                1,
                format!("two columns are called `{column}`"),
                "rename one of them",
            );
        }
        columns.push(column.to_owned());
    }
    Some(columns)
}

fn check_column(column: &str, wrong: &dyn Fn(String, &'static str)) {
    let starts = column.starts_with(|c: char| c.is_ascii_alphabetic());
    let within = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !starts || !column.chars().all(within) {
        wrong(
            format!("`{column}` is no name of a column"),
            "use letters, digits, `-` and `_`, a letter first",
        );
    }
    if ["command", "rider", "intent"].contains(&column) {
        let message = format!("`<{column}>` has a meaning of its own");
        wrong(message, "give the column another name");
    }
}

/// A value of a table; paths are relative to it.
fn whole(file: &Path, column: &str, value: &str) -> String {
    if PATHS.contains(&column) {
        beside(file, value).display().to_string()
    } else {
        value.to_owned()
    }
}

/// What tells devices apart must not stand there twice.
fn twice(table: &IdentityTable, column: &str, wrong: &dyn Fn(u64, String, &str)) {
    let mut seen = std::collections::HashMap::new();
    for (row, line) in table.lines.iter().enumerate() {
        let Some(value) = table.value(row, column) else {
            return;
        };
        if let Some(before) = seen.insert(value.to_owned(), *line) {
            let message = format!("the {column} `{value}` stands on line {before} already");
            wrong(u64::from(*line), message, "give each device its own");
        }
    }
}

/// The columns of every set, in the order of the sets; none where identities are issued.
pub(super) fn columns(sets: &[IdentitySet]) -> Vec<Vec<String>> {
    let of = |set: &IdentitySet| match &set.source {
        IdentitySource::Csv(table) => table.columns.clone(),
        IdentitySource::Issue(_) => Vec::new(),
    };
    sets.iter().map(of).collect()
}

/// Gives every group its rows: hubs of one set one after the other, riders of a journey all of them.
pub(super) fn assign(
    hubs: &mut [HubGroup],
    riders: &mut [RiderGroup],
    issuers: &[IssuerGroup],
    target: &Target,
    profile: &At<'_>,
) {
    let mut next = vec![0; target.identities.len()];
    for group in hubs.iter_mut() {
        let device = target.devices.get(group.device);
        let Some(set) = device.and_then(|device| device.identity) else {
            continue;
        };
        let (Some(identities), Some(first)) = (target.identities.get(set), next.get_mut(set))
        else {
            continue;
        };
        let count = usize::try_from(group.count).unwrap_or(usize::MAX);
        let rows = Rows {
            set,
            first: *first,
            count,
            table: table_of(identities),
        };
        *first = first.saturating_add(count);
        let publishes = publishes(issuers, target, group.device);
        if let Some(table) = &rows.table
            && *first + usize::from(publishes) > table.rows.len()
        {
            let at = profile.find(&["hubs", &group.name, "count"]);
            let also = if publishes {
                ", and one more for the connections of issuers"
            } else {
                ""
            };
            at.wrong(
                format!(
                    "`{}` needs {count} rows of `{}` from row {} on{also}; {} has {}",
                    group.name,
                    identities.name,
                    rows.first + 1,
                    table.file.display(),
                    table.rows.len()
                ),
                "add rows, or take fewer hubs",
            );
        }
        group.identity = Some(rows);
    }
    for group in riders.iter_mut() {
        let journey = target.journeys.get(group.journey);
        let set = journey.and_then(|journey| journey.identity);
        let table = set.and_then(|set| table_of(target.identities.get(set)?));
        group.identity = set.zip(table).map(|(set, table)| Rows {
            set,
            first: 0,
            count: table.rows.len(),
            table: Some(table),
        });
    }
}

fn table_of(identities: &IdentitySet) -> Option<Arc<IdentityTable>> {
    match &identities.source {
        IdentitySource::Csv(table) if !table.columns.is_empty() => Some(Arc::clone(table)),
        IdentitySource::Csv(_) | IdentitySource::Issue(_) => None,
    }
}

/// Whether issuers publish commands to the broker of this device.
fn publishes(issuers: &[IssuerGroup], target: &Target, device: usize) -> bool {
    issuers.iter().any(|group| {
        let command = target.commands.get(group.command);
        command.is_some_and(|command| {
            command.to == device && matches!(command.send, CommandSend::Publish(_))
        })
    })
}

/// The row of the set that an `identity:` names.
pub(super) fn row(at: &At<'_>, names: &Names) -> Option<usize> {
    let name = at.text()?;
    let known = || names.identities.iter().map(String::as_str);
    if let Some(row) = known().position(|known| known == name) {
        return Some(row);
    }
    let help = match words::nearest(name, known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.identities.is_empty() => "add `identities:` to the target file".to_owned(),
        None => format!("known: {}", words::listed(known())),
    };
    at.wrong(format!("no identities are called `{name}`"), help);
    None
}
