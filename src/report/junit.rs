//! `junit.xml`: a test case for each expectation, and one for the run as a whole.

use super::Report;
use super::data::JudgementRow;
use quick_junit::{NonSuccessKind, Property, TestCase, TestCaseStatus, TestSuite};

/// The verdict as JUnit XML. A failed limit is a failure of type `threshold`, what can't be judged an error of type `inconclusive`.
#[must_use]
pub fn junit(report: &Report) -> String {
    let mut suite = TestSuite::new(report.run.profile.clone());
    suite.add_property(Property::new("run", report.run.id.clone()));
    suite.add_property(Property::new("seed", report.run.seed.to_string()));
    suite.add_property(Property::new("target", report.run.target.clone()));
    suite.add_property(Property::new("verdict", report.verdict.verdict.clone()));
    suite.add_property(Property::new(
        "exit_code",
        report.verdict.exit_code.to_string(),
    ));
    for row in &report.judgements {
        suite.add_test_case(case(report, row));
    }
    suite.add_test_case(whole(report));
    let mut whole = quick_junit::Report::new("rushhour");
    whole.add_test_suite(suite);
    whole
        .to_string()
        .expect("text without control characters is XML, and quick-junit drops those")
}

fn case(report: &Report, row: &JudgementRow) -> TestCase {
    let mut status = match row.verdict.as_str() {
        "pass" => TestCaseStatus::success(),
        "not judged" => TestCaseStatus::skipped(),
        "fail" => bad(NonSuccessKind::Failure, "threshold"),
        _ => bad(NonSuccessKind::Error, "inconclusive"),
    };
    if let Some(why) = row.why.as_ref().filter(|_| row.verdict != "pass") {
        status.set_message(why.clone());
        status.set_description(row.place.clone());
    }
    let mut case = TestCase::new(row.text.clone(), status);
    case.set_classname(report.run.profile.clone());
    case.add_property(Property::new("limit", row.limit.clone()));
    case.add_property(Property::new("measured", row.measured.clone()));
    case
}

/// The run itself: an error if it can't be judged, or ended in another way than by its expectations.
fn whole(report: &Report) -> TestCase {
    let lines_decide = report.verdict.exit_code == 0 || report.verdict.verdict == "fail";
    let stopped = report.run.stopped.as_ref();
    let mut status = match stopped {
        None if lines_decide => TestCaseStatus::success(),
        Some(_) if report.verdict.verdict == "fail" => bad(NonSuccessKind::Failure, "stopped"),
        _ => bad(NonSuccessKind::Error, "invalid-run"),
    };
    if stopped.is_some() || !lines_decide {
        let reasons = stopped.into_iter().chain(&report.verdict.reasons);
        status.set_message(reasons.cloned().collect::<Vec<_>>().join("; "));
    }
    let mut case = TestCase::new("run valid", status);
    case.set_classname(report.run.profile.clone());
    case
}

fn bad(kind: NonSuccessKind, name: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(name);
    status
}
