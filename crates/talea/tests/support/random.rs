//! Numbers that are the same in each run, and floats next to each other.

/// The floats next to one, and itself.
pub(crate) fn neighbours(x: f64) -> [f64; 3] {
    let next = |up: bool| match x {
        _ if !x.is_finite() => x,
        0.0 if up => f64::from_bits(1),
        0.0 => -f64::from_bits(1),
        _ if (x > 0.0) == up => f64::from_bits(x.to_bits() + 1),
        _ => f64::from_bits(x.to_bits() - 1),
    };
    [next(false), x, next(true)]
}

/// A small generator with a fixed seed: xorshift.
#[derive(Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        (0..8).for_each(|_| _ = random.next());
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// More than 0 and at most 1.
    pub(crate) fn share(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// A number of the normal distribution with mean 0 and deviation 1.
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.share().ln()).sqrt() * (std::f64::consts::TAU * self.share()).cos()
    }
}
