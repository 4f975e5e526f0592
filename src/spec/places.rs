//! Places: the lists of a target file, and how a profile spreads its riders over them.

use super::reader::At;
use super::table;
use super::words;
use crate::plan::places::{Choice, Places};
use crate::plan::template::Template;

const MOST_PLACES: u32 = 1_000_000;
/// Beyond it nobody but the first place would be visited.
const LARGEST_EXPONENT: f64 = 10.0;

/// One entry of `places:` in a target file: a list, a number of them by one pattern, or a column of a CSV file.
pub(super) fn places(name: &str, at: &At<'_>) -> Option<Places> {
    let names = if at.is_list() {
        let items = at.items()?;
        items
            .iter()
            .filter_map(|item| item.text().map(str::to_owned))
            .collect()
    } else {
        let mut fields = at.fields()?;
        if fields.has("csv") {
            let file = fields.need("csv");
            let column = fields.need("column");
            fields.finish(&[]);
            let table = table::read(&file?)?;
            table.column(&column?)?
        } else {
            let count = fields
                .need("count")
                .and_then(|at| at.count32(1..=MOST_PLACES));
            let pattern = fields.need("name").and_then(|at| pattern(&at));
            fields.finish(&[]);
            numbered(count?, &pattern?)
        }
    };
    check(at, &names);
    Some(Places {
        name: name.to_owned(),
        names,
    })
}

/// A text with `<n>`.
fn pattern(at: &At<'_>) -> Option<Template> {
    let known = words::Placeholders {
        agent: vec!["n".to_owned()],
        ..words::Placeholders::default()
    };
    let template = at.template(&known)?;
    if template.names().next().is_none() {
        at.wrong(
            "the same for every place",
            "put `<n>` into it: `station-<n>`",
        );
        return None;
    }
    Some(template)
}

fn numbered(count: u32, pattern: &Template) -> Vec<String> {
    (1..=count)
        .map(|number| pattern.resolve(&|_| Some(number.to_string())).to_string())
        .collect()
}

fn check(at: &At<'_>, names: &[String]) {
    let mut seen = std::collections::HashSet::new();
    if let Some(name) = names.iter().find(|name| !seen.insert(name.as_str())) {
        at.wrong(format!("`{name}` is there twice"), "name each place once");
    }
}

/// `places:` of a group of riders, whose journey goes to `places`.
pub(super) fn choice(at: &At<'_>, places: &Places) -> Option<Choice> {
    if at.lone_word().is_some() {
        return at.word(&[("even", ())]).map(|()| Choice::Even);
    }
    let mut fields = at.fields()?;
    let found = fields.one_of(&["weighted", "zipf"]);
    fields.finish(&[]);
    let (kind, at) = found?;
    if kind == "weighted" {
        return weighted(&at, places).map(Choice::Weighted);
    }
    match at.number() {
        Some(exponent) if exponent > 0.0 && exponent <= LARGEST_EXPONENT => {
            Some(Choice::Zipf(exponent))
        }
        Some(exponent) => {
            at.wrong(
                format!("{exponent} is out of range"),
                "write a number above 0 and up to 10, such as `1.1`; the larger, the more go to the first place",
            );
            None
        }
        None => None,
    }
}

/// `{ st-1: 20, st-2: 5 }` or `{ csv: trips.csv, place: station, weight: trips }`; places that are not named weigh 1.
fn weighted(at: &At<'_>, places: &Places) -> Option<Vec<f64>> {
    let mut weights = vec![1.0; places.names.len()];
    let mut set = |name: &str, weight: f64, at: &At<'_>| match places
        .names
        .iter()
        .position(|known| known == name)
    {
        Some(row) => weights[row] = weight,
        None => {
            let near = words::nearest(name, places.names.iter().map(String::as_str));
            let help = near.map_or(
                format!(
                    "name one of `places: {{ {}: … }}` in the target file",
                    places.name
                ),
                |near| format!("did you mean `{near}`?"),
            );
            at.wrong(format!("no place is called `{name}`"), help);
        }
    };
    if at.keys().iter().any(|key| key == "csv") {
        let mut fields = at.fields()?;
        let file = fields.need("csv");
        let (place, weight) = (fields.need("place"), fields.need("weight"));
        fields.finish(&[]);
        let (file, place, weight) = (file?, place?, weight?);
        let table = table::read(&file)?;
        let (names, texts) = (table.column(&place)?, table.column(&weight)?);
        for (name, text) in names.iter().zip(&texts) {
            match text.trim().parse::<f64>() {
                Ok(number) if number >= 0.0 && number.is_finite() => set(name, number, &file),
                _ => weight.wrong(
                    format!("`{text}` of `{name}` is no weight"),
                    "a weight is a number from 0 on",
                ),
            }
        }
    } else {
        for (name, at) in at.entries()? {
            match at.number() {
                Some(number) if number >= 0.0 => set(name, number, &at),
                Some(number) => at.wrong(
                    format!("{number} is no weight"),
                    "a weight is a number from 0 on",
                ),
                None => {}
            }
        }
    }
    if weights.iter().sum::<f64>() <= 0.0 {
        at.wrong("every place weighs nothing", "give one a weight above 0");
        return None;
    }
    Some(weights)
}
