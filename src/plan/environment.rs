//! How near to real customers a target is.

/// How near to real customers the target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Environment {
    #[default]
    Lab,
    Test,
    Staging,
    PreProduction,
    /// Needs `--allow-production`.
    Production,
}

impl Environment {
    /// As it stands in a file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Environment::Lab => "lab",
            Environment::Test => "test",
            Environment::Staging => "staging",
            Environment::PreProduction => "pre-production",
            Environment::Production => "production",
        }
    }
}
