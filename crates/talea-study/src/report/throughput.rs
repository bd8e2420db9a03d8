//! Throughput and response time against concurrency: a point for each case of so many clients.

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use crate::study::CaseResult;
use talea_view::chart::{Area, Drawn, FINE, LINE, axes, framed, short, svg, text, tick};

/// Cases in which some clients each wait for their answers, by how many they are; of the same number
/// in the order of the study.
pub(super) fn by_clients(results: &[CaseResult]) -> Vec<&CaseResult> {
    let mut closed: Vec<&CaseResult> = results.iter().filter(|result| !result.open).collect();
    closed.sort_by_key(|result| result.clients);
    closed
}

/// A chart with a value of each case against its clients, perhaps on a logarithmic scale; none where
/// there are not two numbers of clients.
pub(super) fn chart(
    cases: &[&CaseResult],
    label: &str,
    logarithmic: bool,
    value: impl Fn(&CaseResult) -> Option<f64>,
) -> Option<String> {
    let points: Vec<Point<'_>> = cases
        .iter()
        .filter_map(|case| Some((case.clients as f64, value(case)?, case.id.as_str())))
        .filter(|(_, value, _)| *value > 0.0)
        .collect();
    if points.first()?.0 == points.last()?.0 {
        return None;
    }
    let (least, most) = points.iter().fold((f64::MAX, 0.0f64), |(least, most), (_, value, _)| {
        (least.min(*value), most.max(*value))
    });
    Some(svg(label, |area| match logarithmic {
        true => draw(area, &points, logarithmic_axis(least, most), short),
        false => draw(area, &points, 0.0..most * 1.15, |value| tick(value, most)),
    }))
}

/// Clients, value, name of the case.
type Point<'a> = (f64, f64, &'a str);

fn draw<'b, Y>(
    area: &Area<'b>,
    points: &[Point<'_>],
    values: Y,
    written: impl Fn(f64) -> String,
) -> Drawn<'b>
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let (fewest, most) = (points[0].0, points[points.len() - 1].0);
    let clients = logarithmic_axis(fewest, most);
    let mut chart = framed(area).build_cartesian_2d(clients, values)?;
    axes(&mut chart, &|value| short(*value), &|value| written(*value))?;
    chart.draw_series(LineSeries::new(means(points), LINE.mix(0.5).stroke_width(FINE)))?;
    for (n, (x, y, id)) in points.iter().enumerate() {
        chart.draw_series([Circle::new((*x, *y), 4 * FINE, LINE.filled())])?;
        // The names of two points above each other stand on either side.
        let is_second = points[..n].iter().filter(|point| point.0 == *x).count() % 2 == 1;
        let width = 8 * FINE as i32 * id.chars().count() as i32;
        let at = (
            if is_second { -width - 7 * FINE as i32 } else { 7 * FINE as i32 },
            -(8 * FINE as i32),
        );
        let name = EmptyElement::at((*x, *y)) + Text::new((*id).to_owned(), at, text());
        chart.draw_series([name])?;
    }
    area.present()
}

/// A little beyond both ends, with marks.
fn logarithmic_axis(
    least: f64,
    most: f64,
) -> impl AsRangedCoord<Value = f64, CoordDescType: ValueFormatter<f64>> {
    let (low, high) = (least / 1.6, most * 1.6);
    (low..high).log_scale().with_key_points(marks(low, high))
}

/// The marks of a logarithmic axis: at powers of ten, or at some of their multiples where these would be too few.
fn marks(low: f64, high: f64) -> Vec<f64> {
    const STEPS: [&[f64]; 3] =
        [&[1.0], &[1.0, 2.0, 5.0], &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0]];
    const ENOUGH: usize = 3;
    let mut found = Vec::new();
    for steps in STEPS {
        let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let all = powers.flat_map(|power| steps.iter().map(move |step| step * 10f64.powi(power)));
        found = all.filter(|mark| (low..=high).contains(mark)).collect();
        if found.len() >= ENOUGH {
            break;
        }
    }
    found
}

/// A line through the means of each number of clients.
fn means(points: &[Point<'_>]) -> Vec<(f64, f64)> {
    let runs = points.chunk_by(|one, other| one.0 == other.0);
    runs.map(|run| (run[0].0, run.iter().map(|it| it.1).sum::<f64>() / run.len() as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Clients;

    fn case(id: &str, clients: u64, rate: f64) -> CaseResult {
        let client = Clients { mean_rate: Some(rate), ..Clients::default() };
        CaseResult { id: id.to_owned(), clients, client, ..CaseResult::default() }
    }

    #[test]
    fn every_case_has_a_point_with_its_name() {
        let open = CaseResult { open: true, ..case("open", 5, 1.0) };
        let all = [case("<A>", 10, 100.0), case("B", 1000, 200.0), open];
        let closed = by_clients(&all);
        assert_eq!(closed.len(), 2, "arrivals at a rate are of no number of clients");
        for logarithmic in [true, false] {
            let svg = chart(&closed, "x", logarithmic, |case| case.client.mean_rate).unwrap();
            assert_eq!(svg.matches("<circle").count(), 2);
            assert!(svg.contains("&lt;A&gt;") && !svg.contains("<A>"), "{svg}");
        }
    }

    #[test]
    fn an_axis_has_some_marks_and_not_many_whatever_it_spans() {
        for (least, most) in
            [(9.0, 9.0), (90.0, 110.0), (0.21, 0.22), (12.0, 38.0), (1.0, 1000.0), (0.1, 90_000.0)]
        {
            let marks = marks(least / 1.6, most * 1.6);
            assert!((3..=9).contains(&marks.len()), "{least} to {most}: {marks:?}");
        }
    }

    #[test]
    fn one_number_of_clients_makes_no_chart() {
        let cases = [case("A", 10, 100.0), case("B", 10, 200.0)];
        assert!(chart(&by_clients(&cases), "x", false, |case| case.client.mean_rate).is_none());
        assert!(chart(&[], "x", false, |case| case.client.mean_rate).is_none());
    }
}
