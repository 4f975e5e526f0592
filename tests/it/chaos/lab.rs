//! Both faults against the real lab: its shard is killed and started by its own operation, its database gets slow behind the link.

use super::life::{plan, run};
use super::stage::{EndsWithTest, LIMIT, program, request, state, until};
use rushhour::chaos::links::Links;
use rushhour::plan::Target;
use rushhour::plan::component::Component;
use rushhour::plan::fault::{
    Connections, Fault, FaultKind, Link, LinkEffect, LinkFault, OperationSpec, Way,
};
use rushhour::plan::target::Method;
use rushhour::plan::template::Template;
use std::io::BufRead;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A lab of the test's own, which ends when its standard input closes.
struct Lab {
    child: Child,
    said: serde_json::Value,
}

impl Lab {
    fn start() -> Lab {
        let mut child = Command::new(program())
            .args(["lab", "--through-link", "--stop-with-parent"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = child.stdout.as_mut().unwrap();
        std::io::BufReader::new(output)
            .read_line(&mut line)
            .unwrap();
        let said = serde_json::from_str(&line).unwrap();
        Lab { child, said }
    }

    fn name(&self, name: &str) -> &str {
        self.said[name].as_str().unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

fn target_of(lab: &Lab) -> Target {
    let restart = format!("{}/admin/operations/restart-shard-1", lab.name("api"));
    Target {
        operations: vec![OperationSpec {
            name: "restart-shard-1".to_owned(),
            request: request(Method::Post, &restart),
            undo: None,
            observe: None,
            undone: None,
        }],
        components: vec![Component {
            name: "shard-1".to_owned(),
            body: super::stage::process(&format!("{}/shard-1.pid", lab.name("dir")), 0),
            irreversible: false,
            port: Some(Template::literal(lab.name("shard-1"))),
        }],
        links: vec![Link::between(
            "gateway-to-db",
            Template::literal(lab.name("db-link")),
            Template::literal(lab.name("database")),
        )],
        ..Target::default()
    }
}

async fn is_ready(lab: &Lab) -> bool {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let answer = client
        .get(format!("{}/ready", lab.name("api")))
        .send()
        .await;
    answer.is_ok_and(|answer| answer.status().is_success())
}

#[tokio::test(flavor = "multi_thread")]
async fn both_faults_bite_the_lab_and_leave_it_as_it_was() {
    let (state, lab) = (state(), Lab::start());
    let target = target_of(&lab);
    let links = Links::start(&target, program(), &state.directory, "run-1")
        .await
        .unwrap();
    let proxy = links.client(0).unwrap().clone();
    let _ends = EndsWithTest(proxy.registration().unwrap().process.clone());
    until("the gateway works through the link", || is_ready(&lab)).await;
    let fault = |name: &str, kind| Fault {
        name: name.to_owned(),
        at: Duration::ZERO,
        after: None,
        repeats: None,
        lasts: Some(Duration::from_millis(500)),
        kind,
    };
    let slow = FaultKind::Link(LinkFault {
        link: 0,
        connections: Connections::All,
        share: 1.0,
        way: Way::Answers,
        effect: LinkEffect::Latency {
            add: Duration::from_millis(50),
            jitter: Duration::from_millis(10),
        },
    });
    let faults = vec![fault("kill", super::stage::kill()), fault("slow", slow)];
    let mut run = run(plan(&target, faults, vec![]), &state, links).await;
    until("both faults have ended", || async {
        run.told().iter().filter(|told| **told == "end").count() == 2
    })
    .await;
    let mut told = run.told();
    told.sort_unstable();
    assert_eq!(
        told,
        ["begin", "begin", "end", "end", "observed", "observed"]
    );
    assert_eq!(run.faults.undo_all().await.unwrap(), []);
    until("the lab is as before", || is_ready(&lab)).await;
    assert!(proxy.canary("gateway-to-db", LIMIT).await.unwrap() < Duration::from_millis(40));
}
