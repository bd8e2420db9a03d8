//! The rules of the endpoints, the same whatever keeps the items, metered or not.

use crate::client::{json as body_of, send};
use crate::service::Service;
use serde_json::json;

const TRUE: &str = r#"{"item":{"value":true}}"#;
const FALSE: &str = r#"{"item":{"value":false}}"#;

/// Each claim about a service on SQLite, on PostgreSQL, and on one without meters.
macro_rules! claims {
    ($($claim:ident,)*) => {
        mod on_sqlite {
            $(#[test] fn $claim() { super::$claim(&crate::service::Service::start()) })*
        }
        mod on_postgres {
            $(#[test] fn $claim() { super::$claim(&crate::service::Service::on_postgres()) })*
        }
        mod unmetered {
            $(#[test] fn $claim() { super::$claim(&crate::service::Service::unmetered()) })*
        }
    };
}

claims! {
    a_created_item_has_a_location_and_is_shown_there,
    the_list_is_empty_at_first_and_then_ordered_by_id,
    put_and_patch_change_an_item_unless_the_body_has_no_value,
    a_deleted_item_is_gone_and_its_id_is_not_given_again,
    an_item_that_is_not_there_is_404_and_the_answer_names_it,
    a_malformed_body_is_422_and_the_answer_says_what_is_wrong,
    a_body_of_another_content_type_is_422,
    a_body_above_two_megabytes_is_413,
    an_unknown_method_is_405_and_allow_names_the_known_ones,
    a_path_that_is_not_there_is_404_and_says_where_the_items_are,
    a_request_reads_the_writes_of_the_one_before,
}

fn a_created_item_has_a_location_and_is_shown_there(service: &Service) {
    for (id, body, value) in [(1, TRUE, true), (2, r#"{"item":{}}"#, false)] {
        let created = service.send_json("POST /api/items", body);
        assert_eq!(created.status, 201, "{body}");
        let expected = json!({ "data": { "id": id, "value": value } });
        assert_eq!(created.json(), expected, "{body}");
        assert_eq!(created.header("location"), format!("/api/items/{id}"));
        let shown = service.send(&format!("GET /api/items/{id}"));
        let expected = format!(r#"{{"data":{{"id":{id},"value":{value}}}}}"#);
        assert_eq!((shown.status, shown.body), (200, expected));
    }
}

fn the_list_is_empty_at_first_and_then_ordered_by_id(service: &Service) {
    let empty = service.send("GET /api/items");
    assert_eq!((empty.status, empty.json()), (200, json!({ "data": [] })));
    for body in [TRUE, FALSE, TRUE] {
        service.send_json("POST /api/items", body);
    }
    service.send_json("PUT /api/items/1", FALSE);
    let list = service.send("GET /api/items");
    assert_eq!(
        list.json(),
        json!({ "data": [
            { "id": 1, "value": false },
            { "id": 2, "value": false },
            { "id": 3, "value": true },
        ] })
    );
}

fn put_and_patch_change_an_item_unless_the_body_has_no_value(service: &Service) {
    let id = service.create();
    let nothing = r#"{"item":{}}"#;
    for (method, body, value) in [
        ("PUT", nothing, true),
        ("PATCH", nothing, true),
        ("PUT", FALSE, false),
        ("PATCH", TRUE, true),
    ] {
        let changed = service.send_json(&format!("{method} /api/items/{id}"), body);
        assert_eq!(changed.status, 200, "{method} {body}");
        let expected = json!({ "data": { "id": id, "value": value } });
        assert_eq!(changed.json(), expected, "{method} {body}");
        assert_eq!(service.send(&format!("GET /api/items/{id}")).json(), expected);
    }
}

fn a_deleted_item_is_gone_and_its_id_is_not_given_again(service: &Service) {
    let id = service.create();
    let deleted = service.send(&format!("DELETE /api/items/{id}"));
    assert_eq!((deleted.status, deleted.body.as_str()), (204, ""));
    assert_eq!(service.send(&format!("GET /api/items/{id}")).status, 404);
    assert_eq!(service.create(), id + 1);
}

fn an_item_that_is_not_there_is_404_and_the_answer_names_it(service: &Service) {
    service.create();
    for (id, name) in [
        ("77", "77"),
        ("one", "one"),
        ("1.0", "1.0"),
        ("1e0", "1e0"),
        ("99999999999999999999", "99999999999999999999"),
        ("%31x", "1x"),
        ("%ff", "of that name"),
        ("-", "-"),
    ] {
        for (method, body) in [
            ("GET", None),
            ("DELETE", None),
            ("PUT", body_of(TRUE)),
            ("PATCH", body_of(FALSE)),
            ("PUT", body_of(r#"{"item":{}}"#)),
        ] {
            let answer = send(service.items, &format!("{method} /api/items/{id}"), body);
            let expected = (404, format!("there is no item {name}"));
            assert_eq!((answer.status, answer.error()), expected, "{method} {id} {body:?}");
        }
    }
}

fn a_malformed_body_is_422_and_the_answer_says_what_is_wrong(service: &Service) {
    let id = service.create();
    let cases = [
        ("", "EOF"),
        ("{", "EOF"),
        ("nonsense", "expected"),
        (r#"{"item":{"value":true}"#, "EOF"),
        ("{}", "missing field `item`"),
        (r#"{"thing":{"value":true}}"#, "missing field `item`"),
        (r#"{"item":7}"#, "item: invalid type: integer `7`"),
        (r#"{"item":null}"#, "item: invalid type: null"),
        (r#"{"item":{"value":"yes"}}"#, "item.value: invalid type: string \"yes\""),
        (r#"{"item":{"value":1}}"#, "item.value: invalid type: integer `1`"),
        (r#"{"item":{"value":null}}"#, "item.value: invalid type: null"),
        (r#"{"item":{"value":true}} more"#, "trailing characters"),
    ];
    for line in ["POST /api/items", &format!("PUT /api/items/{id}"), "PATCH /api/items/1"] {
        for (body, wrong) in cases {
            let answer = service.send_json(line, body);
            assert_eq!(answer.status, 422, "{line} {body}");
            let message = answer.error();
            assert!(message.contains(wrong), "{line} {body}: {message}");
            assert!(message.contains(r#"{"item":{"value":true}}"#), "{message}");
        }
    }
    assert_eq!(
        service.send("GET /api/items").json(),
        json!({ "data": [{ "id": id, "value": true }] })
    );
}

fn a_body_of_another_content_type_is_422(service: &Service) {
    for (content_type, status) in [
        (Some("text/plain"), 422),
        (Some("application/x-www-form-urlencoded"), 422),
        (Some("nonsense"), 422),
        (None, 422),
        (Some("application/json; charset=utf-8"), 201),
        (Some("application/vnd.items+json"), 201),
    ] {
        let body = content_type.map(|content_type| (content_type, TRUE));
        let answer = send(service.items, "POST /api/items", body);
        assert_eq!(answer.status, status, "{content_type:?}");
        if status == 422 {
            assert!(answer.error().contains("application/json"), "{content_type:?}");
        }
    }
}

fn a_body_above_two_megabytes_is_413(service: &Service) {
    for (pad, status) in [(1_000_000, 201), (2_100_000, 413)] {
        // Fields that are not known are left alone.
        let item = r#""item":{"value":true,"colour":"red"}"#;
        let body = format!(r#"{{{item},"pad":"{}"}}"#, "x".repeat(pad));
        let answer = service.send_json("POST /api/items", &body);
        assert_eq!(answer.status, status, "{pad}");
        if status == 413 {
            answer.error();
        }
    }
}

fn an_unknown_method_is_405_and_allow_names_the_known_ones(service: &Service) {
    let id = service.create();
    let item = format!("/api/items/{id}");
    for (method, path, allowed) in [
        ("PUT", "/api/items", &["GET", "HEAD", "POST"][..]),
        ("DELETE", "/api/items", &["GET", "HEAD", "POST"]),
        ("OPTIONS", "/api/items", &["GET", "HEAD", "POST"]),
        ("POST", &item, &["GET", "HEAD", "PUT", "PATCH", "DELETE"]),
        ("BREW", &item, &["GET", "HEAD", "PUT", "PATCH", "DELETE"]),
    ] {
        let answer = service.send(&format!("{method} {path}"));
        assert_eq!(answer.status, 405, "{method} {path}");
        let mut found: Vec<_> = answer.header("allow").split(',').map(str::trim).collect();
        let mut expected = allowed.to_vec();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{method} {path}");
        assert!(answer.error().contains("Allow"), "{method} {path}");
    }
}

fn a_path_that_is_not_there_is_404_and_says_where_the_items_are(service: &Service) {
    for path in ["/", "/api", "/api/items/", "/api/items/1/more", "/metrics", "/study/reset"] {
        let answer = service.send(&format!("GET {path}"));
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.error().contains("/api/items"), "{path}");
    }
}

fn a_request_reads_the_writes_of_the_one_before(service: &Service) {
    for _ in 0..50 {
        let id = service.create();
        let path = format!("/api/items/{id}");
        assert_eq!(service.send(&format!("GET {path}")).status, 200);
        assert_eq!(service.send_json(&format!("PUT {path}"), FALSE).status, 200);
        assert_eq!(service.send(&format!("GET {path}")).json()["data"]["value"], json!(false));
        assert_eq!(service.send(&format!("DELETE {path}")).status, 204);
        assert_eq!(service.send(&format!("GET {path}")).status, 404);
    }
}
