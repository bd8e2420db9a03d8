//! The cases, each in every way of metering and under every convention.

use tokio::task::JoinSet;

use crate::cases::case::Client::*;
use crate::cases::case::Outcome::{Aborted, Panicked, TimedOut};
use crate::cases::case::{Case, Sends, ask, get, post};
use crate::cases::client;
use crate::cases::handlers::{BROKEN, LONG, MEMORY, STREAMED};
use crate::cases::metering::{METERINGS, Metering};
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
    a_buffered_body_is_recorded: get("/memory").is(200).sends(Some(MEMORY));
    a_long_buffered_body_is_recorded: get("/long").is(200).sends(Some(LONG));
    an_empty_body_has_no_bytes: get("/empty").is(200);
    a_204_has_no_bytes: get("/alone/204").at("/alone/{code}").is(204);
    a_304_has_no_bytes: get("/alone/304").at("/alone/{code}").is(304);
    a_body_that_hyper_does_not_send_has_no_bytes:
        get("/status/304").at("/status/{code}").http1().is(304);
    a_404_of_a_handler_is_recorded_at_its_route: get("/status/404").at("/status/{code}").is(404)
        .sends(Some(10));
    a_503_is_an_error_that_is_complete: get("/status/503").at("/status/{code}").is(503)
        .sends(Some(10));
    a_504_is_timed_out: get("/status/504").at("/status/{code}").is(504)
        .sends(Some(10)).ends(TimedOut);
    an_unusual_status_is_recorded: get("/status/299").at("/status/{code}").is(299).sends(Some(10));
    a_head_is_recorded_at_its_get: ask("HEAD", "/memory").under("GET").is(200);
    a_head_of_a_stream_has_no_bytes: ask("HEAD", "/streams").under("GET").is(200);

    a_streamed_response_is_recorded_to_its_end: get("/streams").is(200).sends(Some(STREAMED));
    a_streamed_response_of_known_length_is_recorded: get("/streams-known").is(200).sends(Some(STREAMED));
    a_streamed_response_of_declared_length_is_complete:
        get("/streams-declared").is(200).sends(Some(STREAMED));
    a_head_of_a_response_of_declared_length_is_complete:
        ask("HEAD", "/streams-declared").under("GET").is(200);
    a_response_that_is_longer_than_declared_is_complete_with_what_was_declared:
        get("/streams-too-much").http1().is(200).sends(None);
    a_response_that_is_shorter_than_declared_is_aborted:
        get("/streams-too-little").is(200).sends(Some(STREAMED)).ends(Aborted);
    a_buffered_request_is_recorded: post("/reads").sending(Sends::Whole(5_000)).is(200);
    a_streamed_request_is_recorded: post("/reads").sending(Sends::Streamed(5_000)).is(200);
    a_long_streamed_request_is_recorded: post("/reads").sending(Sends::Streamed(300_000)).is(200);
    a_request_that_is_sent_back_is_recorded_both_ways:
        post("/echoes").sending(Sends::Streamed(50_000)).is(200).sends(Some(50_000));
    an_unread_request_has_no_bytes:
        post("/ignores").sending(Sends::Whole(5_000)).reads(Some(0)).is(200).sends(Some(MEMORY));

    a_reset_in_the_middle_of_a_request_is_aborted:
        post("/reads-on").by(ResetsInRequest).http2().reads(None).ends(Aborted);
    a_response_to_an_aborted_request_is_aborted:
        post("/reads").by(ResetsInRequest).reads(None).is(400).ends(Aborted);
    a_reset_in_the_middle_of_both_bodies_is_aborted:
        post("/echoes").by(ResetsInRequest).reads(None).is(200).sends(None).ends(Aborted);
    a_reset_while_the_handler_runs_is_aborted: get("/never").by(ResetsWhileItWaits).ends(Aborted);
    a_client_that_closes_while_the_handler_runs_is_aborted:
        get("/never").by(Closes).http1().ends(Aborted);
    a_reset_in_the_middle_of_a_response_is_aborted:
        get("/streams-for-ever").by(ResetsInResponse).is(200).sends(None).ends(Aborted);
    a_reset_in_the_middle_of_a_response_of_known_length_is_aborted:
        get("/streams-for-long").by(ResetsInResponse).is(200).sends(None).ends(Aborted);
    a_reset_inside_of_a_layer_is_aborted:
        get("/layered").by(ResetsWhileItWaits).ends(Aborted);
    a_connection_of_http_2_that_is_reset_aborts_its_streams:
        get("/streams-for-ever").by(ResetsConnection).http2().is(200).sends(None).ends(Aborted);

    a_panic_before_the_head_is_a_500: get("/panics").is(500).ends(Panicked);
    a_panic_in_the_call_is_a_500: get("/panics-at-once").is(500).ends(Panicked);
    a_panic_after_the_head_has_its_status:
        get("/body-panics").is(200).sends(Some(BROKEN)).ends(Panicked);
    a_panic_that_a_layer_inside_caught_is_panicked:
        get("/caught").is(500).sends(Some(16)).ends(Panicked);

    a_time_limit_inside_is_timed_out: get("/limited").is(408).ends(TimedOut);
    a_time_limit_outside_is_timed_out: get("/never").limited().ends(TimedOut);
    a_body_that_fails_is_aborted: get("/body-fails").is(200).sends(Some(BROKEN)).ends(Aborted);
    a_service_that_fails_is_aborted: get("/errs").only(&[Metering::Outside, Metering::Typed]).ends(Aborted);

    requests_on_one_connection_are_recorded_each: get("/memory").by(Keeps(10)).is(200).sends(Some(MEMORY));
    streamed_responses_on_one_connection_are_recorded_each:
        get("/streams").by(Keeps(5)).is(200).sends(Some(STREAMED));
    concurrent_streams_are_recorded_each:
        get("/memory").by(Multiplexes(20)).http2().is(200).sends(Some(MEMORY));
    pipelined_requests_are_recorded_each:
        get("/memory").by(Pipelines(10)).http1().is(200).sends(Some(MEMORY));
    a_request_of_http_1_0_is_recorded: get("/memory").by(IsOld).http1().is(200).sends(Some(MEMORY));
    a_body_after_100_continue_is_recorded:
        post("/reads").by(Expects(5_000)).http1().reads(Some(5_000)).is(200);
    a_body_without_100_continue_has_no_bytes:
        post("/ignores").by(Expects(5_000)).http1().is(200).sends(Some(MEMORY));
    a_websocket_is_complete_with_its_head: get("/upgrades").by(Upgrades).http1().is(101);

    a_wildcard_is_one_route: get("/files/a/b/c").at("/files/{*path}").is(200).sends(Some(MEMORY));
    an_undeclared_method_is_other: ask("PUT", "/memory").under("_OTHER").is(405);
    an_unknown_method_is_other: ask("BREW", "/memory").under("_OTHER").is(405);
    an_unmatched_path_is_unmatched: get("/nowhere").at("_unmatched").under("_OTHER").is(404);
    an_unmatched_post_is_unmatched:
        post("/nowhere").at("_unmatched").under("_OTHER").sending(Sends::Whole(100))
        .reads(Some(0)).is(404);
    a_response_of_a_layer_is_recorded_at_its_route: ask("OPTIONS", "/cors").under("_OTHER").is(200);
    a_request_through_a_layer_is_recorded_at_its_route: get("/cors").is(200).sends(Some(MEMORY));
}

/// Runs a case on a server of its own for each way of metering and convention, all at once.
fn run(name: &'static str, case: Case) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut all = JoinSet::new();
        for metering in METERINGS.into_iter().filter(|&metering| case.is_of(metering)) {
            for convention in CONVENTIONS {
                all.spawn(async move {
                    let server = Server::start(metering, convention, case.setup).await;
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
