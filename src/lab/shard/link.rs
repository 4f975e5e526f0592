//! The shard's link to the gateway: kept up, and told who is here whenever it stands anew.

use super::Configuration;
use super::broker::Broker;
use crate::lab::messages::{self, ToGateway, ToShard};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

/// Between two attempts to reach the gateway.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Keeps the link for ever.
pub async fn keep(
    configuration: Configuration,
    broker: Arc<Broker>,
    mut queue: mpsc::Receiver<ToGateway>,
) {
    loop {
        if let Ok(stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, configuration.gateway)).await {
            let _ = stream.set_nodelay(true);
            // What was meant for the gateway that is gone says nothing to the new one: it is told who is here.
            while queue.try_recv().is_ok() {}
            let mut first = vec![ToGateway::Hello {
                shard: configuration.number,
            }];
            first.extend(broker.everyone());
            carry(stream, first, &broker, &mut queue).await;
            broker.gateway_lost();
        }
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}

async fn carry(
    stream: TcpStream,
    first: Vec<ToGateway>,
    broker: &Arc<Broker>,
    queue: &mut mpsc::Receiver<ToGateway>,
) {
    let (incoming, mut outgoing) = stream.into_split();
    let mut batch = first;
    let mut bytes = Vec::new();
    let write = async {
        loop {
            bytes.clear();
            for message in batch.drain(..) {
                serde_json::to_writer(&mut bytes, &message).expect("plain data becomes JSON");
                bytes.push(b'\n');
            }
            if outgoing.write_all(&bytes).await.is_err()
                || queue.recv_many(&mut batch, 256).await == 0
            {
                return;
            }
        }
    };
    let read = async {
        let (mut lines, mut line) = (BufReader::new(incoming), Vec::new());
        while let Some(message) = messages::next::<ToShard>(&mut lines, &mut line).await {
            broker.hear(message);
        }
    };
    tokio::select! {
        () = write => {}
        () = read => {}
    }
}
