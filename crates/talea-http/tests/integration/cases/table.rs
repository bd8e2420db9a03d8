//! The cases, each by every door and under every convention.

use tokio::task::JoinSet;

use crate::cases::case::Client::*;
use crate::cases::case::Outcome::{Aborted, Panicked, TimedOut};
use crate::cases::case::{Body, Case, ask, get, post};
use crate::cases::client;
use crate::cases::door::DOORS;
use crate::cases::handlers::{BODY_LIMIT, BROKEN, LONG, MEMORY, STREAMED};
use crate::cases::series::CONVENTIONS;
use crate::cases::server::Server;

/// Each case is a test; the mix consists of all of them.
macro_rules! cases {
    ($($name:ident: $case:expr;)*) => {
        pub(crate) const CASES: &[(&str, Case)] = &[$((stringify!($name), $case)),*];

        $(
            #[test]
            fn $name() {
                const CASE: Case = $case;
                run(stringify!($name), CASE);
            }
        )*
    };
}

cases! {
    a_buffered_body_is_recorded: get("/memory").status(200).response(Some(MEMORY));
    a_long_buffered_body_is_recorded: get("/long").status(200).response(Some(LONG));
    an_empty_body_has_no_bytes: get("/empty").status(200);
    a_204_has_no_bytes: get("/alone/204").route("/alone/{code}").status(204);
    a_304_has_no_bytes: get("/alone/304").route("/alone/{code}").status(304);
    a_body_that_hyper_does_not_send_has_no_bytes:
        get("/status/304").route("/status/{code}").http1().status(304);
    a_404_of_a_handler_is_recorded_at_its_route:
        get("/status/404").route("/status/{code}").status(404).response(Some(10));
    a_503_is_an_error_that_is_complete:
        get("/status/503").route("/status/{code}").status(503).response(Some(10));
    a_504_is_timed_out:
        get("/status/504").route("/status/{code}").status(504).response(Some(10)).outcome(TimedOut);
    an_unusual_status_is_recorded:
        get("/status/299").route("/status/{code}").status(299).response(Some(10));
    a_head_is_recorded_at_its_get: ask("HEAD", "/memory").method("GET").status(200);
    a_head_of_a_stream_has_no_bytes: ask("HEAD", "/streams").method("GET").status(200);

    a_streamed_response_is_recorded_to_its_end:
        get("/streams").status(200).response(Some(STREAMED));
    a_streamed_response_of_known_length_is_recorded:
        get("/streams-known").status(200).response(Some(STREAMED));
    a_streamed_response_with_trailers_is_complete:
        get("/streams-trailers").status(200).response(Some(STREAMED));
    a_streamed_response_of_declared_length_is_complete:
        get("/streams-declared").status(200).response(Some(STREAMED));
    a_head_of_a_response_of_declared_length_is_complete:
        ask("HEAD", "/streams-declared").method("GET").status(200);
    a_response_that_is_longer_than_declared_is_complete_with_what_was_declared:
        get("/streams-too-much").http1().status(200).response(None);
    a_response_that_is_shorter_than_declared_is_aborted:
        get("/streams-too-little").status(200).response(Some(STREAMED)).outcome(Aborted);
    a_buffered_request_is_recorded: post("/reads").body(Body::Whole(5_000)).status(200);
    a_streamed_request_is_recorded: post("/reads").body(Body::Streamed(5_000)).status(200);
    a_long_streamed_request_is_recorded: post("/reads").body(Body::Streamed(300_000)).status(200);
    a_request_that_is_sent_back_is_recorded_both_ways:
        post("/echoes").body(Body::Streamed(50_000)).status(200).response(Some(50_000));
    an_unread_request_has_no_bytes:
        post("/ignores").body(Body::Whole(5_000)).request(Some(0)).status(200)
            .response(Some(MEMORY));

    a_reset_in_the_middle_of_a_request_is_aborted:
        post("/reads-on").client(ResetsInRequest).http2().request(None).outcome(Aborted);
    a_response_to_an_aborted_request_is_aborted:
        post("/reads").client(ResetsInRequest).request(None).status(400).outcome(Aborted);
    a_reset_in_the_middle_of_both_bodies_is_aborted:
        post("/echoes").client(ResetsInRequest).request(None).status(200).response(None)
            .outcome(Aborted);
    a_reset_while_the_handler_runs_is_aborted:
        get("/never").client(ResetsWhileItWaits).outcome(Aborted);
    a_client_that_closes_while_the_handler_runs_is_aborted:
        get("/never").client(Closes).http1().outcome(Aborted);
    a_reset_in_the_middle_of_a_response_is_aborted:
        get("/streams-for-ever").client(ResetsInResponse).status(200).response(None)
            .outcome(Aborted);
    a_reset_in_the_middle_of_a_response_of_known_length_is_aborted:
        get("/streams-for-long").client(ResetsInResponse).status(200).response(None)
            .outcome(Aborted);
    a_reset_inside_of_a_layer_is_aborted:
        get("/layered").client(ResetsWhileItWaits).outcome(Aborted);
    a_connection_of_http_2_that_is_reset_aborts_its_streams:
        get("/streams-for-ever").client(ResetsConnection).http2().status(200).response(None)
            .outcome(Aborted);

    a_panic_before_the_head_is_a_500: get("/panics").status(500).outcome(Panicked);
    a_panic_in_the_call_is_a_500: get("/panics-at-once").status(500).outcome(Panicked);
    a_panic_in_the_call_of_a_service_is_a_500: get("/service-panics").status(500).outcome(Panicked);
    a_panic_in_the_call_of_a_layer_is_a_500: get("/layer-panics").status(500).outcome(Panicked);
    a_panic_after_the_head_has_its_status:
        get("/body-panics").status(200).response(Some(BROKEN)).outcome(Panicked);
    a_panic_that_a_layer_inside_caught_is_panicked:
        get("/caught").status(500).response(Some(16)).outcome(Panicked);
    a_response_that_is_marked_as_a_panic_is_panicked:
        get("/caught-marked").status(500).response(Some(5)).outcome(Panicked);
    a_caught_panic_with_a_response_of_its_own_is_seen_where_its_handler_is_wrapped:
        get("/caught-unmarked").only_if(|door| door.wraps_handlers).status(500).response(Some(5))
            .outcome(Panicked);
    a_caught_panic_with_a_response_of_its_own_is_complete_elsewhere:
        get("/caught-unmarked").only_if(|door| !door.wraps_handlers).status(500).response(Some(5));
    a_caught_panic_whose_response_is_changed_is_seen_where_its_handler_is_wrapped:
        get("/caught-changed").only_if(|door| door.wraps_handlers).status(500).response(Some(16))
            .outcome(Panicked);
    a_caught_panic_whose_response_is_changed_is_complete_elsewhere:
        get("/caught-changed").only_if(|door| !door.wraps_handlers).status(500).response(Some(16));
    a_500_with_another_body_than_a_caught_panic_is_complete:
        get("/other-failure").status(500).response(Some(16));
    a_200_with_the_body_of_a_caught_panic_is_complete:
        get("/panic-text").status(200).response(Some(16));

    a_time_limit_inside_is_timed_out: get("/limited").status(408).outcome(TimedOut);
    a_time_limit_outside_is_timed_out: get("/never").limited().outcome(TimedOut);
    a_body_that_fails_is_aborted:
        get("/body-fails").status(200).response(Some(BROKEN)).outcome(Aborted);
    a_body_that_fails_after_its_last_byte_is_aborted:
        get("/body-fails-late").http2().status(200).response(Some(BROKEN)).outcome(Aborted);
    a_body_that_exceeds_a_limit_outside_is_a_413_that_is_complete:
        post("/extracts").client(Asks(Body::Streamed(BODY_LIMIT + 100_000))).http2().request(None)
            .status(413).response(None);
    a_service_that_fails_is_aborted:
        get("/errs").only_if(|door| door.can_fail).outcome(Aborted);

    requests_on_one_connection_are_recorded_each:
        get("/memory").client(Keeps(10)).status(200).response(Some(MEMORY));
    streamed_responses_on_one_connection_are_recorded_each:
        get("/streams").client(Keeps(5)).status(200).response(Some(STREAMED));
    concurrent_streams_are_recorded_each:
        get("/memory").client(Multiplexes(20)).http2().status(200).response(Some(MEMORY));
    pipelined_requests_are_recorded_each:
        get("/memory").client(Pipelines(10)).http1().status(200).response(Some(MEMORY));
    a_request_of_http_1_0_is_recorded:
        get("/memory").client(IsOld).http1().status(200).response(Some(MEMORY));
    a_body_after_100_continue_is_recorded:
        post("/reads").client(Expects(5_000)).http1().request(Some(5_000)).status(200);
    a_body_without_100_continue_has_no_bytes:
        post("/ignores").client(Expects(5_000)).http1().status(200).response(Some(MEMORY));
    a_websocket_is_complete_with_its_head: get("/upgrades").client(Upgrades).http1().status(101);
    a_websocket_with_a_guard_is_in_flight_until_it_closes:
        get("/upgrades-with-guard").client(UpgradesWithGuard).http1().status(101);

    a_wildcard_is_one_route:
        get("/files/a/b/c").route("/files/{*path}").status(200).response(Some(MEMORY));
    an_undeclared_method_is_other: ask("PUT", "/memory").method("_OTHER").status(405);
    an_unknown_method_is_other: ask("BREW", "/memory").method("_OTHER").status(405);
    an_unmatched_path_is_unmatched:
        get("/nowhere").route("_unmatched").method("_OTHER").status(404);
    an_unmatched_post_is_unmatched:
        post("/nowhere").route("_unmatched").method("_OTHER").body(Body::Whole(100))
            .request(Some(0)).status(404);
    a_response_of_a_layer_is_recorded_at_its_route:
        ask("OPTIONS", "/cors").method("_OTHER").status(200);
    a_request_through_a_layer_is_recorded_at_its_route:
        get("/cors").status(200).response(Some(MEMORY));
}

/// Runs a case on a server of its own for each door and convention, all at once.
fn run(name: &'static str, case: Case) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut all = JoinSet::new();
        for door in DOORS.iter().filter(|door| (case.fits)(door)) {
            for convention in CONVENTIONS {
                all.spawn(async move {
                    let server = Server::start(door, convention, case.setup).await;
                    for &protocol in case.protocols {
                        client::run(&case, &server, protocol).await;
                        server.assert_recorded(&format!("{name} by {protocol:?}")).await;
                    }
                });
            }
        }
        all.join_all().await;
    });
}
