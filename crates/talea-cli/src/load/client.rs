//! One client: the sequence over and over, one request at a time.

use std::sync::Arc;
use std::time::Instant;

use super::Plan;
use super::crud::{self, ItemPath, SEQUENCE, Step};
use super::line::{Answer, Line};
use super::meters::Meters;
use super::tally::{Failure, Tally};
use crate::stop::Stop;

pub(super) struct Client {
    plan: Arc<Plan>,
    meters: Meters,
    line: Line,
    tally: Tally,
}

/// A client's end.
pub(super) struct Ending {
    pub(super) at: Instant,
    pub(super) tally: Tally,
}

impl Client {
    pub(super) fn new(plan: Arc<Plan>, meters: Meters) -> Self {
        let line = Line::new(plan.target.clone(), plan.timeout);
        Self { plan, meters, line, tally: Tally::default() }
    }

    pub(super) async fn run(mut self, mut stop: Stop) -> Ending {
        tokio::select! {
            biased;
            () = stop.requested() => {}
            () = self.iterate() => {}
        }
        let at = Instant::now();
        if self.line.is_waiting() {
            self.tally.sent += 1;
            self.tally.unanswered += 1;
        }
        self.tally.connections = self.line.opened();
        self.tally.reconnects = self.line.opened().saturating_sub(1);
        Ending { at, tally: self.tally }
    }

    async fn iterate(&mut self) {
        for _ in 0..self.plan.iterations {
            let mut item = None;
            for step in SEQUENCE {
                let answer = self.step(step, item.as_ref()).await;
                if let (Step::Create, Some(answer)) = (step, answer) {
                    item = ItemPath::of_created(&self.plan.target, &answer.body);
                    if item.is_none() {
                        self.tally.fail(Failure::NoId);
                    }
                }
            }
        }
    }

    /// Does one step and counts it; gives the answer if it is the expected one.
    async fn step(&mut self, step: Step, item: Option<&ItemPath>) -> Option<Answer> {
        let Some(request) = crud::request(step, &self.plan.target, item) else {
            self.tally.not_sent += 1;
            self.tally.fail(Failure::NoItem(step));
            self.meters.done();
            return None;
        };
        let answer = self.line.send(request, step == Step::Create).await;
        self.meters.done();
        match answer {
            Ok(answer) => {
                self.tally.sent += 1;
                self.tally.answer(answer.status);
                self.meters.observe(answer.took);
                if answer.status == step.expected() {
                    return Some(answer);
                }
                self.tally.fail(Failure::Status(step, answer.status.as_u16()));
            }
            Err(trouble) => {
                if trouble.was_sent() {
                    self.tally.sent += 1;
                } else {
                    self.tally.not_sent += 1;
                }
                self.tally.fail(Failure::Trouble(step, trouble));
            }
        }
        None
    }
}
