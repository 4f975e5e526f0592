//! What riders ask of the lab.

use crate::support::lab::Lab;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn a_trip_from_finding_a_bike_to_its_end_with_every_request_repeated() {
    let lab = Lab::start(&["--set", "unlock_ms=2000"]);
    let (status, near) = lab.get("/v1/bikes/near?rider=000001").await;
    assert_eq!(status, 200);
    let bike = near["bikes"][0]["id"].as_str().unwrap().to_owned();
    let unlock = format!("/v1/bikes/{bike}/unlock");
    let (status, first) = lab.post_once(&unlock, "intent-1").await;
    assert_eq!(status, 202);
    assert_eq!(
        lab.post_once(&unlock, "intent-1").await,
        (202, first.clone()),
        "the same intent is the same trip"
    );
    assert_eq!(
        lab.post_once(&unlock, "intent-2").await.0,
        409,
        "the bike is taken"
    );
    assert_eq!(
        lab.post_once(&unlock, "intent-2").await.0,
        409,
        "and stays refused for that intent"
    );
    let trip = format!("/v1/trips/{}", first["trip_id"].as_str().unwrap());
    assert_eq!(lab.get(&trip).await.1["state"], "starting");
    let opens = tokio::time::timeout(Duration::from_secs(10), async {
        while lab.get(&trip).await.1["state"] != "started" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    opens.await.expect("the lock opens");
    let (_, near) = lab.get("/v1/bikes/near?rider=000001").await;
    assert_ne!(near["bikes"][0]["id"], bike, "a taken bike is not offered");
    let end = format!("{trip}/end");
    assert_eq!(lab.post_once(&end, "e").await.0, 200);
    assert_eq!(lab.post_once(&end, "e").await.0, 200, "ended is ended");
    assert_eq!(lab.get(&trip).await.1["state"], "ended");
    assert_eq!(
        lab.post_once(&unlock, "intent-3").await.0,
        202,
        "the bike is free again"
    );
    assert_eq!(
        lab.post_once(&unlock, "intent-1").await.0,
        202,
        "a late repeat of the first intent is still answered by its trip"
    );
    assert_eq!(lab.get("/v1/trips/none").await.0, 404);
    assert_eq!(lab.post_once("/v1/trips/none/end", "e").await.0, 404);
    assert_eq!(lab.post_once("/v1/bikes/none/unlock", "e").await.0, 409);
}

#[tokio::test]
async fn each_request_takes_one_connection_once() {
    let lab = Lab::start(&[]);
    for number in 0..5 {
        let (_, near) = lab.get(&format!("/v1/bikes/near?rider={number}")).await;
        let bike = near["bikes"][0]["id"].as_str().unwrap();
        let (_, trip) = lab
            .post_once(&format!("/v1/bikes/{bike}/unlock"), &number.to_string())
            .await;
        let trip = trip["trip_id"].as_str().unwrap();
        lab.get(&format!("/v1/trips/{trip}")).await;
        lab.post_once(&format!("/v1/trips/{trip}/end"), "e").await;
    }
    let acquires = lab.stats().await["pool"]["acquires"].clone();
    for endpoint in ["near", "unlock", "trip", "end"] {
        assert_eq!(acquires[endpoint], 5, "{endpoint}: {acquires}");
    }
}

#[tokio::test]
async fn who_logs_in_gets_a_token_that_is_asked_for_from_then_on() {
    let lab = Lab::start(&[]);
    let right = json!({ "email": "rider-7@bikes.example", "password": "pass-7" });
    let wrong = json!({ "email": "rider-7@bikes.example", "password": "pass-8" });
    assert_eq!(lab.post("/v1/login", wrong).await.0, 401);
    let (status, answer) = lab.post("/v1/login", right).await;
    assert_eq!(status, 200);
    let token = answer["access_token"].as_str().unwrap();
    let station = "/v1/stations/station-3";
    let (status, found) = lab.get_as(station, token).await;
    assert_eq!(status, 200);
    assert_eq!(found["bikes"].as_array().unwrap().len(), 5);
    assert_eq!(lab.get_as(station, "another").await.0, 401);
    assert_eq!(lab.get("/v1/stations/station-41").await.0, 404);
    assert_eq!(lab.stats().await["counts"]["logins"], 1);
}

#[tokio::test]
async fn a_second_trip_of_the_same_rider_is_a_duplicate_and_open_trips_are_counted() {
    let lab = Lab::start(&[]);
    let unlock = |bike: u32, rider: &'static str| {
        let path = format!("/v1/bikes/bike-{bike:06}/unlock");
        let lab = &lab;
        async move { lab.post_as(&path, rider).await }
    };
    let first = unlock(1, "anna").await;
    assert_eq!(first.0, 202);
    assert_eq!(
        unlock(1, "anna").await.0,
        409,
        "the bike is taken, also for her"
    );
    assert_eq!(
        unlock(2, "anna").await.0,
        202,
        "without a key it is another trip"
    );
    assert_eq!(unlock(3, "ben").await.0, 202);
    let counts = |stats: &serde_json::Value| {
        let of = |name: &str| stats["counts"][name].as_u64().unwrap();
        (
            of("trips_started"),
            of("trips_duplicated"),
            stats["trips_open"].as_u64().unwrap(),
        )
    };
    assert_eq!(counts(&lab.stats().await), (3, 1, 3));
    let end = format!("/v1/trips/{}/end", first.1["trip_id"].as_str().unwrap());
    assert_eq!(lab.post_once(&end, "e").await.0, 200);
    assert_eq!(lab.post_once(&end, "e").await.0, 200);
    assert_eq!(counts(&lab.stats().await), (3, 1, 2));
    assert!(lab.metrics().await.contains("\nlab_trips_open 2\n"));
}
