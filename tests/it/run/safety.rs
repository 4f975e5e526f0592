//! What a run must never do: reach strangers, tell secrets, load production unasked.

use super::verdicts::nobody_at;
use super::{LIMIT, lab_target, profile};
use crate::support::program::Home;
use crate::support::service::free_port;
use std::fs;
use std::net::TcpListener;

const EXPECT: &str = "expect: [ commands lost == 0 ]\n";

#[test]
fn production_needs_the_flag() {
    let home = Home::new();
    // Nobody listens there: whether the run goes on is all that is asked.
    let target = nobody_at(&home, free_port(), free_port(), "production");
    let profile = profile(&home, &target, 3, EXPECT);
    let refused = home.finish(&["run", &profile], LIMIT);
    refused.expect_code(2);
    assert!(
        refused.stderr.contains("--allow-production"),
        "{}",
        refused.stderr
    );
    assert!(refused.run.is_none(), "a refused run makes no folder");
    let allowed = home.finish(&["run", &profile, "--allow-production"], LIMIT);
    assert!(allowed.code == 3 || allowed.code == 4, "{allowed:?}");
}

#[test]
fn a_secret_is_in_no_file_and_no_output() {
    let secret = "p4ss-quokka-71";
    let home = Home::new();
    let target = fs::read_to_string(lab_target()).unwrap();
    let target = target.replace(
        "commands:\n",
        "secrets: { pass: { env: RUSHHOUR_TEST_PASS } }\ncommands:\n",
    );
    let target = target.replace(
        "headers: { Idempotency-Key: <command> }",
        "headers: { Idempotency-Key: <command>, X-Pass: <secret.pass> }",
    );
    let target = target.replace(
        "client_id: <serial>",
        "client_id: <serial>\n    username: rider\n    password: <secret.pass>",
    );
    assert!(
        target.matches("secret.pass").count() == 2,
        "the lab's target file has changed its form"
    );
    let target = home.write("secret.yaml", &target).display().to_string();
    let profile = profile(&home, &target, 3, EXPECT);
    home.start(&["run", &profile], &[("RUSHHOUR_TEST_PASS", secret)])
        .wait(LIMIT)
        .expect_code(0);
    for (path, content) in home.files() {
        let found = content
            .windows(secret.len())
            .any(|window| window == secret.as_bytes());
        assert!(!found, "{} tells the secret", path.display());
    }
}

#[test]
fn a_missing_secret_is_refused_by_its_name() {
    let home = Home::new();
    let target = fs::read_to_string(lab_target()).unwrap();
    let target = target.replace(
        "commands:\n",
        "secrets: { pass: { env: RUSHHOUR_TEST_NOT_SET } }\ncommands:\n",
    );
    let target = target.replace(
        "headers: { Idempotency-Key: <command> }",
        "headers: { X-Pass: <secret.pass> }",
    );
    let target = home.write("secret.yaml", &target).display().to_string();
    let refused = home.finish(&["run", &profile(&home, &target, 3, EXPECT)], LIMIT);
    refused.expect_code(2);
    assert!(
        refused.stderr.contains("RUSHHOUR_TEST_NOT_SET"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_proxy_of_the_environment_sees_no_packet() {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    proxy.set_nonblocking(true).unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    let home = Home::new();
    let variables: Vec<(&str, &str)> = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]
        .iter()
        .map(|name| (*name, address.as_str()))
        .collect();
    home.start(
        &["run", &profile(&home, &lab_target(), 3, EXPECT)],
        &variables,
    )
    .wait(LIMIT)
    .expect_code(0);
    assert!(proxy.accept().is_err(), "somebody connected to the proxy");
}

#[test]
fn nothing_is_sent_to_what_never_forbids() {
    let home = Home::new();
    let target = fs::read_to_string(lab_target())
        .unwrap()
        .replace("lab: {} ", "never: [ 127.0.0.0/8 ]\nlab: {} ");
    let target = home.write("never.yaml", &target).display().to_string();
    let profile = profile(&home, &target, 3, EXPECT);
    home.finish(&["check", &profile], LIMIT).expect_code(2);
    let refused = home.finish(&["run", &profile], LIMIT);
    refused.expect_code(2);
    assert!(refused.stderr.contains("127.0.0.0/8"), "{}", refused.stderr);
}
