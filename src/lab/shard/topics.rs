//! Topics and filters: which are valid, which match, who has subscribed, and what is retained.

use super::mailbox::Message;
use super::packet::Wish;
use std::collections::BTreeMap;
use tokio::time::Instant;

/// Messages that are retained at most; one more is not kept.
const MOST_RETAINED: usize = 10_000;

/// Whether a message may be published to it.
pub fn valid_topic(topic: &str) -> bool {
    !topic.is_empty() && !topic.contains(['+', '#'])
}

/// Whether it may be subscribed to.
pub fn valid_filter(filter: &str) -> bool {
    let levels: Vec<&str> = filter.split('/').collect();
    let last = levels.len() - 1;
    !filter.is_empty()
        && levels.iter().enumerate().all(|(at, level)| match *level {
            "#" => at == last,
            "+" => true,
            other => !other.contains(['+', '#']),
        })
}

/// Whether the filter takes in the topic.
pub fn matches(topic: &str, filter: &str) -> bool {
    if topic.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    let (mut levels, mut wanted) = (topic.split('/'), filter.split('/'));
    loop {
        match (levels.next(), wanted.next()) {
            (_, Some("#")) | (None, None) => return true,
            (Some(_), Some("+")) => {}
            (Some(level), Some(want)) if level == want => {}
            _ => return false,
        }
    }
}

/// Who wants what, beside hubs and their own commands.
pub struct Subscription {
    pub subscriber: String,
    pub wish: Wish,
}

/// The last message of each topic that was to be kept.
#[derive(Default)]
pub struct Retained(BTreeMap<String, Message>);

impl Retained {
    /// Keeps the message for its topic; an empty one takes the topic's message away.
    pub fn keep(&mut self, message: Message) {
        if message.payload.is_empty() {
            self.0.remove(&message.topic);
        } else if self.0.len() < MOST_RETAINED || self.0.contains_key(&message.topic) {
            self.0.insert(message.topic.clone(), message);
        }
    }

    /// The messages that a new subscriber to the filter gets.
    pub fn matching(&self, filter: &str) -> Vec<Message> {
        let now = Instant::now();
        let live = |message: &&Message| message.expires.is_none_or(|expires| expires > now);
        self.0
            .iter()
            .filter(|(topic, _)| matches(topic, filter))
            .map(|(_, message)| message)
            .filter(live)
            .cloned()
            .collect()
    }
}
