//! Proxies and toxics as the API shows them: the order of the fields is Toxiproxy's.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Number;

/// A proxy.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ShownProxy {
    pub(super) name: String,
    pub(super) listen: String,
    pub(super) upstream: String,
    pub(super) enabled: bool,
    /// An empty object that Toxiproxy shows too.
    #[serde(rename = "Logger")]
    pub(super) logger: Logger,
    pub(super) toxics: Vec<ShownToxic>,
}

/// Nothing.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Logger {}

/// A toxic.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ShownToxic {
    pub(super) attributes: ShownAttributes,
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) stream: String,
    #[serde(serialize_with = "share")]
    pub(super) toxicity: f32,
}

/// Attributes in the order of their type.
#[derive(Debug, Clone)]
pub(super) struct ShownAttributes(pub(super) Vec<(&'static str, i64)>);

impl Serialize for ShownAttributes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// As Go writes a float32: the shortest digits that tell it apart, without a point where none is needed.
fn share<S: Serializer>(share: &f32, serializer: S) -> Result<S::Ok, S::Error> {
    let text = share.to_string();
    match (
        text.parse::<i64>(),
        text.parse::<f64>().ok().and_then(Number::from_f64),
    ) {
        (Ok(whole), _) => serializer.serialize_i64(whole),
        (_, Some(number)) => number.serialize(serializer),
        _ => serializer.serialize_f32(*share),
    }
}
