//! Response times over time as a heat map: time to the right, response time upwards, the darker the
//! more requests.

use std::fmt::Write;

use maud::{Markup, PreEscaped, html};
use talea_statistics::figures::whole;

use crate::study::Times;
use talea_view::chart::{self, short, tick};

const WIDTH: f64 = chart::SIZE.0 as f64;
const HEIGHT: f64 = chart::SIZE.1 as f64;
const LEFT: f64 = chart::LEFT as f64;
const RIGHT: f64 = chart::RIGHT as f64;
const TOP: f64 = chart::TOP as f64;
const BOTTOM: f64 = chart::BOTTOM as f64;

const SHADES: usize = 6;

/// The heat map of a case; none where nothing was answered.
pub(super) fn heat(times: &Times, label: &str) -> Option<Markup> {
    let heat = &times.heat;
    let bands = heat.edges_ms.len().checked_sub(1).filter(|bands| *bands > 0)?;
    let most = heat.counts.iter().flatten().copied().max().filter(|most| *most > 0)?;
    let seconds = times.seconds.last().copied().filter(|seconds| *seconds > 0.0)?;
    let x = |second: f64| LEFT + second / seconds * (WIDTH - LEFT - RIGHT);
    let y = |edge: f64| HEIGHT - BOTTOM - edge / bands as f64 * (HEIGHT - TOP - BOTTOM);
    let begin = |slice: usize| slice.checked_sub(1).map_or(0.0, |before| times.seconds[before]);

    // A path for each shade, of what lies side by side in one piece.
    let mut paths = vec![String::new(); SHADES];
    for band in 0..bands {
        let shades: Vec<Option<usize>> = heat
            .counts
            .iter()
            .map(|slice| shade(slice.get(band).copied().unwrap_or(0), most))
            .collect();
        let mut at = 0;
        for run in shades.chunk_by(|one, other| one == other) {
            let (from, to) = (x(begin(at)), x(begin(at + run.len())));
            at += run.len();
            if let Some(path) = run[0].and_then(|shade| paths.get_mut(shade)) {
                let (low, high) = (y(band as f64), y(band as f64 + 1.0));
                // Writing to a string does not fail.
                let _ = write!(path, "M{from:.1} {low:.1}H{to:.1}V{high:.1}H{from:.1}z");
            }
        }
    }
    Some(html! {
        svg.heat viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(label) {
            @for (shade, path) in paths.iter().enumerate() {
                @if !path.is_empty() { path class=(format!("shade{shade}")) d=(path) {} }
            }
            @for (edge, ms) in labelled(&heat.edges_ms) {
                text x=(LEFT - 6.0) y=(y(edge as f64) + 4.0) text-anchor="end" { (short(ms)) }
            }
            @for n in 0..=4u32 {
                @let second = seconds * f64::from(n) / 4.0;
                text x=(x(second)) y=(HEIGHT - 5.0)
                    text-anchor=(if n == 4 { "end" } else { "middle" }) {
                    (tick(second, seconds)) " s"
                }
            }
            path.axis d=(format!(
                "M{LEFT} {TOP}V{}H{}", HEIGHT - BOTTOM, WIDTH - RIGHT
            )) {}
        }
    })
}

pub(super) fn key(times: &Times) -> Markup {
    let most = times.heat.counts.iter().flatten().copied().max().unwrap_or(0);
    html! {
        p.key.shades {
            "1 request"
            svg.heat viewBox="0 0 72 12" width="72" height="12" aria-hidden="true" {
                @for shade in 0..SHADES {
                    rect class=(format!("shade{shade}")) x=(shade * 12) y="0" width="12" height="12" {}
                }
            }
            (PreEscaped(whole(most)))
        }
    }
}

/// The shade of a count, on a logarithmic scale; none if it is 0.
fn shade(count: u64, most: u64) -> Option<usize> {
    if count == 0 {
        return None;
    }
    let share = (count as f64).ln() / (most as f64).ln().max(f64::MIN_POSITIVE);
    Some(((share * SHADES as f64) as usize).min(SHADES - 1))
}

/// The bounds that are written at the axis: powers of ten where there are two of them, else some.
fn labelled(edges_ms: &[f64]) -> Vec<(usize, f64)> {
    let all = || edges_ms.iter().copied().enumerate();
    let powers: Vec<_> =
        all().filter(|(_, ms)| (ms.log10() - ms.log10().round()).abs() < 1e-3).collect();
    if powers.len() >= 2 {
        return powers;
    }
    let step = edges_ms.len().div_ceil(5).max(1);
    all().step_by(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(counts: Vec<Vec<u64>>, edges_ms: Vec<f64>) -> Times {
        let seconds = (1..=counts.len()).map(|n| n as f64).collect();
        let mut times = Times { seconds, ..Times::default() };
        (times.heat.edges_ms, times.heat.counts) = (edges_ms, counts);
        times
    }

    #[test]
    fn adjacent_cells_are_one_piece() {
        let times = times(vec![vec![5, 0], vec![5, 0], vec![5, 100]], vec![1.0, 2.0, 3.0]);
        let svg = heat(&times, "a <b>").unwrap().into_string();
        assert_eq!(svg.matches("class=\"shade").count(), 2, "{svg}");
        assert_eq!(svg.matches('z').count(), 2, "{svg}");
        assert!(svg.contains("aria-label=\"a &lt;b&gt;\""), "{svg}");
    }

    #[test]
    fn a_case_without_answers_has_no_heat() {
        assert!(heat(&times(vec![vec![0]], vec![1.0, 2.0]), "").is_none());
        assert!(heat(&Times::default(), "").is_none());
    }

    #[test]
    fn shades_go_from_one_answer_to_the_most() {
        assert_eq!(shade(0, 1000), None);
        assert_eq!(shade(1, 1000), Some(0));
        assert_eq!(shade(1000, 1000), Some(SHADES - 1));
        assert_eq!(shade(1, 1), Some(0));
        assert!(shade(30, 1000) > shade(3, 1000));
    }

    #[test]
    fn powers_of_ten_are_written_at_the_axis() {
        let edges: Vec<f64> = (0..=12).map(|n| 10f64.powf(f64::from(n) / 6.0)).collect();
        let written: Vec<usize> = labelled(&edges).into_iter().map(|(at, _)| at).collect();
        assert_eq!(written, [0, 6, 12]);
        assert_eq!(labelled(&edges[1..5]).len(), 4);
    }
}
