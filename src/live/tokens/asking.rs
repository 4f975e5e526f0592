//! How one token is asked for: one request, one operation of the run.

use super::TIMEOUT;
use crate::event::{Event, Offset, OperationId, Outcome, Sink};
use crate::live::explain::tell;
use crate::net::clock::Clock;
use crate::net::http::{Answer, Http};
use crate::plan::token::{Lasts, TokenSpec};
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;
use std::time::Duration;

/// Asks for tokens of one kind.
pub(super) struct Asking {
    pub spec: TokenSpec,
    pub operation: OperationId,
    pub http: Http,
    pub clock: Clock,
    pub sink: Sink,
}

/// What requests carry now.
#[derive(Debug, Clone, Default)]
pub(super) struct Current {
    pub text: String,
    /// Counts renewals.
    pub number: u64,
    /// `None`: for ever.
    pub until: Option<Offset>,
}

/// What appends the value of a name, and answers whether it knew it.
pub(super) type Who<'a> = &'a mut (dyn FnMut(&str, &mut String) -> bool + Send);

impl Asking {
    /// Asks for a token once, with `who` standing for the placeholders of an account; what went wrong in a few words.
    pub async fn ask(&self, due: Offset, who: Who<'_>) -> Result<Current, String> {
        let (operation, started) = (self.operation, self.clock.now());
        (self.sink)(Event::Started {
            operation,
            due,
            at: started,
        });
        (self.sink)(Event::Attempted {
            operation,
            at: started,
        });
        let answer = self.send(who).await;
        let at = self.clock.now();
        let had = self.take(&answer, at);
        let outcome = match &had {
            Ok(_) => Outcome::Ok,
            Err((outcome, _)) => *outcome,
        };
        let answered = Event::Answered {
            operation,
            sent: started,
            at,
            outcome,
        };
        tell(&self.sink, answered, answer.why.as_deref());
        (self.sink)(Event::Finished {
            operation,
            due,
            started,
            at,
            outcome,
            attempts: 1,
        });
        had.map_err(|(_, what)| what)
    }

    async fn send(&self, who: Who<'_>) -> Answer {
        if self.spec.form.is_empty() {
            return self.http.perform(&self.spec.request, who, TIMEOUT).await;
        }
        let Ok(builder) = self.http.prepare(&self.spec.request, who, TIMEOUT) else {
            return Answer::failed(Outcome::NotSent);
        };
        let Some(body) = self.form(who) else {
            return Answer::failed(Outcome::NotSent);
        };
        let builder = builder
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body);
        self.http.receive(builder.send().await).await
    }

    /// The form as it is sent; `None` if a name in it is unknown.
    fn form(&self, who: Who<'_>) -> Option<String> {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        for (name, value) in &self.spec.form {
            let mut text = String::new();
            value.render_into(&mut text, &mut *who).ok()?;
            body.append_pair(name, &text);
        }
        Some(body.finish())
    }

    fn take(&self, answer: &Answer, now: Offset) -> Result<Current, (Outcome, String)> {
        let status = answer
            .result
            .map_err(|outcome| (outcome, answer.in_words(outcome)))?;
        let document = serde_json::from_slice::<Value>(&answer.body).ok();
        if !self.spec.request.answer.is_ok(status) {
            let code = document.as_ref().and_then(error_code);
            let code = code.map_or_else(String::new, |code| format!(" ({code})"));
            return Err((Outcome::Refused(status), format!("answered {status}{code}")));
        }
        let broken = |what: &str| (Outcome::Protocol, format!("answered {status} {what}"));
        let document = document.ok_or_else(|| broken("without JSON"))?;
        let text = self.spec.keep.text(&document);
        let text =
            text.filter(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic()));
        let text = text.ok_or_else(|| broken(&format!("without a token at {}", self.spec.keep)))?;
        let lasts = match &self.spec.lasts {
            Lasts::Fixed(lasts) => Some(*lasts),
            Lasts::Stated(path) => path.text(&document).and_then(|seconds| {
                let seconds = seconds.parse::<f64>().ok()?;
                Duration::try_from_secs_f64(seconds).ok()
            }),
        };
        Ok(Current {
            text,
            number: 0,
            until: lasts.map(|lasts| now.after(lasts)),
        })
    }
}

/// The code by which OAuth 2 says what is wrong (RFC 6749 §5.2), if it looks like one.
fn error_code(document: &Value) -> Option<&str> {
    let code = document.get("error")?.as_str()?;
    let is_code = code.len() <= 40 && code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    is_code.then_some(code)
}
