//! Endpoints that a study calls between two cases.

use crate::answer::ErrorAnswer;
use crate::store::Store;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use talea_collectors::tasks::TaskMeter;

/// `POST /study/reset`: removes all items and sets the peaks, of tasks and of requests
/// that wait for a connection, to the counts of this moment.
pub(crate) fn router(store: Store, tasks: Option<TaskMeter>) -> Router {
    Router::new().route("/study/reset", post(reset)).with_state((store, tasks))
}

async fn reset(
    State((store, tasks)): State<(Store, Option<TaskMeter>)>,
) -> Result<StatusCode, ErrorAnswer> {
    store.clear().await?;
    store.reset_peaks();
    if let Some(tasks) = tasks {
        tasks.reset_peaks();
    }
    Ok(StatusCode::NO_CONTENT)
}
