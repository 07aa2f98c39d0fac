//! A page of pixels, and its PNG.

use super::font;

/// RGB pixels, initially white.
pub(super) struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Canvas {
    pub(super) fn new(width: usize, height: usize) -> Canvas {
        Canvas { width, height, pixels: vec![255; width * height * 3] }
    }

    /// Blends a colour into a pixel; 1 covers it.
    fn blend(&mut self, x: i64, y: i64, colour: [u8; 3], cover: f32) {
        let inside = |v: i64, end: usize| usize::try_from(v).ok().filter(|&v| v < end);
        let (Some(x), Some(y)) = (inside(x, self.width), inside(y, self.height)) else { return };
        let at = (y * self.width + x) * 3;
        for (old, new) in self.pixels[at..at + 3].iter_mut().zip(colour) {
            let mixed = f32::from(*old) * (1.0 - cover) + f32::from(new) * cover;
            *old = mixed.round() as u8;
        }
    }

    /// A filled rectangle on whole pixels.
    pub(super) fn fill(&mut self, x: f32, y: f32, width: f32, height: f32, colour: [u8; 3]) {
        let (x, y) = (x.round() as i64, y.round() as i64);
        for dy in 0..height.round() as i64 {
            for dx in 0..width.round() as i64 {
                self.blend(x + dx, y + dy, colour, 1.0);
            }
        }
    }

    /// A disc with a soft edge.
    pub(super) fn dot(&mut self, x: f32, y: f32, radius: f32, colour: [u8; 3], strength: f32) {
        let reach = radius.ceil() as i64 + 1;
        let (cx, cy) = (x.floor() as i64, y.floor() as i64);
        for py in cy - reach..=cy + reach {
            for px in cx - reach..=cx + reach {
                let (dx, dy) = (px as f32 + 0.5 - x, py as f32 + 0.5 - y);
                let cover = (radius + 0.5 - dx.hypot(dy)).clamp(0.0, 1.0);
                if cover > 0.0 {
                    self.blend(px, py, colour, cover * strength);
                }
            }
        }
    }

    /// A line of text to the right, its upper left corner at this point.
    pub(super) fn text(&mut self, x: f32, y: f32, text: &str, scale: usize, colour: [u8; 3]) {
        let (x, y) = (x.round() as i64, y.round() as i64);
        font::render(text, scale, |across, down, cover| {
            self.blend(x + across, y + down, colour, cover);
        });
    }

    /// A line of text upwards: it begins at `y`, and its upper edge is at `x`.
    pub(super) fn text_up(&mut self, x: f32, y: f32, text: &str, scale: usize, colour: [u8; 3]) {
        let (x, y) = (x.round() as i64, y.round() as i64);
        font::render(text, scale, |across, down, cover| {
            self.blend(x + down, y - across, colour, cover);
        });
    }

    /// The page as a PNG file.
    pub(super) fn png(&self) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::High);
        let mut writer = encoder.write_header().expect("a vector takes every write");
        writer.write_image_data(&self.pixels).expect("the image has the size it was said to have");
        drop(writer);
        file
    }
}
