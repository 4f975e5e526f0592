//! Secrets: read once from the environment or a file, never written anywhere.
//!
//! Decides which forms of a value would give it away. Where texts go to is none of its business: whoever writes a file or a
//! line passes it through a [`Redactor`] first.

use crate::plan::target::SecretSource;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use url::Url;

/// Shorter values turn up in texts by chance, so they can't be kept out of a report without making it unreadable.
const SHORTEST: usize = 4;

/// The values of the target file's `secrets`.
#[derive(Clone, Default)]
pub struct Secrets {
    values: BTreeMap<String, String>,
}

/// A secret that can't be had. Names the secret and its source, never its value.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error(
        "secret `{name}`: the environment variable {variable} is not set; set it, or use `file:`"
    )]
    NotSet { name: String, variable: String },
    #[error("secret `{name}`: can't read {path}: {source}", path = .path.display())]
    Unreadable {
        name: String,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("secret `{name}`: {place} holds bytes that are no UTF-8 text")]
    NotText { name: String, place: String },
    #[error(
        "secret `{name}`: the value in {place} is shorter than {SHORTEST} characters, too short to be kept out of reports"
    )]
    TooShort { name: String, place: String },
}

impl Secrets {
    /// Reads every secret; one newline at the end of a value is cut.
    ///
    /// # Errors
    /// All secrets that can't be had, at once.
    pub fn read(sources: &BTreeMap<String, SecretSource>) -> Result<Secrets, Vec<SecretError>> {
        let mut values = BTreeMap::new();
        let mut errors = Vec::new();
        for (name, source) in sources {
            match read_one(name, source) {
                Ok(value) => {
                    values.insert(name.clone(), value);
                }
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() {
            Ok(Secrets { values })
        } else {
            Err(errors)
        }
    }

    /// The value of the secret `name`.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// What replaces these values in texts.
    #[must_use]
    pub fn redactor(&self) -> Redactor {
        let mut needles: Vec<Needle> = Vec::new();
        for (name, value) in &self.values {
            let label = format!("<secret.{name}>");
            for form in forms(value) {
                if !needles.iter().any(|needle| needle.text == form) {
                    needles.push(Needle {
                        text: form,
                        label: label.clone(),
                    });
                }
            }
        }
        // The longest form first: the value itself must not leave the tail of its escaped form behind.
        needles.sort_by_key(|needle| std::cmp::Reverse(needle.text.len()));
        let mut starts = [false; 256];
        for needle in &needles {
            starts[usize::from(needle.text.as_bytes()[0])] = true;
        }
        Redactor { needles, starts }
    }
}

impl fmt::Debug for Secrets {
    /// The names alone.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.values.keys()).finish()
    }
}

fn read_one(name: &str, source: &SecretSource) -> Result<String, SecretError> {
    let name = name.to_owned();
    let (bytes, place) = match source {
        SecretSource::Env(variable) => match std::env::var_os(variable) {
            Some(value) => (
                value.into_encoded_bytes(),
                format!("the environment variable {variable}"),
            ),
            None => {
                return Err(SecretError::NotSet {
                    name,
                    variable: variable.clone(),
                });
            }
        },
        SecretSource::File(path) => match std::fs::read(path) {
            Ok(bytes) => (bytes, path.display().to_string()),
            Err(source) => {
                return Err(SecretError::Unreadable {
                    name,
                    path: path.clone(),
                    source,
                });
            }
        },
    };
    let Ok(mut value) = String::from_utf8(bytes) else {
        return Err(SecretError::NotText { name, place });
    };
    if value.ends_with('\n') {
        value.pop();
        if value.ends_with('\r') {
            value.pop();
        }
    }
    if value.chars().count() < SHORTEST {
        return Err(SecretError::TooShort { name, place });
    }
    Ok(value)
}

/// Replaces every form of every secret in a text by `<secret.NAME>`.
#[derive(Clone)]
pub struct Redactor {
    needles: Vec<Needle>,
    /// Bytes that some needle begins with.
    starts: [bool; 256],
}

#[derive(Clone)]
struct Needle {
    text: String,
    label: String,
}

impl Redactor {
    /// The text without secrets; borrowed if it holds none.
    #[must_use]
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let bytes = text.as_bytes();
        let mut clean = String::new();
        let mut copied = 0;
        let mut at = 0;
        while at < bytes.len() {
            let found = self.starts[usize::from(bytes[at])]
                .then(|| {
                    self.needles
                        .iter()
                        .find(|needle| bytes[at..].starts_with(needle.text.as_bytes()))
                })
                .flatten();
            match found {
                Some(needle) => {
                    clean.push_str(&text[copied..at]);
                    clean.push_str(&needle.label);
                    at += needle.text.len();
                    copied = at;
                }
                None => at += 1,
            }
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        clean.push_str(&text[copied..]);
        Cow::Owned(clean)
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Redactor of {} forms", self.needles.len())
    }
}

/// The value as it may stand in a text: itself, in JSON, XML, Rust's debug form, a URL, a form, and base64.
fn forms(value: &str) -> Vec<String> {
    let mut forms = vec![
        value.to_owned(),
        value.escape_debug().to_string(),
        xml(value),
    ];
    let json = serde_json::Value::from(value).to_string();
    forms.push(json[1..json.len() - 1].to_owned());
    let mut encoded = String::new();
    super::http::percent_encode(value, &mut encoded);
    forms.push(encoded.to_lowercase());
    forms.push(encoded);
    forms.push(url::form_urlencoded::byte_serialize(value.as_bytes()).collect());
    forms.extend(in_a_url(value));
    for skipped in 0..3 {
        let shifted = base64_behind(skipped, value.as_bytes());
        forms.push(shifted.replace('+', "-").replace('/', "_"));
        forms.push(shifted);
    }
    forms.retain(|form| form.len() >= SHORTEST);
    forms
}

/// The value as the URL standard encodes it in a path, a query and a login.
fn in_a_url(value: &str) -> Vec<String> {
    let Ok(mut address) = Url::parse("http://host/") else {
        return Vec::new();
    };
    address.set_path(value);
    address.set_query(Some(value));
    let mut forms = vec![address.path().trim_start_matches('/').to_owned()];
    forms.extend(address.query().map(str::to_owned));
    if address.set_password(Some(value)).is_ok() {
        forms.extend(address.password().map(str::to_owned));
    }
    forms
}

fn xml(value: &str) -> String {
    let escaped = value
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    escaped.replace('"', "&quot;").replace('\'', "&apos;")
}

/// The base64 characters that depend on `value` alone when `skipped` bytes (modulo 3) stand before it, as a user name does in
/// Basic authentication. What stands before and behind it shares characters with it; those are left out.
fn base64_behind(skipped: usize, value: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bit = |at: usize| value[at / 8] >> (7 - at % 8) & 1;
    // The first character that holds no bit of what stands before.
    let first = (6 - skipped * 8 % 6) % 6;
    let whole = (value.len() * 8 - first) / 6;
    (0..whole)
        .map(|character| {
            let number = (0..6).fold(0, |number, at| {
                number << 1 | bit(first + character * 6 + at)
            });
            char::from(ALPHABET[usize::from(number)])
        })
        .collect()
}
