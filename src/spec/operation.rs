//! Operations of a target file: what is asked for, how it is seen, how it is undone.

use super::journey::{RequestContext, question};
use super::reader::At;
use super::steps::until;
use crate::plan::fault::{OperationSpec, Question};
use crate::plan::target::Request;

/// One entry of `operations:`.
pub(super) fn operation(
    name: &str,
    at: &At<'_>,
    context: &RequestContext<'_>,
) -> Option<OperationSpec> {
    let mut fields = at.fields()?;
    let request = fields.need("do").and_then(|at| asked(&at, context));
    let mut undo = fields.get("undo").map(|at| asked(&at, context));
    let observe = fields.get("observe").map(|at| asks(&at, context));
    let undone_at = fields.get("undone");
    if let (Some(at), None) = (&undone_at, &undo) {
        at.wrong_key(
            "`undone` without `undo`: nothing undoes it",
            "add `undo: { … }`, or leave it out",
        );
    }
    let undone = undone_at.map(|at| asks(&at, context));
    fields.finish(&[]);
    Some(OperationSpec {
        name: name.to_owned(),
        request: request?,
        undo: match undo.take() {
            Some(undo) => Some(undo?),
            None => None,
        },
        observe: match observe {
            Some(observe) => Some(observe?),
            None => None,
        },
        undone: match undone {
            Some(undone) => Some(undone?),
            None => None,
        },
    })
}

fn asked(at: &At<'_>, context: &RequestContext<'_>) -> Option<Request> {
    let mut fields = at.fields()?;
    let request = question(&mut fields, context, &context.names.placeholders(&[]));
    fields.finish(&["every", "until", "give_up", "is"]);
    request
}

/// A request and what its answer must hold.
fn asks(at: &At<'_>, context: &RequestContext<'_>) -> Option<Question> {
    let mut fields = at.fields()?;
    let request = question(&mut fields, context, &context.names.placeholders(&[]));
    let is = fields.get("is").map(|at| until(&at));
    fields.finish(&["every", "until", "give_up"]);
    Some(Question {
        request: request?,
        is: match is {
            Some(is) => is?,
            None => Vec::new(),
        },
    })
}
