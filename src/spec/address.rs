//! Addresses in target files: a host that is known before the run, and a port.

use super::reader::At;
use super::words::Placeholders;
use crate::plan::template::Template;
use url::Url;

/// The text with `<lab.api>` and the like replaced by an address that the lab might have.
fn imagined(template: &Template) -> String {
    let resolved = template.resolve(&|name| match name {
        "lab.api" | "lab.metrics" => Some("http://127.0.0.1:1".to_owned()),
        name if name.starts_with("lab.") => Some("127.0.0.1:1".to_owned()),
        _ => Some("x".to_owned()),
    });
    resolved.to_string().replace("<<", "<")
}

/// `mqtt://host:port`, or with `mqtts`, `ws` or `wss`; only the latter two have a path.
pub(super) fn check_mqtt(at: &At<'_>, template: &Template) {
    let example = "write `mqtt://host:1883`, `mqtts://host:8883`, `ws://host:8083/mqtt` or `wss://host:8084/mqtt`";
    let written = template.to_string();
    let text = imagined(template);
    let scheme = written.split_once("://").map_or("", |(scheme, _)| scheme);
    let url = match Url::parse(&text) {
        Ok(url) if ["mqtt", "mqtts", "ws", "wss"].contains(&scheme) => url,
        Ok(_) if matches!(scheme, "ssl" | "tls" | "tcp") => {
            at.wrong(format!("`{scheme}` is not the scheme of a broker"), example);
            return;
        }
        _ => {
            at.wrong("not the address of an MQTT broker", example);
            return;
        }
    };
    let has_path = !matches!(url.path(), "" | "/") || url.query().is_some();
    if url.host_str().is_none_or(str::is_empty) {
        at.wrong("the host is missing", example);
    } else if !has_port(&text) {
        at.wrong("the port is missing", example);
    } else if has_path && scheme.starts_with("mqtt") || !url.username().is_empty() {
        at.wrong(
            "more than host and port",
            format!(
                "write `{scheme}://host:port`; `username:` and `password:` are keys of the device"
            ),
        );
    }
}

/// Whether the text names a port; a URL leaves out the one that is implied.
fn has_port(text: &str) -> bool {
    let host = text.split_once("://").map_or(text, |(_, rest)| rest);
    let host = host.split(['/', '?', '#']).next().unwrap_or(host);
    let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
    after
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok())
}

/// `host:port`, without a scheme.
pub(super) fn check_host_port(at: &At<'_>, template: &Template) {
    let text = imagined(template);
    let example = "write `host:port`, such as `127.0.0.1:5432`";
    match Url::parse(&format!("tcp://{text}")) {
        Ok(url) if !text.contains("://") && url.port().is_some() && url.path().is_empty() => {}
        _ => at.wrong("not a host with a port", example),
    }
}

/// `http://host:port` of a service that has nothing below it.
pub(super) fn check_http_root(at: &At<'_>, template: &Template) {
    let is_root = |url: &Url| {
        ["http", "https"].contains(&url.scheme()) && url.path() == "/" && url.query().is_none()
    };
    if !Url::parse(&imagined(template)).is_ok_and(|url| is_root(&url)) {
        at.wrong(
            "not the address of an HTTP service",
            "write `http://host:port`, such as `http://10.40.9.9:8474`",
        );
    }
}

/// An HTTP address whose host holds no name of an agent. `base` stands before a path that starts with `/`.
pub(super) fn http(
    at: &At<'_>,
    known: &Placeholders<'_>,
    host: &Placeholders<'_>,
    base: Option<&Template>,
) -> Option<Template> {
    let own = at.template(known)?;
    let text = own.to_string();
    let whole = match base {
        Some(base) if text.starts_with('/') => Template::parse(&format!("{base}{text}")).ok()?,
        _ if text.starts_with('/') => {
            at.wrong(
                "a path without a host",
                "write the whole address, or give the journey a `base:`",
            );
            return None;
        }
        _ => own,
    };
    check_http(at, &whole, host);
    Some(whole)
}

/// That an address is HTTP and that its host is the same for every agent.
pub(super) fn check_http(at: &At<'_>, whole: &Template, host: &Placeholders<'_>) {
    let written = whole.to_string();
    let after_scheme = written.find("://").map_or(0, |at| at + 3);
    let host_end = written[after_scheme..]
        .find(['/', '?', '#'])
        .map_or(written.len(), |end| after_scheme + end);
    if let Ok(host_part) = Template::parse(&written[..host_end])
        && let Some((name, help)) = host_part
            .names()
            .find_map(|name| Some((name.to_owned(), host.find(name).err()?)))
    {
        at.wrong(format!("<{name}> stands in the host"), help);
        return;
    }
    let example = "write `https://host/path` or `http://host:port/path`";
    match Url::parse(&imagined(whole)) {
        Ok(url)
            if matches!(url.scheme(), "http" | "https")
                && url.host_str().is_some_and(|host| !host.is_empty()) =>
        {
            if !url.username().is_empty() || url.password().is_some() {
                at.wrong(
                    "a user name inside an address",
                    "use `headers:` or `bearer:` with a `<secret.…>`",
                );
            }
        }
        _ => at.wrong("not an HTTP address", example),
    }
}
