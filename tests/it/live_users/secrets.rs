//! Secrets are read from where the target file says, and found in no text.

use proptest::prelude::*;
use rushhour::net::secrets::Secrets;
use rushhour::plan::target::SecretSource;
use std::collections::BTreeMap;
use std::fs;

fn from_file(name: &str, value: &str) -> Secrets {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("secret");
    fs::write(&path, value).unwrap();
    let sources = BTreeMap::from([(name.to_owned(), SecretSource::File(path))]);
    Secrets::read(&sources).expect("the file is there")
}

#[test]
fn the_newline_that_editors_add_is_no_part_of_the_value() {
    for written in ["sesame-42", "sesame-42\n", "sesame-42\r\n"] {
        assert_eq!(from_file("door", written).value("door"), Some("sesame-42"));
    }
    assert_eq!(
        from_file("door", "sesame\n\n").value("door"),
        Some("sesame\n")
    );
}

#[test]
fn all_that_is_missing_is_said_at_once_and_no_value_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let short = directory.path().join("short");
    fs::write(&short, "zq7").unwrap();
    let sources = BTreeMap::from([
        (
            "a".to_owned(),
            SecretSource::Env("RUSHHOUR_TEST_NOT_SET".to_owned()),
        ),
        (
            "b".to_owned(),
            SecretSource::File(directory.path().join("none")),
        ),
        ("c".to_owned(), SecretSource::File(short)),
    ]);
    let errors = Secrets::read(&sources).unwrap_err();
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts[0],
        "secret `a`: the environment variable RUSHHOUR_TEST_NOT_SET is not set; set it, or use `file:`"
    );
    assert!(
        texts[1].starts_with("secret `b`: can't read "),
        "{}",
        texts[1]
    );
    assert!(
        texts[2].starts_with("secret `c`: the value in "),
        "{}",
        texts[2]
    );
    assert!(!texts.concat().contains("zq7"));
}

#[test]
fn every_form_that_a_value_takes_on_its_way_is_replaced() {
    let value = r#"p@ss/w"zork&+é\ 1"#;
    let secrets = from_file("login", value);
    let redactor = secrets.redactor();
    let header = |text: &str| {
        let value = reqwest::Client::new()
            .get("http://localhost/")
            .basic_auth("rushhour", Some(text))
            .build()
            .unwrap();
        value.headers()["authorization"]
            .to_str()
            .unwrap()
            .to_owned()
    };
    let mut address = url::Url::parse("http://host/").unwrap();
    address.set_password(Some(value)).unwrap();
    address.query_pairs_mut().append_pair("token", value);
    let texts = [
        format!("a plain {value} in a line"),
        serde_json::json!({ "password": value }).to_string(),
        format!("{value:?}"),
        address.to_string(),
        quick_junit::XmlString::new(value)
            .as_str()
            .replace('&', "&amp;")
            .replace('"', "&quot;"),
    ];
    for text in texts {
        let clean = redactor.redact(&text);
        assert!(clean.contains("<secret.login>"), "{clean}");
        assert!(!clean.contains("zork"), "{clean}");
    }
    // In Basic authentication the value shares its first and last base64 character with its neighbours.
    let clean = redactor.redact(&header(value)).into_owned();
    assert!(clean.contains("<secret.login>"), "{clean}");
    assert!(
        clean.len() < "Basic cnVzaGhvdXI6 <secret.login> ==".len(),
        "{clean}"
    );
    assert_eq!(format!("{secrets:?}"), r#"{"login"}"#);
}

proptest! {
    #[test]
    fn no_text_keeps_a_value_and_the_rest_stays(
        value in "[ -~é]{6,20}",
        before in "[a-z ]{0,10}",
        after in "[a-z ]{0,10}",
    ) {
        prop_assume!(!"<secret.key>".contains(&value));
        let redactor = from_file("key", &value).redactor();
        let clean = redactor.redact(&format!("{before}{value}{after}")).into_owned();
        prop_assert!(!clean.contains(&value));
        let words = "nothing of the kind";
        prop_assume!(!words.contains(&value));
        prop_assert_eq!(redactor.redact(words), words);
    }
}
