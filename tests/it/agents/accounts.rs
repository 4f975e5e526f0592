//! Riders and the accounts that they use.

use super::plans::TAG;
use super::whole::whole_plan;
use rushhour::agents::{Action, Agent, Context, Input, Rider, RiderConfig};
use rushhour::dice::Dice;
use rushhour::event::{Event, Offset};
use rushhour::plan::identity::{IdentityTable, Rows};
use std::path::PathBuf;
use std::sync::Arc;

const START: Offset = Offset(5_000_000);

#[test]
fn nobody_gets_an_account_in_use_as_long_as_there_is_another() {
    let mut plan = whole_plan();
    let row = |name: &str| vec![name.to_owned()].into_boxed_slice();
    plan.riders[0].identity = Some(Rows {
        set: 0,
        first: 0,
        count: 3,
        table: Some(Arc::new(IdentityTable {
            file: PathBuf::from("riders.csv"),
            columns: vec!["email".to_owned()],
            rows: vec![row("anna"), row("ben"), row("cleo")],
            lines: vec![2, 3, 4],
        })),
    });
    let config = Arc::new(RiderConfig::of(&plan, 0, TAG));
    let budget = plan.budget(rushhour::event::AgentKind::Rider, 0);
    let begin = |number: u64| {
        let mut rider = Rider::new(&config, number);
        let mut wants = Vec::new();
        let mut dice = Dice::named(1, 1, number);
        let mut context = Context {
            dice: &mut dice,
            budget: &budget,
        };
        rider.on(START, Input::Due { due: START }, &mut context, &mut wants);
        let mut email = String::new();
        assert!(rider.value("email", &mut email));
        let shared = wants
            .iter()
            .any(|action| matches!(action, Action::Tell(Event::AccountShared { .. })));
        (rider, email, shared)
    };
    let (anna, email, _) = begin(1);
    assert_eq!(email, "anna");
    let (_ben, email, _) = begin(2);
    assert_eq!(email, "ben");
    let (_cleo, email, shared) = begin(4);
    assert_eq!(
        (email.as_str(), shared),
        ("cleo", false),
        "anna's turn, and she rides"
    );
    let (_fifth, email, shared) = begin(5);
    assert_eq!((email.as_str(), shared), ("ben", true), "all are in use");
    drop(anna);
    let (_sixth, email, shared) = begin(6);
    assert_eq!((email.as_str(), shared), ("anna", false));
}
