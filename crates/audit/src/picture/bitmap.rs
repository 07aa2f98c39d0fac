//! The page as a PNG.

use super::page::{self, Undrawn};
use super::panel::Panel;
use plotters::prelude::*;
use plotters::style::register_font;

/// A PNG is drawn this much larger, and then shrunk: its dots and letters have soft edges.
const FINE: u32 = 2;

/// Makes the letters of pictures known to `plotters`, as its font "sans-serif": one that looks the
/// same on every computer.
///
/// # Errors
/// None, unless the font is broken.
pub fn letters() -> Result<(), Undrawn> {
    let font = dejavu::sans::regular();
    register_font("sans-serif", FontStyle::Normal, font).map_err(|_| Undrawn::of("no font"))
}

/// The panels as a PNG of 1600 by 800 pixels.
///
/// # Errors
/// None that are expected: it is drawn in memory.
pub fn png(panels: &[Panel]) -> Result<Vec<u8>, Undrawn> {
    letters()?;
    let (width, height) = page::SIZE;
    let mut pixels = vec![0; (width * height * FINE * FINE * 3) as usize];
    {
        let backend = BitMapBackend::with_buffer(&mut pixels, (width * FINE, height * FINE));
        let area = backend.into_drawing_area();
        page::draw(&area, panels, usize::MAX, FINE as i32).map_err(Undrawn::of)?;
    }
    encoded(&shrunk(&pixels, width as usize)).map_err(Undrawn::of)
}

/// Every pixel is the mean of those that were drawn for it.
fn shrunk(pixels: &[u8], width: usize) -> Vec<u8> {
    let fine = FINE as usize;
    let row = width * fine * 3;
    let mut small = Vec::with_capacity(pixels.len() / (fine * fine));
    for rows in pixels.chunks_exact(row * fine) {
        for (x, colour) in (0..width).flat_map(|x| (0..3).map(move |colour| (x, colour))) {
            let part = |i| rows[(i / fine) * row + (x * fine + i % fine) * 3 + colour];
            let sum: u32 = (0..fine * fine).map(|i| u32::from(part(i))).sum();
            small.push((sum / (FINE * FINE)) as u8);
        }
    }
    small
}

fn encoded(pixels: &[u8]) -> Result<Vec<u8>, ::png::EncodingError> {
    let mut file = Vec::new();
    let mut encoder = ::png::Encoder::new(&mut file, page::SIZE.0, page::SIZE.1);
    encoder.set_color(::png::ColorType::Rgb);
    encoder.set_depth(::png::BitDepth::Eight);
    encoder.set_compression(::png::Compression::High);
    encoder.write_header()?.write_image_data(pixels)?;
    Ok(file)
}
