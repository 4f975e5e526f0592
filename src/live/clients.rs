//! The HTTP clients of riders and issuers: one for all, or where a journey or a command says so one that shows a certificate of its
//! own, or one for each account.

use crate::agents::Rider;
use crate::net::hosts::Hosts;
use crate::net::http::{Http, NoClient};
use crate::net::tls::{Identity, Owner, WalletError, read_all};
use crate::plan::Plan;
use crate::plan::template::Template;
use crate::plan::tls::{HttpTls, KeyFiles};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Idle connections that the client of one account keeps: a rider asks one thing after the other.
const OF_ONE_RIDER: usize = 1;

/// Clients that can't be had.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error(transparent)]
    Client(#[from] NoClient),
    #[error(transparent)]
    Wallet(#[from] WalletError),
}

/// Those of all riders.
pub(super) struct Clients {
    shared: Http,
    /// Parallel to `Plan::riders`.
    groups: Vec<Own>,
}

enum Own {
    /// Like everybody.
    Shared,
    One(Http),
    Each(Accounts),
}

/// A client for each account, made when it is first needed.
struct Accounts {
    tls: HttpTls,
    /// Its name among the accounts.
    cert: Template,
    hosts: Arc<Hosts>,
    timeout: Duration,
    held: HashMap<String, Account>,
}

struct Account {
    identity: Identity,
    http: OnceLock<Option<Http>>,
}

/// The client of a command, or of a journey whose riders show the same: like everybody's without `tls`.
pub(super) fn client(
    hosts: &Arc<Hosts>,
    idle: usize,
    timeout: Duration,
    tls: Option<&HttpTls>,
    name: String,
) -> Result<Http, ClientError> {
    let Some(tls) = tls else {
        return Ok(Http::new(Arc::clone(hosts), idle, timeout)?);
    };
    let owner = Owner {
        name,
        rows: None,
        count: 1,
    };
    let nobody = |_: u64, _: &str, _: &mut String| false;
    let files = tls.files.as_ref();
    let read = files.map(|files| read_all(&owner, files, &nobody));
    let identity = read.transpose()?.and_then(|mut read| read.pop());
    let hosts = Arc::clone(hosts);
    Ok(Http::showing(hosts, idle, timeout, tls, identity.as_ref())?)
}

impl Clients {
    /// Those of the plan's riders; `idle` connections of those that are shared are kept. Reads every certificate.
    ///
    /// # Errors
    /// If a client or a certificate can't be had.
    pub(super) fn of(
        plan: &Plan,
        hosts: &Arc<Hosts>,
        idle: usize,
        timeout: Duration,
    ) -> Result<Clients, ClientError> {
        let groups = (0..plan.riders.len()).map(|group| {
            let journey = &plan.target.journeys[plan.riders[group].journey];
            let name = format!("journey `{}`", journey.name);
            match &journey.tls {
                None => Ok(Own::Shared),
                Some(tls) => match tls.files.as_ref().filter(|files| !files.is_shared()) {
                    Some(files) => Accounts::of(plan, group, hosts, (tls, files)).map(Own::Each),
                    None => client(hosts, idle, timeout, Some(tls), name).map(Own::One),
                },
            }
        });
        Ok(Clients {
            groups: groups.collect::<Result<_, ClientError>>()?,
            shared: Http::new(Arc::clone(hosts), idle, timeout)?,
        })
    }

    /// The client that everybody has.
    pub(super) fn shared(&self) -> &Http {
        &self.shared
    }

    /// The client of a rider; `None` if there is none to be had for its account.
    pub(super) fn of_rider(&self, rider: &Rider) -> Option<&Http> {
        match self.groups.get(rider.group())? {
            Own::Shared => Some(&self.shared),
            Own::One(http) => Some(http),
            Own::Each(accounts) => accounts.of_rider(rider),
        }
    }
}

impl Accounts {
    fn of(
        plan: &Plan,
        group: usize,
        hosts: &Arc<Hosts>,
        (tls, files): (&HttpTls, &KeyFiles),
    ) -> Result<Accounts, ClientError> {
        let riders = &plan.riders[group];
        let rows = riders.identity.as_ref();
        let owner = Owner {
            name: format!("journey `{}`", plan.target.journeys[riders.journey].name),
            rows,
            count: rows.map_or(0, |rows| rows.count as u64),
        };
        let value = |index: u64, name: &str, out: &mut String| {
            let text = rows.and_then(|rows| rows.value(index, name));
            out.push_str(text.unwrap_or_default());
            text.is_some()
        };
        let identities = read_all(&owner, files, &value)?;
        let mut held = HashMap::new();
        for (index, identity) in (0..).zip(identities) {
            let mut name = String::new();
            files
                .cert
                .render_into(&mut name, |column, out| value(index, column, out))
                .map_err(WalletError::from)?;
            let http = OnceLock::new();
            held.insert(name, Account { identity, http });
        }
        Ok(Accounts {
            tls: tls.clone(),
            cert: files.cert.clone(),
            hosts: Arc::clone(hosts),
            timeout: riders.timeout,
            held,
        })
    }

    fn of_rider(&self, rider: &Rider) -> Option<&Http> {
        let mut name = String::new();
        let known = self.cert.render_into(&mut name, |column, out| {
            let text = rider.account_value(column);
            out.push_str(text.unwrap_or_default());
            text.is_some()
        });
        known.ok()?;
        let account = self.held.get(&name)?;
        let http = account.http.get_or_init(|| {
            let hosts = Arc::clone(&self.hosts);
            let identity = Some(&account.identity);
            Http::showing(hosts, OF_ONE_RIDER, self.timeout, &self.tls, identity).ok()
        });
        http.as_ref()
    }
}
