//! Plots as SVG.

use plotters::prelude::*;
use std::path::Path;

/// A plot that could not be drawn or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw the plot: {0}")]
pub struct PlotError(String);

/// Groups of bars on a logarithmic axis: `values[group][series]`, above zero.
pub fn bars(
    path: &Path,
    title: &str,
    unit: &str,
    series: &[&str],
    groups: &[(String, Vec<f64>)],
) -> Result<(), PlotError> {
    draw(path, title, unit, series, groups).map_err(|error| PlotError(error.to_string()))
}

fn draw(
    path: &Path,
    title: &str,
    unit: &str,
    series: &[&str],
    groups: &[(String, Vec<f64>)],
) -> Result<(), Box<dyn std::error::Error>> {
    let values = || groups.iter().flat_map(|(_, values)| values.iter().copied()).filter(|v| *v > 0.0);
    let low = values().fold(f64::MAX, f64::min);
    let high = values().fold(0.0, f64::max);
    let floor = 10f64.powf((low / 2.0).log10().floor());
    let root = SVGBackend::new(path, (1000, 480)).into_drawing_area();
    root.fill(&WHITE)?;
    let width = series.len() + 1;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(70)
        .build_cartesian_2d(0f64..(groups.len() * width) as f64, (floor..high * 2.0).log_scale())?;
    let label = |x: &f64| {
        let group = (*x / width as f64) as usize;
        groups.get(group).map_or(String::new(), |(name, _)| name.clone())
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(groups.len() * 2 + 1)
        .x_label_formatter(&|_| String::new())
        .y_desc(unit)
        .y_label_formatter(&|y| format!("{y}"))
        .draw()?;
    for (s, name) in series.iter().enumerate() {
        let color = Palette99::pick(s).mix(0.9);
        let bars = groups.iter().enumerate().filter(|(_, (_, v))| v[s] > 0.0).map(|(g, (_, v))| {
            let left = (g * width + s) as f64 + 0.5;
            Rectangle::new([(left, floor), (left + 0.9, v[s])], color.filled())
        });
        chart
            .draw_series(bars)?
            .label(*name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], color.filled()));
    }
    let names = groups.iter().enumerate().map(|(g, _)| {
        let x = (g * width) as f64 + 0.5;
        EmptyElement::at((x, floor)) + Text::new(label(&x), (0, 8), ("sans-serif", 13))
    });
    chart.draw_series(names)?;
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    root.present()?;
    Ok(())
}
