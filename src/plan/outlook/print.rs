//! The outlook as `rushhour check` prints it.

mod marks;

use super::identities;
use super::policy::policy;
use super::{Arriving, MarkRoom, Outlook, Phase};
use crate::plan::HubGroup;
use crate::plan::fault::{Disconnect, FaultKind, How, TriggerKind};
use crate::plan::happening::readmit_text;
use crate::plan::quantity::{count, duration, moment, rate};
use crate::plan::session::Will;
use crate::plan::target::{Device, Find, LabTls};
use crate::plan::wave::{Jitter, OldSessions, Renew, Wave};
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

impl Display for Outlook<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.head(out)?;
        self.agents(out)?;
        self.arrivals(out)?;
        self.needs(out)?;
        self.tokens(out)?;
        self.identities(out)?;
        self.probes(out)?;
        self.links(out)?;
        self.marks(out)?;
        self.expectations(out)?;
        writeln!(out, "\nHosts that will be contacted")?;
        for (host, place) in &self.hosts {
            writeln!(out, "  {host:<28} {place}")?;
        }
        for warning in &self.warnings {
            writeln!(out, "\nwarning: {warning}")?;
        }
        Ok(())
    }
}

impl Outlook<'_> {
    fn head(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let plan = self.plan;
        writeln!(
            out,
            "{} against {}",
            plan.profile.display(),
            plan.target.file.display()
        )?;
        for about in [&plan.about, &plan.target.about]
            .into_iter()
            .filter(|about| !about.is_empty())
        {
            writeln!(out, "  {about}")?;
        }
        writeln!(
            out,
            "  environment {}, seed {}",
            plan.target.environment.name(),
            plan.seed
        )?;
        writeln!(
            out,
            "  {} of load from 0:00, then at most {} until recovery is decided and {} for what is in flight",
            duration(plan.duration),
            duration(plan.settle),
            duration(plan.drain)
        )?;
        if let Some(lab) = &plan.target.lab {
            let database = if lab.database.is_some() {
                "a PostgreSQL of yours"
            } else {
                "its own database"
            };
            let defects = if lab.on.is_empty() {
                "no defect on".to_owned()
            } else {
                format!("on: {}", lab.on.join(", "))
            };
            writeln!(
                out,
                "  the run starts the lab: {} shards{}, {database}, {defects}",
                lab.shards,
                match lab.tls {
                    LabTls::Off => "",
                    LabTls::Server => " with TLS",
                    LabTls::Mutual => " with mutual TLS",
                }
            )?;
        }
        Ok(())
    }

    fn hubs(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let plan = self.plan;
        for group in &plan.hubs {
            let device = &plan.target.devices[group.device];
            writeln!(
                out,
                "  {:<14} {} hubs ({}), up within {}{}",
                group.name,
                count(u64::from(group.count)),
                device.name,
                duration(group.connect_over),
                throttle(device)
            )?;
            writeln!(
                out,
                "  {:<14} keep-alive {}, timeout {}, reconnect: first within {}, then {}",
                "",
                duration(group.keep_alive),
                duration(group.timeout),
                duration(group.reconnect.first),
                policy(&group.reconnect.retry)
            )?;
            self.finding(group, out)?;
            let will = device.will.iter().map(Will::text);
            let authentication = device
                .authentication
                .iter()
                .map(|planned| format!("authenticates by {}", planned.method));
            let session = device.session.text(device.version);
            let besides = will
                .chain(authentication)
                .chain(identities::of_hubs(self, group));
            for text in std::iter::once(session).chain(besides) {
                writeln!(out, "  {:<14} {text}", "")?;
            }
        }
        Ok(())
    }

    fn agents(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let plan = self.plan;
        writeln!(out, "\nAgents")?;
        self.hubs(out)?;
        for (row, group) in plan.riders.iter().enumerate() {
            let journey = &plan.target.journeys[group.journey];
            let steps: Vec<&str> = journey
                .steps
                .iter()
                .map(|step| step.name.as_str())
                .collect();
            writeln!(
                out,
                "  {:<14} riders on {}: {}",
                group.name,
                journey.name,
                steps.join(", ")
            )?;
            for line in super::journeys::lines(plan, row) {
                writeln!(out, "  {:<14} {line}", "")?;
            }
            writeln!(
                out,
                "  {:<14} timeout {}, {}",
                "",
                duration(group.timeout),
                policy(&group.retry)
            )?;
        }
        self.issuers(out)?;
        self.docks(out)
    }

    fn arrivals(&self, out: &mut Formatter<'_>) -> fmt::Result {
        if self.arriving.is_empty() {
            return Ok(());
        }
        writeln!(out, "\nArrivals")?;
        for group in &self.arriving {
            if group.is_recorded {
                writeln!(out, "  {:<14} {}", group.group, recording(group))?;
                continue;
            }
            for (row, piece) in group.pieces.iter().enumerate() {
                let name = if row == 0 { group.group.as_str() } else { "" };
                writeln!(out, "  {name:<14} {}", phase(piece))?;
            }
        }
        writeln!(
            out,
            "\nIn flight at worst (peak rate × longest wait of a request, all attempts)"
        )?;
        self.arriving
            .iter()
            .try_for_each(|group| in_flight(group, out))
    }

    fn needs(&self, out: &mut Formatter<'_>) -> fmt::Result {
        writeln!(out, "\nLoad at its peak, without retries")?;
        writeln!(
            out,
            "  connects {}, requests {}",
            rate(self.peak_connects_per_second),
            rate(self.peak_requests_per_second)
        )?;
        let sockets = count(self.sockets());
        writeln!(
            out,
            "\nSockets and file descriptors: {sockets}; ports towards each destination"
        )?;
        for towards in &self.towards {
            writeln!(
                out,
                "  {:<28} {} for hubs, {} for requests",
                super::host_of(&towards.address),
                count(towards.hubs),
                count(towards.requests)
            )?;
        }
        Ok(())
    }

    fn what(&self, room: &MarkRoom) -> String {
        let plan = self.plan;
        if !room.is_fault {
            let trigger = plan
                .triggers
                .iter()
                .find(|trigger| trigger.name == room.name);
            return trigger.map_or_else(String::new, |trigger| match trigger.kind {
                TriggerKind::Disconnect(drop) => self.disconnect(drop),
                TriggerKind::Renew(renew) => self.renew(renew),
                TriggerKind::Reauthenticate(wave) => {
                    format!("{} authenticate anew on their sessions", self.wave(wave))
                }
                TriggerKind::Operate { operation } => self.operate(operation),
                TriggerKind::Offline(some) => {
                    self.docks_do(some, "without a network", trigger.lasts)
                }
                TriggerKind::Shed(some) => {
                    self.docks_do(some, "leave out their status", trigger.lasts)
                }
            });
        }
        let Some(fault) = plan.faults.iter().find(|fault| fault.name == room.name) else {
            return String::new();
        };
        let what = match &fault.kind {
            FaultKind::Act { component, act } => act.text(&plan.target.components[*component].name),
            FaultKind::Link(fault) => fault.text(&plan.target.links[fault.link].name),
            FaultKind::Cut(cut) => return cut.text(&plan.target.links[cut.link].name),
            FaultKind::Operate { operation } => self.operate(*operation),
        };
        match fault.lasts {
            Some(lasts) => format!("{what}, for {}", duration(lasts)),
            None => format!("{what}, to the end"),
        }
    }

    fn disconnect(&self, drop: Disconnect) -> String {
        let group = &self.plan.hubs[drop.group];
        let hubs = (f64::from(group.count) * drop.share).round() as u64;
        let how = how(drop.by);
        let within = if drop.within.is_zero() {
            "at once".to_owned()
        } else {
            format!("within {}", duration(drop.within))
        };
        let away = if drop.away.is_zero() {
            String::new()
        } else {
            format!(", away for {}", duration(drop.away))
        };
        format!(
            "{} hubs of {} dropped {within} by {how}{away}{}",
            count(hubs),
            group.name,
            drop.readmit.as_ref().map(readmit_text).unwrap_or_default()
        )
    }

    /// How the hubs of a group know their shard, where it is not the same for ever.
    fn finding(&self, group: &HubGroup, out: &mut Formatter<'_>) -> fmt::Result {
        let device = &self.plan.target.devices[group.device];
        let ghosts = match device.ghost {
            true => "; a ghost watches on each",
            false => "",
        };
        let how = match &device.find {
            Find::Balancer | Find::Hash(_) => return Ok(()),
            Find::List(None) => "tries its shards in turn".to_owned(),
            Find::List(Some(first)) => format!("tries its shards in turn, {first} first"),
            Find::Ask(ask) => format!(
                "asks for its shard before each attempt: {} {}",
                ask.request.method.name(),
                ask.request.url
            ),
            Find::Redirect => format!(
                "begins with {}, and goes where the target sends it, among its shards",
                device.shards[0].0
            ),
        };
        writeln!(out, "  {:<14} {how}{ghosts}", "")
    }

    fn renew(&self, renew: Renew) -> String {
        let after = match renew.sessions {
            OldSessions::End(by) => {
                format!(
                    "end their sessions by {} and connect again at once",
                    how(by)
                )
            }
            OldSessions::Keep => "keep their sessions".to_owned(),
        };
        format!(
            "{} renew their certificates and {after}",
            self.wave(renew.wave)
        )
    }

    fn wave(&self, wave: Wave) -> String {
        let group = &self.plan.hubs[wave.group];
        let hubs = (f64::from(group.count) * wave.share).round() as u64;
        let within = match (wave.within.is_zero(), wave.jitter) {
            (true, _) => "at once".to_owned(),
            (false, Jitter::None) => format!("evenly within {}", duration(wave.within)),
            (false, Jitter::Full) => format!("at random within {}", duration(wave.within)),
        };
        format!("{} hubs of {}, {within},", count(hubs), group.name)
    }

    fn operate(&self, operation: usize) -> String {
        let operation = &self.plan.target.operations[operation];
        format!(
            "{} {}",
            operation.request.method.name(),
            operation.request.url
        )
    }

    fn expectations(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let plan = self.plan;
        let lists = [
            ("Must hold before a fault", &plan.steady),
            ("Ends the run", &plan.stop_if),
            ("Expected", &plan.expect),
        ];
        for (title, lines) in lists.into_iter().filter(|(_, lines)| !lines.is_empty()) {
            writeln!(out, "\n{title}")?;
            for line in lines {
                writeln!(out, "  {}", line.text)?;
            }
        }
        let alerts = &plan.target.alerts;
        if !alerts.is_empty() {
            writeln!(out, "\nAlerts of the target, rehearsed on what is measured")?;
        }
        for alert in alerts {
            match &alert.line {
                Ok(line) => writeln!(out, "  {:<20} {}", alert.name, line.text)?,
                Err(why) => writeln!(
                    out,
                    "  {:<20} {} (not rehearsed: {why})",
                    alert.name, alert.rule
                )?,
            }
        }
        Ok(())
    }
}

fn phase(piece: &Phase) -> String {
    let times = format!("{:>7} to {:<7}", moment(piece.from), moment(piece.to));
    let rates = if piece.from_per_second == piece.to_per_second {
        rate(piece.from_per_second)
    } else {
        format!(
            "{} to {}",
            rate(piece.from_per_second),
            rate(piece.to_per_second)
        )
    };
    // Rounded for reading; the schedule itself stays exact.
    format!(
        "{times} {rates:<16} {} arrivals",
        count(piece.arrivals.round() as u64)
    )
}

fn in_flight(group: &Arriving, out: &mut Formatter<'_>) -> fmt::Result {
    writeln!(
        out,
        "  {:<14} {} × {} = {}, max_in_flight {}",
        group.group,
        rate(group.peak_per_second),
        duration(group.worst_wait),
        count(group.needed_in_flight),
        count(u64::from(group.max_in_flight))
    )
}

fn how(how: How) -> &'static str {
    match how {
        How::Disconnect => "DISCONNECT",
        How::Close => "FIN",
        How::Reset => "RST",
    }
}

/// What the target takes of a device's connects, if the file says so.
fn throttle(device: &Device) -> String {
    device.throttle.map_or_else(String::new, |limit| {
        format!(", of which the target takes {} connects", rate(limit))
    })
}

/// A recording in one line: it may have thousands of bins.
fn recording(group: &Arriving) -> String {
    let arrivals: f64 = group.pieces.iter().map(|piece| piece.arrivals).sum();
    let bin = group.pieces.first();
    format!(
        "recorded: {} arrivals in {} bins of {}, at most {}",
        count(arrivals.round() as u64),
        count(group.pieces.len() as u64),
        duration(bin.map_or(Duration::ZERO, |bin| bin.to - bin.from)),
        rate(group.peak_per_second)
    )
}
