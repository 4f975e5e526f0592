//! A hub played by somebody else's MQTT client.

use crate::support::lab::Lab;
use rumqttc::{AsyncClient, ConnectReturnCode, Event, MqttOptions, Packet, QoS};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Longer than anything here takes; a test that waits so long has failed.
pub const LIMIT: Duration = Duration::from_secs(10);

/// A connected hub that takes commands and answers them when told to.
pub struct Hub {
    pub serial: String,
    client: AsyncClient,
    commands: mpsc::UnboundedReceiver<Value>,
    /// Ends when the connection does.
    connection: JoinHandle<()>,
}

impl Hub {
    /// Connects and subscribes to its commands; gives the hub when the shard has acknowledged both.
    pub async fn connect(lab: &Lab, shard: &str, serial: &str) -> Hub {
        Hub::try_connect(lab, shard, serial)
            .await
            .unwrap_or_else(|code| panic!("{serial} was turned away: {code:?}"))
    }

    /// The same; gives the return code of a CONNACK that turned it away, if there was one.
    pub async fn try_connect(
        lab: &Lab,
        shard: &str,
        serial: &str,
    ) -> Result<Hub, Option<ConnectReturnCode>> {
        let address = lab.address(shard);
        let mut options = MqttOptions::new(serial, "127.0.0.1", address.port());
        options.set_keep_alive(Duration::from_secs(30));
        let (client, mut events) = AsyncClient::new(options, 100);
        client
            .subscribe(format!("d/{serial}/cmd"), QoS::AtLeastOnce)
            .await
            .unwrap();
        loop {
            match tokio::time::timeout(LIMIT, events.poll())
                .await
                .expect("the shard answers")
            {
                Ok(Event::Incoming(Packet::SubAck(_))) => break,
                Ok(_) => {}
                Err(rumqttc::ConnectionError::ConnectionRefused(code)) => return Err(Some(code)),
                Err(_) => return Err(None),
            }
        }
        let (send, commands) = mpsc::unbounded_channel();
        let connection = tokio::spawn(async move {
            while let Ok(event) = events.poll().await {
                if let Event::Incoming(Packet::Publish(publish)) = event {
                    let _ = send.send(serde_json::from_slice(&publish.payload).unwrap());
                }
            }
        });
        Ok(Hub {
            serial: serial.to_owned(),
            client,
            commands,
            connection,
        })
    }

    /// The next command.
    pub async fn command(&mut self) -> Value {
        tokio::time::timeout(LIMIT, self.commands.recv())
            .await
            .expect("a command arrives")
            .expect("the connection stands")
    }

    /// Whether no command comes within the time.
    pub async fn is_quiet(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.commands.recv())
            .await
            .is_err()
    }

    /// Says that it has acted on a command.
    pub async fn answer(&self, id: &str) {
        let topic = format!("d/{}/evt", self.serial);
        let payload = json!({ "id": id, "ok": true }).to_string();
        self.client
            .publish(topic, QoS::AtLeastOnce, false, payload)
            .await
            .unwrap();
    }

    /// Waits until the shard has closed the connection.
    pub async fn closed(&mut self) {
        tokio::time::timeout(LIMIT, &mut self.connection)
            .await
            .expect("the connection ends")
            .unwrap();
    }

    /// Whether the connection stands.
    pub fn is_connected(&self) -> bool {
        !self.connection.is_finished()
    }

    /// Closes the connection without a word.
    pub fn vanish(self) {
        self.connection.abort();
    }
}

/// Waits until what is read satisfies `wanted`, and gives it.
pub async fn until<T: std::fmt::Debug>(
    mut read: impl AsyncFnMut() -> T,
    wanted: impl Fn(&T) -> bool,
) -> T {
    let begun = std::time::Instant::now();
    loop {
        let value = read().await;
        if wanted(&value) {
            return value;
        }
        assert!(
            begun.elapsed() < LIMIT,
            "after {LIMIT:?} it still is {value:?}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
