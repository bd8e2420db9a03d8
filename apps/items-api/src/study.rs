//! What a study asks for between two cases.

use crate::answer::Refusal;
use crate::store::Store;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use talea_collectors::tasks::TaskMeter;

/// `POST /study/reset`: removes all items and sets the task peaks to the counts
/// of this moment.
pub(crate) fn router(store: Store, tasks: TaskMeter) -> Router {
    Router::new().route("/study/reset", post(reset)).with_state((store, tasks))
}

async fn reset(State((store, tasks)): State<(Store, TaskMeter)>) -> Result<StatusCode, Refusal> {
    store.clear().await?;
    tasks.reset_peaks();
    Ok(StatusCode::NO_CONTENT)
}
