//! Trigonometry in degrees, exact where the result is a round number.
//!
//! Each function reduces its argument to the first quadrant. There, sine up to 30 degrees and
//! cosine up to 60 are scaled. So the value at the end of the range is exactly one half. The other
//! two ranges follow from them.

/// A degree in radians.
pub(super) const RADIANS_PER_DEGREE: f64 = 0.017_453_292_519_943_295;

/// The sine of 0 to 30 degrees.
fn sin_to_30(x: f64) -> f64 {
    let end = (30.0 * RADIANS_PER_DEGREE).sin();
    (x * RADIANS_PER_DEGREE).sin() / end / 2.0
}

/// The cosine of 0 to 60 degrees.
fn cos_to_60(x: f64) -> f64 {
    let end = 1.0 - (60.0 * RADIANS_PER_DEGREE).cos();
    1.0 - (1.0 - (x * RADIANS_PER_DEGREE).cos()) / end / 2.0
}

/// The sine of 0 to 90 degrees.
fn sin_to_90(x: f64) -> f64 {
    if x <= 30.0 { sin_to_30(x) } else { cos_to_60(90.0 - x) }
}

/// The cosine of 0 to 90 degrees.
fn cos_to_90(x: f64) -> f64 {
    if x <= 60.0 { cos_to_60(x) } else { sin_to_30(90.0 - x) }
}

/// An angle as one of the first quadrant, with the signs that sine and cosine have there.
fn reduce(x: f64) -> (f64, f64, f64) {
    let (mut x, mut sin, mut cos) = (x % 360.0, 1.0, 1.0);
    if x < 0.0 {
        (x, sin) = (-x, -sin);
    }
    if x > 180.0 {
        (x, sin) = (360.0 - x, -sin);
    }
    if x > 90.0 {
        (x, cos) = (180.0 - x, -cos);
    }
    (x, sin, cos)
}

pub(super) fn sin(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let (x, sign, _) = reduce(x);
    sign * sin_to_90(x)
}

pub(super) fn cos(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let (x, _, sign) = reduce(x);
    sign * cos_to_90(x)
}

pub(super) fn tan(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let (x, sin, cos) = reduce(x);
    let at_45 = sin_to_90(45.0) / cos_to_90(45.0);
    // Adding zero turns a negative zero into a positive one.
    sin * cos * (sin_to_90(x) / cos_to_90(x) / at_45) + 0.0
}

pub(super) fn cot(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let (x, sin, cos) = reduce(x);
    let at_45 = cos_to_90(45.0) / sin_to_90(45.0);
    sin * cos * (cos_to_90(x) / sin_to_90(x) / at_45) + 0.0
}

/// The angle of 0 to 90 degrees with this sine.
fn asin_to_90(x: f64) -> f64 {
    if x <= 0.5 { x.asin() / 0.5f64.asin() * 30.0 } else { 90.0 - x.acos() / 0.5f64.acos() * 60.0 }
}

/// The angle of 0 to 90 degrees with this cosine.
fn acos_to_90(x: f64) -> f64 {
    if x <= 0.5 { 90.0 - x.asin() / 0.5f64.asin() * 30.0 } else { x.acos() / 0.5f64.acos() * 60.0 }
}

pub(super) fn asin(x: f64) -> f64 {
    if x.is_nan() {
        x
    } else if x >= 0.0 {
        asin_to_90(x)
    } else {
        -asin_to_90(-x)
    }
}

pub(super) fn acos(x: f64) -> f64 {
    if x.is_nan() {
        x
    } else if x >= 0.0 {
        acos_to_90(x)
    } else {
        90.0 + asin_to_90(-x)
    }
}

pub(super) fn atan(x: f64) -> f64 {
    x.atan() / 1f64.atan() * 45.0
}

pub(super) fn atan2(y: f64, x: f64) -> f64 {
    y.atan2(x) / 1f64.atan() * 45.0
}
