//! JSON documents as series: what stands at a path, and the answers of a Prometheus server.

use super::prometheus::Series;
use crate::plan::json_path::JsonPath;
use serde_json::Value;

/// The numbers at these paths; one of several at a path carries its place as label `item`. A path that leads nowhere says nothing.
#[must_use]
pub fn at_paths<'p>(document: &Value, paths: impl Iterator<Item = &'p str>) -> Vec<Series> {
    let mut series = Vec::new();
    for text in paths {
        let Ok(path) = JsonPath::parse(text) else {
            continue;
        };
        for (item, number) in path.texts(document).iter().enumerate() {
            let labels = if path.is_list() {
                vec![("item".to_owned(), item.to_string())]
            } else {
                Vec::new()
            };
            series.extend(number.parse().ok().map(|value| Series {
                name: text.to_owned(),
                labels,
                value,
            }));
        }
    }
    series
}

/// What a Prometheus server answered to an instant query, under `name`.
///
/// # Errors
/// If the answer is none, with what it says.
pub fn of_query(name: &str, body: &[u8]) -> Result<Vec<Series>, String> {
    let document: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let data = &document["data"];
    let one = |labels: &Value, value: &Value| -> Option<Series> {
        let mut labels: Vec<(String, String)> = labels
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(label, value)| Some((label.clone(), value.as_str()?.to_owned())))
            .collect();
        labels.sort();
        Some(Series {
            name: name.to_owned(),
            labels,
            value: value.get(1)?.as_str()?.parse().ok()?,
        })
    };
    match (data["resultType"].as_str(), &data["result"]) {
        (Some("vector"), Value::Array(rows)) => Ok(rows
            .iter()
            .filter_map(|row| one(&row["metric"], &row["value"]))
            .collect()),
        (Some("scalar"), value) => Ok(one(&Value::Null, value).into_iter().collect()),
        (Some(other), _) => Err(format!(
            "`{name}` gives a {other}; an instant vector or a scalar is needed"
        )),
        (None, _) => Err(document["error"]
            .as_str()
            .unwrap_or("not the answer of a Prometheus server")
            .to_owned()),
    }
}
