//! Throughput and response time against concurrency: a point for each case of so many clients.

use plotters::prelude::*;

use super::chart::{AXIS, FINE, GRID, LINE, framed, svg, text, tick};
use crate::study::Finding;

/// Cases in which some clients each wait for their answers, by how many they are; of the same number
/// in the order of the study.
pub(super) fn by_clients(findings: &[Finding]) -> Vec<&Finding> {
    let mut closed: Vec<&Finding> = findings.iter().filter(|finding| is_closed(finding)).collect();
    closed.sort_by_key(|finding| finding.clients);
    closed
}

/// Whether so many clients really ran at the same time: not where requests arrived at a rate.
fn is_closed(finding: &Finding) -> bool {
    finding.iterations.is_some() || finding.model.contains("client")
}

/// A chart with a value of each case against its clients; none where there are not two numbers of
/// clients.
pub(super) fn chart(
    cases: &[&Finding],
    label: &str,
    value: impl Fn(&Finding) -> Option<f64>,
) -> Option<String> {
    let points: Vec<(f64, f64, &str)> = cases
        .iter()
        .filter_map(|case| Some((case.clients as f64, value(case)?, case.id.as_str())))
        .collect();
    let (fewest, most) = (points.first()?.0, points.last()?.0);
    if fewest == most {
        return None;
    }
    let top = points.iter().map(|(_, y, _)| *y).fold(0.0, f64::max) * 1.15;
    let top = if top > 0.0 { top } else { 1.0 };
    Some(svg(label, |area| {
        let mut chart =
            framed(area).build_cartesian_2d((fewest / 1.6..most * 1.6).log_scale(), 0.0..top)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(GRID.stroke_width(FINE))
            .light_line_style(TRANSPARENT)
            .axis_style(AXIS.stroke_width(FINE))
            .set_all_tick_mark_size(3 * FINE)
            .label_style(text())
            .x_labels(6)
            .y_labels(5)
            .x_label_formatter(&|value| tick(*value, 1000.0))
            .y_label_formatter(&|value| tick(*value, top))
            .draw()?;
        let line = means(&points);
        chart.draw_series(LineSeries::new(line, LINE.mix(0.5).stroke_width(FINE)))?;
        for (x, y, id) in &points {
            chart.draw_series([Circle::new((*x, *y), 4 * FINE, LINE.filled())])?;
            let at = (7 * FINE as i32, -(8 * FINE as i32));
            let name = EmptyElement::at((*x, *y)) + Text::new((*id).to_owned(), at, text());
            chart.draw_series([name])?;
        }
        area.present()
    }))
}

/// A line through the means of each number of clients.
fn means(points: &[(f64, f64, &str)]) -> Vec<(f64, f64)> {
    let runs = points.chunk_by(|one, other| one.0 == other.0);
    let mean = |run: &[(f64, f64, &str)]| run.iter().map(|it| it.1).sum::<f64>() / run.len() as f64;
    runs.map(|run| (run[0].0, mean(run))).collect()
}
