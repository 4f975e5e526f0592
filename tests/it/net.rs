//! The door to the network: who may be contacted, from where, and how much of it there is.

use crate::support::service::free_port;
use rushhour::event::Outcome;
use rushhour::net::connect::{self, Source};
use rushhour::net::hosts::{Endpoint, HostError, Hosts};
use rushhour::net::limits::{Available, Needs, Shortage, Towards};
use rushhour::plan::fault::Link;
use rushhour::plan::target::{Device, Find, ProbeSource, Signals, Target};
use rushhour::plan::{Template, target::Plays};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

fn template(text: &str) -> Template {
    Template::parse(text).unwrap()
}

fn target(shards: &[&str], never: &[&str]) -> Target {
    let device = Device {
        name: "lock".to_owned(),
        shards: shards
            .iter()
            .map(|address| ("lb".to_owned(), template(address)))
            .collect(),
        find: Find::Balancer,
        client_id: template("<serial>"),
        username: None,
        password: None,
        telemetry: None,
        command: None,
        answer: None,
        ..Device::default()
    };
    Target {
        file: PathBuf::from("staging.yaml"),
        devices: vec![device],
        never: never.iter().map(|rule| (*rule).to_owned()).collect(),
        ..Target::default()
    }
}

fn endpoint(text: &str) -> Endpoint {
    Endpoint::parse(text).unwrap()
}

#[test]
fn endpoints_are_read_from_addresses_of_every_kind() {
    let table = [
        ("mqtt://broker.example", "broker.example:1883"),
        ("mqtts://Broker.Example.", "broker.example:8883"),
        (
            "http://127.0.0.1:8080/v1/bikes/<bike>?a=<rider>",
            "127.0.0.1:8080",
        ),
        ("https://api.example/v1", "api.example:443"),
        ("[::1]:1883", "[::1]:1883"),
        ("localhost:5432", "localhost:5432"),
        // The host of an address with a user in it, and of one that tries to look like another.
        ("http://trusted.example@evil.example/", "evil.example:80"),
        ("http://evil.example\\@trusted.example/", "evil.example:80"),
    ];
    for (text, expected) in table {
        assert_eq!(endpoint(text).to_string(), expected, "{text}");
    }
    for text in [
        "",
        "localhost",
        "mqtt://",
        "mqtt://<lab.shard-1>",
        "http://<lab.api>/x",
        "host:99999",
    ] {
        assert!(Endpoint::parse(text).is_err(), "{text}");
    }
}

#[test]
fn everything_that_the_file_names_is_permitted_and_nothing_else() {
    let mut target = target(&["mqtt://broker.example:1883"], &[]);
    target.links.push(Link::between(
        "db",
        template("127.0.0.1:7001"),
        template("127.0.0.1:7002"),
    ));
    target.probes.sources.push(ProbeSource {
        name: "pool".to_owned(),
        plays: Plays::Pool,
        origin: rushhour::plan::probe::Origin::Scrape(vec![template(
            "http://127.0.0.1:9100/metrics",
        )]),
        labels: Vec::new(),
        signals: Signals::Preset("otel-db".to_owned()),
    });
    let hosts = Hosts::of(&target).unwrap();
    for permitted in [
        "broker.example:1883",
        "BROKER.example.:1883",
        "127.0.0.1:7001",
        "127.0.0.1:7002",
        "127.0.0.1:9100",
    ] {
        assert_eq!(hosts.permit(&endpoint(permitted)), Ok(()), "{permitted}");
    }
    let error = hosts.permit(&endpoint("other.example:1883")).unwrap_err();
    insta::assert_snapshot!(error, @"other.example:1883 is not contacted: the target file staging.yaml does not name it; it names 127.0.0.1:7001, 127.0.0.1:7002, 127.0.0.1:9100, broker.example:1883");
    // The same host on another port is another thing.
    assert!(hosts.permit(&endpoint("broker.example:22")).is_err());
}

#[test]
fn never_forbids_by_name_by_pattern_and_by_network() {
    let table = [
        ("mqtt://prod.locks.example:1883", "*.locks.example", true),
        ("mqtt://PROD.locks.example.:1883", "*.locks.example", true),
        ("mqtt://locks.example:1883", "*.locks.example", false),
        ("mqtt://locks.example:1883", "locks.example", true),
        ("mqtt://locks.example.org:1883", "locks.example", false),
        (
            "mqtt://eu-1.prod.locks.example:1883",
            "eu-*.prod.*.example",
            true,
        ),
        ("mqtt://10.20.3.4:1883", "10.20.0.0/16", true),
        ("mqtt://10.21.3.4:1883", "10.20.0.0/16", false),
        ("mqtt://10.20.3.4:1883", "10.20.3.4", true),
        ("mqtt://[::ffff:10.20.3.4]:1883", "10.20.0.0/16", true),
        ("mqtt://[fd00::7]:1883", "fd00::/8", true),
    ];
    for (address, rule, forbidden) in table {
        let result = Hosts::of(&target(&[address], &[rule]));
        assert_eq!(
            result.is_err(),
            forbidden,
            "{address} under {rule}: {result:?}"
        );
    }
    let error = Hosts::of(&target(
        &["mqtt://prod.locks.example:1883"],
        &["*.locks.example"],
    ))
    .unwrap_err();
    insta::assert_snapshot!(error, @"prod.locks.example is not contacted: `never: *.locks.example` of the target file forbids it");
}

#[test]
fn a_rule_or_an_address_that_cannot_be_read_is_refused_with_its_place() {
    for rule in ["10.20.0.0/33", "", "a b", "http://x"] {
        let error = Hosts::of(&target(&[], &[rule])).unwrap_err();
        assert_eq!(
            error,
            HostError::BadRule {
                rule: rule.to_owned()
            }
        );
    }
    let error = Hosts::of(&target(&["mqtt://<lab.shard-1>"], &[])).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("devices.lock.shards.lb: `mqtt://<lab.shard-1>` has no host"),
        "{error}"
    );
}

/// A harmless name may lead to a forbidden network.
#[tokio::test]
async fn addresses_behind_a_name_are_checked_too() {
    let hosts = Hosts::of(&target(&["mqtt://localhost:1883"], &["127.0.0.0/8", "::1"])).unwrap();
    let error = hosts.peers(&endpoint("localhost:1883")).await.unwrap_err();
    assert!(
        matches!(&error, HostError::NeverAddress { host, .. } if host == "localhost"),
        "{error}"
    );
    assert_eq!(hosts.resolve_all().await, Err(error));
    let free = Hosts::of(&target(&["mqtt://localhost:1883"], &[])).unwrap();
    assert!(
        free.peers(&endpoint("localhost:1883")).await.unwrap()[0]
            .address()
            .ip()
            .is_loopback()
    );
    let unknown = Hosts::of(&target(&["mqtt://no-such-name.invalid:1883"], &[])).unwrap();
    assert!(matches!(
        unknown.resolve_all().await,
        Err(HostError::NoAddress { .. })
    ));
}

#[tokio::test]
async fn a_peer_that_refuses_is_unreachable() {
    let address = format!("127.0.0.1:{}", free_port());
    let hosts = Hosts::of(&target(&[&format!("mqtt://{address}")], &[])).unwrap();
    let peer = hosts.peers(&endpoint(&address)).await.unwrap()[0];
    for source in [Source::System, Source::Spread(5)] {
        let error = connect::connect(peer, source).await.unwrap_err();
        assert_eq!(connect::outcome(&error), Outcome::Unreachable);
    }
}

#[tokio::test]
async fn sources_spread_on_the_loopback_network_only() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let hosts = Hosts::of(&target(&[&format!("mqtt://{address}")], &[])).unwrap();
    let peer = hosts
        .peers(&Endpoint::new("127.0.0.1", address.port()))
        .await
        .unwrap()[0];
    let stream = connect::connect(peer, Source::Spread(64 + 9))
        .await
        .unwrap();
    assert_eq!(
        stream.local_addr().unwrap().ip(),
        IpAddr::from([127, 0, 1, 10])
    );
    assert!(stream.nodelay().unwrap());
    assert_eq!(Source::Spread(3).address(IpAddr::from([10, 0, 0, 1])), None);
    assert_eq!(
        Source::System.address(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        None
    );
}

fn towards(loopback: bool, hubs: u64, requests: u64) -> Needs {
    let endpoint = Endpoint::new("10.0.0.1", 1883);
    Needs {
        towards: vec![Towards {
            endpoint,
            loopback,
            hubs,
            secured: false,
            requests,
        }],
    }
}

#[test]
fn what_does_not_fit_is_refused_with_the_numbers() {
    let available = Available {
        fds: 20_000,
        fds_open: 12,
        ports: 28_232,
        memory_bytes: 4_000_000_000,
    };
    assert_eq!(available.shortages(&towards(true, 19_000, 500)), Vec::new());
    let texts = |available: &Available, needs: &Needs| {
        available
            .shortages(needs)
            .iter()
            .map(Shortage::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    };
    insta::assert_snapshot!(texts(&available, &towards(true, 19_900, 0)), @"20000 file descriptors are needed, 19988 are left of 20000 (ulimit -n): raise the hard limit, or run fewer hubs per process");
    let many = Available {
        fds: 1_000_000,
        ..available
    };
    // The same number fits where the source addresses are ours to choose.
    assert_eq!(many.shortages(&towards(true, 28_233, 0)), Vec::new());
    insta::assert_snapshot!(texts(&many, &towards(false, 28_233, 0)), @"28233 connections to 10.0.0.1:1883 are needed at the same time, 28232 ports are to be had from one source address (net.ipv4.ip_local_port_range): run fewer, or widen the range");
    let small = Available {
        memory_bytes: 100_000_000,
        ..many
    };
    insta::assert_snapshot!(texts(&small, &towards(true, 20_000, 0)), @"about 156 MB of memory are needed, 100 MB are left: run fewer hubs on this machine");
}

#[test]
fn what_fits_but_costs_is_noted() {
    let available = Available {
        fds: 100_000,
        fds_open: 12,
        ports: 28_232,
        memory_bytes: 4_000_000_000,
    };
    let notes = available.notes(&towards(false, 15_000, 0)).join("\n");
    assert!(
        notes.contains("more than half of its 28232 ports"),
        "{notes}"
    );
    assert!(notes.contains("SYN retransmit"), "{notes}");
    assert_eq!(
        available.notes(&towards(false, 100, 50)),
        Vec::<String>::new()
    );
}

#[test]
fn this_machine_says_what_it_has() {
    let available = Available::raise().unwrap();
    assert!(available.fds >= 256 && available.fds_open >= 3 && available.ports > 1_000);
    assert!(available.memory_bytes > 1_000_000);
    assert_eq!(
        Available::raise().unwrap().fds,
        available.fds,
        "raising twice changes nothing"
    );
}
