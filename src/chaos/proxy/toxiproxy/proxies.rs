//! What the API keeps: the toxics that were asked for, by proxy, and how proxies come, change and go.

use super::answer::{Failure, Reply};
use super::decode::{self, Object};
use super::shown::{Logger, ShownProxy, ShownToxic};
use super::toxics::{self, Asked};
use crate::chaos::proxy::chain::Direction;
use crate::chaos::proxy::link::{Link, Unreached};
use crate::chaos::proxy::links::Links;
use crate::chaos::proxy::wire::LinkAddress;
use axum::http::{HeaderMap, StatusCode, header};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the API is set up with.
pub(in crate::chaos::proxy) struct Settings {
    pub(in crate::chaos::proxy) links: Arc<Links>,
    /// Must be shown with every request; `None` where only this machine reaches the API.
    pub(in crate::chaos::proxy) token: Option<String>,
    pub(in crate::chaos::proxy) metrics: bool,
    pub(in crate::chaos::proxy) seed: u64,
    /// How clients see that an upstream can't be reached.
    pub(in crate::chaos::proxy) unreached: Unreached,
}

/// The API's own state.
pub(super) struct Proxies {
    settings: Settings,
    asked: Mutex<BTreeMap<String, Vec<Asked>>>,
    /// One change of proxies at a time; it waits for a bind at most.
    changing: tokio::sync::Mutex<()>,
}

/// A proxy as a body asks for it.
struct Wanted {
    name: String,
    listen: String,
    upstream: String,
    enabled: bool,
}

impl Wanted {
    fn of(body: Value) -> Result<Wanted, Failure> {
        let body = Object::of("Proxy", body)?;
        Ok(Wanted {
            name: body.text("name")?.unwrap_or_default(),
            listen: body.text("listen")?.unwrap_or_default(),
            upstream: body.text("upstream")?.unwrap_or_default(),
            enabled: body.truth("enabled")?.unwrap_or(true),
        })
    }

    fn check(&self, place: &str) -> Result<(), Failure> {
        for (name, value) in [("name", &self.name), ("upstream", &self.upstream)] {
            if value.is_empty() {
                return Err(Failure::Missing(format!("{name}{place}")));
            }
        }
        Ok(())
    }
}

impl Proxies {
    pub(super) fn new(settings: Settings) -> Proxies {
        Proxies {
            settings,
            asked: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn has_metrics(&self) -> bool {
        self.settings.metrics
    }

    pub(super) fn lets_in(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.settings.token else {
            return true;
        };
        headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "))
            == Some(token.as_str())
    }

    fn asked(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Asked>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn link(&self, name: &str) -> Result<Arc<Link>, Failure> {
        self.settings.links.find(name).ok_or(Failure::NoProxy)
    }

    fn shown(&self, link: &Link) -> ShownProxy {
        let LinkAddress { name, listen, to } = link.address();
        ShownProxy {
            toxics: self.shown_toxics(&name),
            name,
            listen,
            upstream: to,
            enabled: link.is_on(),
            logger: Logger {},
        }
    }

    /// All towards the target first, then all towards the client, each in the order in which they came.
    fn shown_toxics(&self, proxy: &str) -> Vec<ShownToxic> {
        let asked = self.asked();
        let of = |direction| {
            let toxics = asked.get(proxy).into_iter().flatten();
            toxics.filter(move |toxic| toxic.direction == direction)
        };
        of(Direction::ToTarget)
            .chain(of(Direction::ToClient))
            .map(Asked::shown)
            .collect()
    }

    pub(super) fn all(&self) -> Reply {
        let links = self.settings.links.all();
        let shown: BTreeMap<String, ShownProxy> = links
            .iter()
            .map(|link| (link.name.clone(), self.shown(link)))
            .collect();
        Reply::json(StatusCode::OK, &shown).unwrap_or_else(|_| Reply::empty())
    }

    pub(super) fn show(&self, name: &str) -> Result<Reply, Failure> {
        Reply::json(StatusCode::OK, &self.shown(&*self.link(name)?))
    }

    pub(super) async fn create(&self, body: &[u8]) -> Result<Reply, Failure> {
        let wanted = Wanted::of(decode::value(body)?)?;
        wanted.check("")?;
        let _one = self.changing.lock().await;
        if self.settings.links.find(&wanted.name).is_some() {
            return Err(Failure::ProxyExists);
        }
        let link = self.add(wanted).await?;
        Reply::json(StatusCode::CREATED, &self.shown(&link))
    }

    async fn add(&self, wanted: Wanted) -> Result<Arc<Link>, Failure> {
        let address = LinkAddress {
            name: wanted.name,
            listen: wanted.listen,
            to: wanted.upstream,
        };
        let unreached = self.settings.unreached;
        let link = Link::new(&address.name.clone(), vec![address], unreached);
        if wanted.enabled {
            start(&link).await?;
        }
        self.settings.links.insert(Arc::clone(&link));
        Ok(link)
    }

    pub(super) async fn update(&self, name: &str, body: &[u8]) -> Result<Reply, Failure> {
        let _one = self.changing.lock().await;
        let link = self.link(name)?;
        let body = Object::of("Proxy", decode::value(body)?)?;
        let now = link.address();
        let listen = body.text("listen")?.unwrap_or_else(|| now.listen.clone());
        let upstream = body.text("upstream")?.unwrap_or_else(|| now.to.clone());
        let enabled = body.truth("enabled")?.unwrap_or_else(|| link.is_on());
        if upstream != now.to || !same_address(&listen, &now.listen).await {
            link.stop().await;
            link.move_to(listen, upstream);
        }
        if enabled {
            start(&link).await?;
        } else {
            link.stop().await;
        }
        Reply::json(StatusCode::OK, &self.shown(&link))
    }

    pub(super) async fn delete(&self, name: &str) -> Result<Reply, Failure> {
        let _one = self.changing.lock().await;
        let link = self.settings.links.remove(name).ok_or(Failure::NoProxy)?;
        link.stop().await;
        self.asked().remove(name);
        Ok(Reply::empty())
    }

    /// Creates what isn't there, leaves alone what is the same, replaces the rest. It ends at the first that can't be had.
    pub(super) async fn populate(&self, body: &[u8]) -> Result<Reply, Failure> {
        let refused = |why| Failure::Populate {
            why: Box::new(why),
            proxies: None,
        };
        let mut wanted = Vec::new();
        for value in decode::list(body).map_err(refused)? {
            wanted.push(Wanted::of(value).map_err(refused)?);
        }
        for (place, proxy) in (1..).zip(&wanted) {
            proxy
                .check(&format!(" at proxy {place}"))
                .map_err(refused)?;
        }
        let _one = self.changing.lock().await;
        let mut shown = Vec::new();
        for proxy in wanted {
            match self.add_or_replace(proxy).await {
                Ok(link) => shown.push(self.shown(&link)),
                Err(why) => {
                    return Err(Failure::Populate {
                        why: Box::new(why),
                        proxies: Some(shown),
                    });
                }
            }
        }
        let proxies = (!shown.is_empty()).then_some(shown);
        Reply::json(StatusCode::CREATED, &BTreeMap::from([("proxies", proxies)]))
    }

    async fn add_or_replace(&self, wanted: Wanted) -> Result<Arc<Link>, Failure> {
        if let Some(link) = self.settings.links.find(&wanted.name) {
            let now = link.address();
            if now.to == wanted.upstream && same_address(&wanted.listen, &now.listen).await {
                return Ok(link);
            }
            link.stop().await;
            self.settings.links.remove(&wanted.name);
            self.asked().remove(&wanted.name);
        }
        self.add(wanted).await
    }

    /// Every proxy is on, and no toxic is left. Faults of runs are not its affair.
    pub(super) async fn reset(&self) -> Result<Reply, Failure> {
        let _one = self.changing.lock().await;
        for link in self.settings.links.all() {
            start(&link).await?;
            let gone = self.asked().remove(&link.name).unwrap_or_default();
            for toxic in gone {
                link.remove(&toxics::id(&toxic.name));
            }
        }
        Ok(Reply::empty())
    }

    pub(super) fn toxics(&self, proxy: &str) -> Result<Reply, Failure> {
        self.link(proxy)?;
        Reply::json(StatusCode::OK, &self.shown_toxics(proxy))
    }

    pub(super) fn add_toxic(&self, proxy: &str, body: &[u8]) -> Result<Reply, Failure> {
        let link = self.link(proxy)?;
        let body = decode::value(body)?;
        let mut all = self.asked();
        let asked = all.entry(proxy.to_owned()).or_default();
        let toxic = Asked::new(body, |name| asked.iter().any(|toxic| toxic.name == name))?;
        link.set(toxic.toxic(self.settings.seed));
        let shown = toxic.shown();
        asked.push(toxic);
        Reply::json(StatusCode::OK, &shown)
    }

    pub(super) fn show_toxic(&self, proxy: &str, toxic: &str) -> Result<Reply, Failure> {
        self.link(proxy)?;
        let all = self.asked();
        let found = all.get(proxy).into_iter().flatten();
        match found.into_iter().find(|asked| asked.name == toxic) {
            Some(asked) => Reply::json(StatusCode::OK, &asked.shown()),
            None => Err(Failure::NoToxic),
        }
    }

    pub(super) fn update_toxic(
        &self,
        proxy: &str,
        toxic: &str,
        body: &[u8],
    ) -> Result<Reply, Failure> {
        let link = self.link(proxy)?;
        let mut all = self.asked();
        let asked = all.entry(proxy.to_owned()).or_default();
        let found = asked.iter_mut().find(|asked| asked.name == toxic);
        let asked = found.ok_or(Failure::NoToxic)?;
        *asked = asked.changed(decode::value(body)?)?;
        link.set(asked.toxic(self.settings.seed));
        Reply::json(StatusCode::OK, &asked.shown())
    }

    pub(super) fn delete_toxic(&self, proxy: &str, toxic: &str) -> Result<Reply, Failure> {
        let link = self.link(proxy)?;
        let mut all = self.asked();
        let asked = all.entry(proxy.to_owned()).or_default();
        let row = asked.iter().position(|asked| asked.name == toxic);
        asked.remove(row.ok_or(Failure::NoToxic)?);
        link.remove(&toxics::id(toxic));
        Ok(Reply::empty())
    }

    /// Bytes by proxy and way, counted while connections live.
    pub(super) fn metrics(&self) -> Reply {
        let mut text = String::new();
        for (what, help) in [
            ("received", "Bytes that came in on a way of a proxy."),
            ("sent", "Bytes that went out on a way of a proxy."),
        ] {
            let metric = format!("toxiproxy_proxy_{what}_bytes_total");
            // Writing to a string does not fail.
            let _ = writeln!(text, "# HELP {metric} {help}\n# TYPE {metric} counter");
            for link in self.settings.links.all() {
                let LinkAddress { name, listen, to } = link.address();
                for (way, direction) in [
                    ("downstream", Direction::ToClient),
                    ("upstream", Direction::ToTarget),
                ] {
                    let bytes = link.carried_bytes(direction);
                    let _ = writeln!(
                        text,
                        "{metric}{{direction=\"{way}\",listener=\"{listen}\",proxy=\"{name}\",upstream=\"{to}\"}} {bytes}"
                    );
                }
            }
        }
        text.push_str(&crate::chaos::proxy::metrics::text(&self.settings.links));
        Reply::text(text)
    }
}

/// Switches a proxy on. Without an address it listens everywhere, on a port of the system's choice.
async fn start(link: &Arc<Link>) -> Result<(), Failure> {
    let now = link.address();
    if !link.is_on() && now.listen.is_empty() {
        link.move_to("[::]:0".to_owned(), now.to);
    }
    let listen = link.address().listen;
    match link.start().await {
        Ok(()) => Ok(()),
        Err(error) => Err(Failure::Listen(go_words(&resolved(&listen).await, &error))),
    }
}

/// As Go shows an address: with its number in place of a name, as far as it has one.
async fn resolved(address: &str) -> String {
    let found = tokio::net::lookup_host(address).await;
    let first = found.ok().and_then(|mut addresses| addresses.next());
    first.map_or_else(|| address.to_owned(), |first| first.to_string())
}

/// What Go says when it can't listen.
fn go_words(listen: &str, error: &io::Error) -> String {
    let why = match (error.kind(), listen.contains(':')) {
        (_, false) => return format!("listen tcp: address {listen}: missing port in address"),
        (io::ErrorKind::AddrInUse, _) => "bind: address already in use".to_owned(),
        (io::ErrorKind::AddrNotAvailable, _) => "bind: cannot assign requested address".to_owned(),
        (io::ErrorKind::PermissionDenied, _) => "bind: permission denied".to_owned(),
        _ => error.to_string(),
    };
    format!("listen tcp {listen}: {why}")
}

/// Whether two addresses are one after names are resolved: `localhost:80` is `127.0.0.1:80`.
async fn same_address(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let (Ok(one), Ok(other)) = (
        tokio::net::lookup_host(one).await,
        tokio::net::lookup_host(other).await,
    ) else {
        return false;
    };
    let others: Vec<SocketAddr> = other.collect();
    one.into_iter().any(|address| others.contains(&address))
}
