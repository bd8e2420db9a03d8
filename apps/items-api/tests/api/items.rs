//! The rules of the endpoints, the same whatever keeps the items, metered or not.

use crate::client::send;
use crate::service::Service;
use serde_json::{Value, json};

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
    a_new_item_without_a_value_is_false,
    the_list_is_empty_at_first_and_then_ordered_by_id,
    put_and_patch_change_an_item,
    a_change_without_a_value_leaves_the_item_as_it_is,
    a_deleted_item_is_gone_and_its_id_is_not_given_again,
    a_missing_item_is_404_and_the_answer_names_it,
    an_id_that_is_not_an_integer_is_404,
    a_malformed_body_is_422_and_the_answer_says_what_is_wrong,
    another_content_type_is_422,
    a_content_type_with_parameters_is_json_too,
    fields_that_are_not_known_are_left_alone,
    a_body_above_two_megabytes_is_413,
    an_unknown_method_is_405_and_allow_names_the_known_ones,
    a_path_that_is_not_there_is_404_and_says_where_the_items_are,
    a_request_reads_the_writes_of_the_one_before,
}

fn a_created_item_has_a_location_and_is_shown_there(service: &Service) {
    let created = service.send_json("POST /api/items", TRUE);
    assert_eq!(created.status, 201);
    assert_eq!(created.json(), json!({ "data": { "id": 1, "value": true } }));
    assert_eq!(created.header("location"), "/api/items/1");
    let shown = service.send("GET /api/items/1");
    assert_eq!(shown.status, 200);
    assert_eq!(shown.body, r#"{"data":{"id":1,"value":true}}"#);
}

fn a_new_item_without_a_value_is_false(service: &Service) {
    let created = service.send_json("POST /api/items", r#"{"item":{}}"#);
    assert_eq!(created.status, 201);
    assert_eq!(created.json()["data"]["value"], Value::Bool(false));
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

fn put_and_patch_change_an_item(service: &Service) {
    let id = service.create();
    for (method, body, value) in [("PUT", FALSE, false), ("PATCH", TRUE, true)] {
        let line = format!("{method} /api/items/{id}");
        let changed = service.send_json(&line, body);
        assert_eq!(changed.status, 200, "{line}");
        assert_eq!(changed.json(), json!({ "data": { "id": id, "value": value } }));
        let shown = service.send(&format!("GET /api/items/{id}"));
        assert_eq!(shown.json(), changed.json());
    }
}

fn a_change_without_a_value_leaves_the_item_as_it_is(service: &Service) {
    let id = service.create();
    for method in ["PUT", "PATCH"] {
        let kept = service.send_json(&format!("{method} /api/items/{id}"), r#"{"item":{}}"#);
        assert_eq!(kept.status, 200);
        assert_eq!(kept.json(), json!({ "data": { "id": id, "value": true } }));
    }
}

fn a_deleted_item_is_gone_and_its_id_is_not_given_again(service: &Service) {
    let id = service.create();
    let deleted = service.send(&format!("DELETE /api/items/{id}"));
    assert_eq!((deleted.status, deleted.body.as_str()), (204, ""));
    assert_eq!(service.send(&format!("GET /api/items/{id}")).status, 404);
    assert_eq!(service.create(), id + 1);
}

fn a_missing_item_is_404_and_the_answer_names_it(service: &Service) {
    for method in ["GET", "DELETE"] {
        let answer = service.send(&format!("{method} /api/items/77"));
        assert_eq!(answer.status, 404, "{method}");
        assert_eq!(answer.error(), "there is no item 77");
    }
    for (method, body) in [("PUT", TRUE), ("PATCH", FALSE), ("PUT", r#"{"item":{}}"#)] {
        let answer = service.send_json(&format!("{method} /api/items/77"), body);
        assert_eq!(answer.status, 404, "{method}");
        assert_eq!(answer.error(), "there is no item 77");
    }
}

fn an_id_that_is_not_an_integer_is_404(service: &Service) {
    service.create();
    for id in ["one", "1.0", "1e0", "99999999999999999999", "%31x", "%ff", "-"] {
        for method in ["GET", "DELETE"] {
            let answer = service.send(&format!("{method} /api/items/{id}"));
            assert_eq!(answer.status, 404, "{method} {id}");
            assert!(answer.error().starts_with("there is no item "));
        }
        let answer = service.send_json(&format!("PUT /api/items/{id}"), TRUE);
        assert_eq!(answer.status, 404, "PUT {id}");
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

fn another_content_type_is_422(service: &Service) {
    for content_type in ["text/plain", "application/x-www-form-urlencoded", "nonsense"] {
        let answer = send(service.items, "POST /api/items", Some((content_type, TRUE)));
        assert_eq!(answer.status, 422, "{content_type}");
        assert!(answer.error().contains("application/json"));
    }
    let without = service.send("POST /api/items");
    assert_eq!(without.status, 422);
    assert!(without.error().contains("application/json"));
}

fn a_content_type_with_parameters_is_json_too(service: &Service) {
    for content_type in ["application/json; charset=utf-8", "application/vnd.items+json"] {
        let answer = send(service.items, "POST /api/items", Some((content_type, TRUE)));
        assert_eq!(answer.status, 201, "{content_type}");
    }
}

fn fields_that_are_not_known_are_left_alone(service: &Service) {
    let body = r#"{"item":{"value":true,"colour":"red"},"extra":1}"#;
    assert_eq!(service.send_json("POST /api/items", body).status, 201);
}

fn a_body_above_two_megabytes_is_413(service: &Service) {
    let fits = format!(r#"{{"item":{{"value":true}},"pad":"{}"}}"#, "x".repeat(1_000_000));
    assert_eq!(service.send_json("POST /api/items", &fits).status, 201);
    let too_large = format!(r#"{{"item":{{"value":true}},"pad":"{}"}}"#, "x".repeat(2_100_000));
    let answer = service.send_json("POST /api/items", &too_large);
    assert_eq!(answer.status, 413);
    answer.error();
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
