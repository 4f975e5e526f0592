//! The embedded lab, as a target file asks for it.

use std::collections::BTreeMap;

/// Options of the embedded lab that a run starts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LabSpec {
    /// Number of MQTT shards.
    pub shards: u16,
    /// `postgres://…` in place of the embedded database.
    pub database: Option<String>,
    /// What its shards speak below MQTT.
    pub tls: LabTls,
    /// Defects switched on from the start.
    pub on: Vec<String>,
    /// Other settings of the lab, passed on as `--name value`.
    pub settings: BTreeMap<String, String>,
}

/// What the shards of the lab speak below MQTT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LabTls {
    /// Plain TCP.
    #[default]
    Off,
    /// TLS with a certificate of the lab's own authority.
    Server,
    /// The same, and hubs must show a certificate of that authority.
    Mutual,
}

impl LabTls {
    /// The word for it in files and arguments.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LabTls::Off => "off",
            LabTls::Server => "server",
            LabTls::Mutual => "mutual",
        }
    }
}
