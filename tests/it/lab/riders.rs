//! What riders ask of the lab.

use crate::support::lab::Lab;

#[tokio::test]
async fn a_trip_from_finding_a_bike_to_its_end_with_every_request_repeated() {
    let lab = Lab::start(&[]);
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
    assert_eq!(lab.get(&trip).await.1["state"], "started");
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
