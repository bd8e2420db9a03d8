//! Charts as SVG.
//!
//! The drawing library writes fixed colours and whole pixels. The colours are sentinels that the
//! page's style replaces, so that a chart follows the reader's theme; the pixels are a quarter of
//! the page's, so that lines are smooth.

use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;

use talea_statistics::figures::{measured, whole};

/// Width and height in the page's pixels, before the page scales them.
pub const SIZE: (u32, u32) = (380, 220);
/// Drawn pixels in one of the page's.
pub const FINE: u32 = 4;
const TEXT_SIZE: u32 = 12;
/// The space around the lines, in the page's pixels.
pub const LEFT: u32 = 46;
pub const RIGHT: u32 = 14;
pub const TOP: u32 = 8;
pub const BOTTOM: u32 = 22;

// The style sheet names each of these.
pub const LINE: RGBColor = RGBColor(0x2A, 0x78, 0xD6);
pub const PEAK: RGBColor = RGBColor(0xC2, 0x70, 0x0F);
pub const THIRD: RGBColor = RGBColor(0x1F, 0x8A, 0x5B);
const GRID: RGBColor = RGBColor(0xE3, 0xE4, 0xE7);
const AXIS: RGBColor = RGBColor(0x9A, 0xA0, 0xA8);
pub const TEXT: RGBColor = RGBColor(0x5D, 0x63, 0x6D);

/// Seconds and values.
type Points = Vec<(f64, f64)>;

/// A further line of a chart, with seconds of its own.
pub struct Curve<'a> {
    pub seconds: &'a [f64],
    pub values: &'a [Option<f64>],
    pub colour: RGBColor,
}

/// The lines of a chart over the seconds of a case.
pub struct Chart<'a> {
    pub seconds: &'a [f64],
    /// The values; gaps are left where there is none.
    pub values: Vec<Option<f64>>,
    /// A second line above: the most so far.
    pub peaks: Option<Vec<f64>>,
    pub curves: Vec<Curve<'a>>,
    /// Until when values cover less than their window; they are drawn thin.
    pub full_from: f64,
    /// A description of the chart, for readers who cannot see it.
    pub label: String,
}

impl<'a> Chart<'a> {
    /// One line.
    pub fn new(seconds: &'a [f64], values: Vec<Option<f64>>, label: String) -> Self {
        Self { seconds, values, peaks: None, curves: Vec::new(), full_from: 0.0, label }
    }

    /// The most values that one of its lines has.
    pub fn points(&self) -> usize {
        let known = |values: &[Option<f64>]| values.iter().flatten().count();
        let curves = self.curves.iter().map(|curve| known(curve.values));
        curves.fold(known(&self.values), usize::max)
    }

    pub fn to_svg(&self) -> String {
        let svg = svg(&self.label, |area| self.draw(area));
        svg.replacen("</svg>", &format!("{}</svg>", self.tips()), 1)
    }

    /// A stripe for each value, which shows it when the pointer is there.
    fn tips(&self) -> String {
        let (width, height) = (f64::from(SIZE.0 * FINE), f64::from(SIZE.1 * FINE));
        let [left, right, top, bottom] = [LEFT, RIGHT, TOP, BOTTOM].map(|it| f64::from(it * FINE));
        let (seconds, length) = (self.duration(), width - left - right);
        let x = |second: f64| left + second / seconds * length;
        let known = self.seconds.iter().zip(&self.values).enumerate();
        let known = known.filter_map(|(n, (second, value))| Some((n, *second, (*value)?)));
        let stripe = |(n, second, value): (usize, f64, f64)| {
            let before = n.checked_sub(1).map_or(0.0, |n| self.seconds[n]);
            let after = self.seconds.get(n + 1).copied().unwrap_or(seconds);
            let (from, to) = (x((before + second) / 2.0), x((second + after) / 2.0));
            maud::html! {
                rect.tip x=(format!("{from:.0}")) y=(top) width=(format!("{:.0}", to - from))
                    height=(height - top - bottom) {
                    title { (tick(second, 1.0)) " s: " (measured(value)) }
                }
            }
        };
        known.map(|one| stripe(one).into_string()).collect()
    }

    fn draw<'b>(&self, area: &Area<'b>) -> Drawn<'b> {
        let (seconds, top) = (self.duration(), self.top());
        let mut chart = framed(area).build_cartesian_2d(0.0..seconds, 0.0..top)?;
        axes(&mut chart, &|value| format!("{} s", tick(*value, seconds)), &|value: &f64| {
            tick(*value, top)
        })?;

        if let Some(peaks) = &self.peaks {
            chart.draw_series(LineSeries::new(
                steps(self.seconds, peaks),
                PEAK.stroke_width(FINE),
            ))?;
        }
        for Curve { seconds, values, colour } in &self.curves {
            for run in runs(seconds, values) {
                if let [(x, y)] = run[..] {
                    chart.draw_series([Circle::new((x, y), 3 * FINE, colour.filled())])?;
                    continue;
                }
                chart.draw_series(LineSeries::new(run, colour.stroke_width(FINE * 3 / 2)))?;
            }
        }
        for run in runs(self.seconds, &self.values) {
            if let [(x, y)] = run[..] {
                chart.draw_series([Circle::new((x, y), 3 * FINE, LINE.filled())])?;
                continue;
            }
            let (thin, full) = divided(&run, self.full_from);
            chart.draw_series(AreaSeries::new(thin.iter().copied(), 0.0, LINE.mix(0.06)))?;
            chart.draw_series(AreaSeries::new(full.iter().copied(), 0.0, LINE.mix(0.13)))?;
            chart.draw_series(LineSeries::new(full, LINE.stroke_width(2 * FINE)))?;
            chart.draw_series(LineSeries::new(thin, LINE.stroke_width(FINE)))?;
        }
        area.present()
    }

    fn duration(&self) -> f64 {
        self.seconds.last().copied().filter(|seconds| *seconds > 0.0).unwrap_or(1.0)
    }

    /// The end of the vertical axis: a little above the highest point.
    fn top(&self) -> f64 {
        let values = self.values.iter().flatten().copied();
        let peaks = self.peaks.iter().flatten().copied();
        let curves = self.curves.iter().flat_map(|curve| curve.values).flatten().copied();
        let highest = values.chain(peaks).chain(curves).fold(0.0, f64::max);
        if highest > 0.0 { highest * 1.08 } else { 1.0 }
    }
}

pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// How a drawing ended; into a string it does not fail.
pub type Drawn<'a> =
    Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>>;

/// A drawing as an `svg` element, with what it shows for readers who cannot see it.
pub fn svg(label: &str, draw: impl for<'a> FnOnce(&Area<'a>) -> Drawn<'a>) -> String {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (SIZE.0 * FINE, SIZE.1 * FINE));
        draw(&area.into_drawing_area()).expect("drawing into a string cannot fail");
    }
    let label = maud::html! { (label) }.into_string();
    let svg = svg.replace('\n', "");
    svg.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{label}\" "), 1)
}

/// A chart with room for its labels.
pub fn framed<'a, 'b>(area: &'a Area<'b>) -> ChartBuilder<'a, 'b, SVGBackend<'b>> {
    let mut chart = ChartBuilder::on(area);
    chart
        .margin_top(TOP * FINE)
        .margin_right(RIGHT * FINE)
        .x_label_area_size(BOTTOM * FINE)
        .y_label_area_size(LEFT * FINE);
    chart
}

/// Draws axes and marks, whose labels are written so.
pub fn axes<'b, X, Y>(
    chart: &mut ChartContext<'_, SVGBackend<'b>, Cartesian2d<X, Y>>,
    across: &dyn Fn(&f64) -> String,
    upwards: &dyn Fn(&f64) -> String,
) -> Drawn<'b>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
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
        .x_label_formatter(across)
        .y_label_formatter(upwards)
        .draw()
}

pub fn text() -> TextStyle<'static> {
    // The library divides a size by 1.24 before it writes it.
    ("sans-serif", f64::from(TEXT_SIZE * FINE) * 1.24).into_font().color(&TEXT)
}

/// Values without their gaps, each run of neighbours apart.
fn runs(seconds: &[f64], values: &[Option<f64>]) -> Vec<Points> {
    let points: Vec<_> = seconds.iter().copied().zip(values).collect();
    let runs = points.split(|(_, value)| value.is_none());
    runs.map(|run: &[(f64, &Option<f64>)]| -> Points {
        run.iter().filter_map(|(second, value)| Some((*second, (**value)?))).collect()
    })
    .filter(|run| !run.is_empty())
    .collect()
}

/// Splits points at an instant: those up to the first point after it, and those after.
fn divided(run: &[(f64, f64)], at: f64) -> (Points, Points) {
    let after = run.partition_point(|(second, _)| *second < at);
    let meeting = if after == 0 { 0 } else { run.len().min(after + 1) };
    (run[..meeting].to_vec(), run[after..].to_vec())
}

/// A line that stays where it is until the next value.
fn steps(seconds: &[f64], values: &[f64]) -> Points {
    let mut points: Points = Vec::with_capacity(values.len() * 2);
    for (second, value) in seconds.iter().zip(values) {
        if let Some((_, before)) = points.last().copied() {
            points.push((*second, before));
        }
        points.push((*second, *value));
    }
    points
}

/// An axis label with as many digits as the axis needs.
pub fn tick(value: f64, top: f64) -> String {
    if top >= 20_000.0 {
        let thousands = value / 1000.0;
        return match thousands.fract() == 0.0 {
            true if thousands == 0.0 => "0".to_owned(),
            true => format!("{}k", whole(thousands as u64)),
            false => format!("{thousands:.1}k"),
        };
    }
    let decimals = match top {
        top if top >= 4.0 => 0,
        top if top >= 0.4 => 1,
        top if top >= 0.04 => 2,
        _ => 3,
    };
    match value.fract() == 0.0 {
        true => whole(value as u64),
        false => format!("{value:.decimals$}"),
    }
}

/// A label of a logarithmic axis, on which marks are far apart.
pub fn short(value: f64) -> String {
    match value >= 1.0 {
        true => tick(value, 1000.0),
        false => format!("{}", (value * 1e6).round() / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(values: Vec<Option<f64>>) -> Chart<'static> {
        const SECONDS: [f64; 4] = [0.0, 0.1, 0.2, 0.3];
        Chart::new(&SECONDS, values, "a < b & \"c\"".to_owned())
    }

    #[test]
    fn a_gap_divides_the_line() {
        let chart = chart(vec![None, Some(1.0), None, Some(2.0)]);
        assert_eq!(runs(chart.seconds, &chart.values), [vec![(0.1, 1.0)], vec![(0.3, 2.0)]]);
        assert_eq!(chart.to_svg().matches("<circle").count(), 2);
    }

    #[test]
    fn a_chart_without_any_value_is_still_drawn() {
        let svg = chart(vec![None; 4]).to_svg();
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    }

    #[test]
    fn each_value_has_a_stripe_that_shows_it() {
        let chart = chart(vec![Some(1.0), None, Some(2.5), Some(3.0)]);
        let svg = chart.to_svg();
        assert_eq!(svg.matches("<rect class=\"tip\"").count(), 3);
        assert!(svg.contains("<title>0.2 s: 2.50</title>"), "{svg}");
        assert_eq!(chart.points(), 3);
    }

    #[test]
    fn the_label_is_escaped() {
        let svg = chart(vec![Some(1.0); 4]).to_svg();
        assert!(svg.contains("aria-label=\"a &lt; b &amp; &quot;c&quot;\""), "{svg}");
    }

    #[test]
    fn every_colour_of_a_chart_is_themed_by_the_style_sheet() {
        let mut chart = chart(vec![Some(1.0); 4]);
        chart.peaks = Some(vec![2.0; 4]);
        let values = [Some(3.0); 4];
        chart.curves = vec![Curve { seconds: chart.seconds, values: &values, colour: THIRD }];
        let style = include_str!("style.css");
        let svg = chart.to_svg();
        for colour in svg.split("=\"#").skip(1).map(|rest| &rest[..6]) {
            assert!(style.contains(&format!("\"#{colour}\"")), "#{colour} is not themed");
        }
    }

    #[test]
    fn ticks_have_the_digits_that_the_axis_needs() {
        assert_eq!(tick(0.5, 1.0), "0.5");
        assert_eq!(tick(40_000.0, 100_000.0), "40k");
        assert_eq!(tick(2_500.0, 21_000.0), "2.5k");
        assert_eq!(tick(5_000.0, 9_000.0), "5,000");
        assert_eq!(tick(0.02, 0.05), "0.02");
    }

    #[test]
    fn a_line_is_divided_where_its_window_is_full() {
        let run = [(0.0, 1.0), (1.0, 1.0), (2.0, 1.0), (3.0, 1.0)];
        assert_eq!(divided(&run, 0.0), (vec![], run.to_vec()));
        assert_eq!(divided(&run, 2.0), (run[..3].to_vec(), run[2..].to_vec()));
        assert_eq!(divided(&run, 9.0), (run.to_vec(), vec![]));
    }

    #[test]
    fn a_high_water_mark_rises_in_steps() {
        assert_eq!(steps(&[0.0, 1.0], &[2.0, 5.0]), [(0.0, 2.0), (1.0, 2.0), (1.0, 5.0)]);
    }
}
