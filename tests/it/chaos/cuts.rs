//! Connections that are cut, and new ones that are refused, by the proxy's own requests.

use super::stage::{Carried, LIMIT, echo, round_trip};
use rushhour::chaos::proxy::toxics::Kind;
use rushhour::chaos::proxy::wire::{CutConnections, SetFault};
use rushhour::plan::fault::{Connections, CutBy, Way};
use std::io::ErrorKind;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const CONNECTIONS: usize = 300;

fn cut(share: f64, by: CutBy, seed: u64) -> CutConnections {
    CutConnections {
        id: "cut".to_owned(),
        share,
        within_ms: 500,
        by,
        seed,
    }
}

/// Idle connections, all of them known to the proxy.
async fn idle(carried: &Carried) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(carried.address).await.unwrap();
        round_trip(&mut stream).await;
        streams.push(stream);
    }
    streams
}

/// Which connections end, and how; `None` for those that still answer.
async fn fates(streams: Vec<TcpStream>) -> Vec<Option<Result<usize, ErrorKind>>> {
    let mut fates = Vec::new();
    for mut stream in streams {
        if stream.write_all(b"?").await.is_err() {
            fates.push(Some(Err(ErrorKind::ConnectionReset)));
            continue;
        }
        let seen = tokio::time::timeout(LIMIT, stream.read(&mut [0]))
            .await
            .unwrap();
        fates.push(match seen {
            Ok(1) => None,
            Ok(read) => Some(Ok(read)),
            Err(error) => Some(Err(error.kind())),
        });
    }
    fates
}

#[tokio::test(flavor = "multi_thread")]
async fn cuts_exactly_the_share_and_the_same_ones_under_the_same_seed() {
    let mut chosen = Vec::new();
    for seed in [7, 7, 8] {
        let carried = Carried::to(echo().await).await;
        let streams = idle(&carried).await;
        let answer = carried.proxy.cut("db", &cut(0.3, CutBy::Reset, seed)).await;
        let answer = answer.unwrap();
        assert_eq!((answer.chosen, answer.of), (90, CONNECTIONS));
        super::stage::until("all that were chosen are cut", || async {
            let link = &carried.proxy.links().await.unwrap()[0];
            link.cut == 90 && link.open == 210
        })
        .await;
        let fates = fates(streams).await;
        let cut: Vec<usize> = (0..CONNECTIONS)
            .filter(|row| fates[*row].is_some())
            .collect();
        assert_eq!(cut.len(), 90, "nobody else is touched");
        for row in &cut {
            assert_eq!(fates[*row], Some(Err(ErrorKind::ConnectionReset)));
        }
        // A new connection has nothing to do with the cut.
        let mut fresh = TcpStream::connect(carried.address).await.unwrap();
        round_trip(&mut fresh).await;
        chosen.push(cut);
    }
    assert_eq!(chosen[0], chosen[1]);
    assert_ne!(chosen[0], chosen[2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_by_close_is_a_fin_and_one_by_disconnect_says_why_to_mqtt_5() {
    let carried = Carried::to(echo().await).await;
    let mut plain = TcpStream::connect(carried.address).await.unwrap();
    round_trip(&mut plain).await;
    let connects: [&[u8]; 2] = [
        b"\x10\x0d\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x00",
        b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00",
    ];
    let mut speakers = Vec::new();
    for connect in connects {
        let mut stream = TcpStream::connect(carried.address).await.unwrap();
        stream.write_all(connect).await.unwrap();
        stream
            .read_exact(&mut vec![0; connect.len()])
            .await
            .unwrap();
        speakers.push(stream);
    }
    let order = cut(1.0, CutBy::Disconnect(0x8b), 1);
    assert_eq!(carried.proxy.cut("db", &order).await.unwrap().chosen, 3);
    let mut heard = Vec::new();
    for stream in [&mut plain].into_iter().chain(&mut speakers) {
        let mut bytes = Vec::new();
        tokio::time::timeout(LIMIT, stream.read_to_end(&mut bytes))
            .await
            .unwrap()
            .expect("FIN, not RST");
        heard.push(bytes);
    }
    assert_eq!(heard, [vec![], vec![0xe0, 2, 0x8b, 0], vec![]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_new_connections_as_the_system_does_and_lets_standing_ones_go_on() {
    let carried = Carried::to(echo().await).await;
    let mut standing = TcpStream::connect(carried.address).await.unwrap();
    round_trip(&mut standing).await;
    let mut order = SetFault {
        id: "no-entry".to_owned(),
        kind: Kind::Refuse,
        way: Way::Both,
        toxicity: 1.0,
        connections: Connections::All,
        for_ms: None,
        seed: 3,
    };
    for _ in 0..2 {
        carried.proxy.set_fault("db", &order).await.unwrap();
        super::stage::until("the system refuses", || async {
            TcpStream::connect(carried.address)
                .await
                .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
        })
        .await;
        round_trip(&mut standing).await;
        assert!(carried.proxy.remove("no-entry").await.unwrap());
        super::stage::until("it listens again", || async {
            TcpStream::connect(carried.address).await.is_ok()
        })
        .await;
    }
    // A share of them: who is refused is drawn, and learns it by RST.
    order.toxicity = 0.5;
    carried.proxy.set_fault("db", &order).await.unwrap();
    let mut refused = 0;
    for _ in 0..100 {
        let asked = async {
            let mut stream = TcpStream::connect(carried.address).await?;
            stream.write_all(b"?").await?;
            stream.read_exact(&mut [0]).await
        };
        let seen = tokio::time::timeout(Duration::from_secs(5), asked).await;
        refused += u32::from(seen.unwrap().is_err());
    }
    // Four standard deviations of a binomial with 100 draws of one half.
    assert!((30..=70).contains(&refused), "{refused}");
}
