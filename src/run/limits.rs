//! What a plan needs of this machine against what there is.

use super::Stopped;
use crate::plan::Plan;

pub(super) fn outlook(plan: &Plan) -> Result<String, Stopped> {
    Ok(format!("{plan:?}"))
}
pub(super) fn refuse_shortage(_: &Plan) -> Result<(), Stopped> {
    Ok(())
}
