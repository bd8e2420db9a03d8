//! Claims about pushing, to a receiver that answers by a script.
//!
//! prometheus/compliance has a list of cases for senders of remote-write, `remotewrite/sender`. Where each is covered:
//!
//! | file there | here |
//! |---|---|
//! | `protocol_test` | `delivery::requests_have_the_headers_of_their_version`; own headers cannot be overridden: `delivery::what_cannot_be_used_is_an_error_that_says_so` |
//! | `symbols_test`, `labels_test` | each request that a test reads, in `registry::series`: the first symbol is empty, symbols are there once, labels are sorted, there once and not empty, one has the name |
//! | `samples_test` | `series::a_value_arrives_to_the_last_bit`, `series::each_kind_of_value_becomes_the_series_that_prometheus_has_of_it` |
//! | `timestamps_test` | `series::a_start_timestamp_lies_before_the_first_sample_and_stays`; `clock`: times ascend whatever the clock does |
//! | `histograms_test`, `metadata_test`, `exemplars_test` | `series::each_kind_of_value_…`, `series::an_exemplar_is_sent_once`, `series::what_the_configuration_leaves_out_is_not_sent` |
//! | `retry_test`, `response_test`, `fallback_test` | `delivery::each_response_has_the_end_that_the_protocol_says`, `remote_write::verdict` |
//! | `backoff_test` | `backoff`, `verdict`: pauses double, with jitter, and heed `Retry-After` |
//! | `error_handling_test` | `delivery`: no connection, closed, cut off, silent receivers; `tls`; a name that cannot be resolved ends as a connection that cannot be made |
//! | `rw1_compat_test` | `series::version_1_has_the_same_without_start_timestamps`. Native histograms go out over 1.0 as well: Prometheus takes them there since 2.40, and `native_histograms(false)` leaves them out |
//! | `batching_test` | `series::requests_are_as_full_as_they_may_be` |
//! | `edge_cases_test` | `series::a_series_that_ends_is_marked_once_and_may_come_back`; a page without series makes no request. Times of samples are the collection's, so none is 0 or of a scraped page |
//! | `combined_test` | talea-tests, `push` and `push_by_agent`, with a real Prometheus |

mod delivery;
mod deltas;
#[cfg(feature = "grpc")]
mod grpc;
mod otlp;
mod receiver;
mod registry;
mod series;
mod tls;
