//! HTTP/1 as far as the proxy reads it: where requests begin and end (RFC 9112).
//!
//! Pure. It takes hold of a connection with the first bytes that begin a request, so a fault may come to one that stands.

use super::queue::Queue;
use super::toxics::Progress;

/// A head that is longer is none that the proxy reads.
const LONGEST_HEAD: usize = 64 * 1024;
const METHODS: [&str; 8] = [
    "GET ", "POST ", "PUT ", "PATCH ", "DELETE ", "HEAD ", "OPTIONS ", "TRACE ",
];
/// A size line of a chunk with its extensions.
const LONGEST_SIZE_LINE: u32 = 8 * 1024;

/// Where the requests of a connection stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Requests {
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    /// Nothing that begins a request was seen yet.
    #[default]
    Elsewhere,
    Head,
    Body(u64),
    Chunked(Chunk),
}

/// Within a body of chunks (RFC 9112, §7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chunk {
    Size {
        size: u64,
        line: u32,
        counts: bool,
    },
    /// With the line end that follows.
    Data(u64),
    Trailer {
        line: u32,
    },
}

/// What a head says of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    body: Body,
    /// The connection goes on after the answer.
    pub keeps: bool,
    /// The answer has no body.
    pub asks_for_head: bool,
    /// The client sends the body only when it is told to.
    pub expects: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    Length(u64),
    Chunked,
}

/// What stands at the front of the bytes that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// A whole head of so many bytes.
    Head(Head, usize),
    /// So many bytes of a request's body.
    Body(usize),
    /// No request.
    Foreign,
    /// More must come.
    Wait,
}

/// Looks at the front of the queue, which is not empty.
pub(super) fn see(progress: &mut Progress, queue: &mut Queue) -> Seen {
    loop {
        let Some(front) = queue.front() else {
            return Seen::Wait;
        };
        if !matches!(progress.requests.place, Place::Elsewhere | Place::Head) {
            return Seen::Body(progress.requests.body(&front.bytes));
        }
        let begins = begins_request(&front.bytes);
        if let (true, Some((head, bytes))) = (begins, head(&front.bytes)) {
            progress.foreign = false;
            return Seen::Head(head, bytes);
        }
        if !begins || front.bytes.len() > LONGEST_HEAD {
            progress.requests.place = Place::Elsewhere;
            progress.foreign = true;
            return Seen::Foreign;
        }
        if !queue.merge_front() {
            // The rest of a head that will never come belongs to the target.
            return match queue.ended() {
                Some(_) => Seen::Foreign,
                None => Seen::Wait,
            };
        }
    }
}

/// Whether these bytes begin a request, or may.
fn begins_request(bytes: &[u8]) -> bool {
    METHODS.iter().any(|method| {
        let known = method.len().min(bytes.len());
        bytes[..known] == method.as_bytes()[..known]
    })
}

/// The head at the front with its length; `None` if it is not whole, or none of HTTP/1.
fn head(bytes: &[u8]) -> Option<(Head, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let mut lines = text.split("\r\n");
    let first = lines.next()?;
    let newer = first.ends_with(" http/1.1");
    if !newer && !first.ends_with(" http/1.0") {
        return None;
    }
    let mut head = Head {
        body: Body::Length(0),
        keeps: newer,
        asks_for_head: first.starts_with("head "),
        expects: false,
    };
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        match name {
            // RFC 9112, §6.3: chunks overrule a length.
            "transfer-encoding" if value.ends_with("chunked") => head.body = Body::Chunked,
            "content-length" if head.body != Body::Chunked => {
                head.body = Body::Length(value.parse().ok()?);
            }
            "connection" if value.contains("close") => head.keeps = false,
            "connection" if value.contains("keep-alive") => head.keeps = true,
            "expect" => head.expects = value == "100-continue",
            _ => {}
        }
    }
    Some((head, end))
}

impl Requests {
    /// A head has passed.
    pub(super) fn begin(&mut self, head: &Head) {
        self.place = match head.body {
            Body::Length(0) => Place::Head,
            Body::Length(bytes) => Place::Body(bytes),
            Body::Chunked => Place::Chunked(Chunk::size()),
        };
    }

    /// Whether the next byte begins a head.
    pub(super) fn at_head(&self) -> bool {
        self.place == Place::Head
    }

    /// Passes over the bytes that belong to the body; gives their number.
    fn body(&mut self, bytes: &[u8]) -> usize {
        match self.place {
            Place::Body(left) => {
                let taken = left.min(bytes.len() as u64);
                self.place = match left - taken {
                    0 => Place::Head,
                    left => Place::Body(left),
                };
                usize::try_from(taken).unwrap_or(bytes.len())
            }
            Place::Chunked(mut chunk) => {
                let mut passed = 0;
                while passed < bytes.len() {
                    let (taken, next) = chunk.pass(&bytes[passed..]);
                    passed += taken;
                    let Some(next) = next else {
                        self.place = Place::Head;
                        return passed;
                    };
                    chunk = next;
                }
                self.place = Place::Chunked(chunk);
                passed
            }
            Place::Head | Place::Elsewhere => 0,
        }
    }
}

impl Chunk {
    fn size() -> Chunk {
        Chunk::Size {
            size: 0,
            line: 0,
            counts: true,
        }
    }

    /// Passes over the next bytes, of which there is one at least; `None` after the last of the body.
    fn pass(self, bytes: &[u8]) -> (usize, Option<Chunk>) {
        match self {
            Chunk::Data(left) => {
                let taken = left.min(bytes.len() as u64);
                let next = match left - taken {
                    0 => Chunk::size(),
                    left => Chunk::Data(left),
                };
                (usize::try_from(taken).unwrap_or(bytes.len()), Some(next))
            }
            Chunk::Size { size, line, counts } => {
                let next = match bytes[0] {
                    b'\n' if size == 0 => Chunk::Trailer { line: 0 },
                    b'\n' => Chunk::Data(size.saturating_add(2)),
                    // Whatever this is, the target will not read it as a body either.
                    _ if line > LONGEST_SIZE_LINE => return (1, None),
                    byte => match char::from(byte).to_digit(16).filter(|_| counts) {
                        Some(digit) => Chunk::Size {
                            size: size.saturating_mul(16).saturating_add(u64::from(digit)),
                            line: line + 1,
                            counts,
                        },
                        None => Chunk::Size {
                            size,
                            line: line + 1,
                            counts: false,
                        },
                    },
                };
                (1, Some(next))
            }
            Chunk::Trailer { line } => match bytes[0] {
                b'\n' if line == 0 => (1, None),
                b'\n' => (1, Some(Chunk::Trailer { line: 0 })),
                b'\r' => (1, Some(Chunk::Trailer { line })),
                _ => (
                    1,
                    Some(Chunk::Trailer {
                        line: line.saturating_add(1),
                    }),
                ),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, Requests, head};

    #[test]
    fn finds_the_end_of_every_body() {
        let bodies: [(&str, &str); 4] = [
            ("content-length: 5", "hello"),
            ("Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n"),
            (
                "transfer-encoding: chunked",
                "A;x=1\r\n0123456789\r\n0\r\na: b\r\n\r\n",
            ),
            ("x: y", ""),
        ];
        for (header, body) in bodies {
            let text =
                format!("POST /a HTTP/1.1\r\nhost: b\r\n{header}\r\n\r\n{body}GET / HTTP/1.1\r\n");
            let (head, bytes) = head(text.as_bytes()).expect("a head");
            for piece in 1..=text.len() {
                let mut requests = Requests::default();
                requests.begin(&head);
                let mut passed = bytes;
                while requests.place != Place::Head {
                    let end = text.len().min(passed + piece);
                    passed += requests.body(&text.as_bytes()[passed..end]);
                }
                assert_eq!(
                    &text[passed..],
                    "GET / HTTP/1.1\r\n",
                    "{header}, pieces of {piece}"
                );
            }
        }
    }

    #[test]
    fn reads_what_a_head_says_of_the_connection() {
        let keeps = |text: &str| head(text.as_bytes()).map(|(head, _)| head.keeps);
        assert_eq!(keeps("GET / HTTP/1.1\r\n\r\n"), Some(true));
        assert_eq!(
            keeps("GET / HTTP/1.1\r\nConnection: close\r\n\r\n"),
            Some(false)
        );
        assert_eq!(keeps("GET / HTTP/1.0\r\n\r\n"), Some(false));
        assert_eq!(
            keeps("GET / HTTP/1.0\r\nconnection: Keep-Alive\r\n\r\n"),
            Some(true)
        );
        assert_eq!(keeps("GET / SPDY/3\r\n\r\n"), None);
        assert_eq!(keeps("GET / HTTP/1.1\r\nhost: a\r\n"), None);
    }
}
