//! What exactly was wrong with a request, told beside how it ended.

use crate::event::{Event, Outcome, Sink};

/// Tells `event`; if it is the end of an attempt and `why` says what exactly was wrong with it, that too.
pub(super) fn tell(sink: &Sink, event: Event, why: Option<&str>) {
    let explained = match (&event, why) {
        (
            Event::Answered {
                operation,
                at,
                outcome: outcome @ Outcome::Tls(_),
                ..
            },
            Some(text),
        ) => Some(Event::Explained {
            operation: *operation,
            outcome: *outcome,
            text: text.to_owned(),
            at: *at,
        }),
        _ => None,
    };
    sink(event);
    if let Some(explained) = explained {
        sink(explained);
    }
}
