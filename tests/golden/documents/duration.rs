//! Durations as people write them: `90s`, `2h30m`, `1d`.

use std::fmt;
use std::str::FromStr;

/// A length of time in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(u64);

#[derive(Debug, PartialEq, Eq)]
pub enum ParseError {
    Empty,
    Unit(char),
    Number(String),
}

impl Duration {
    pub const fn seconds(self) -> u64 {
        self.0
    }

    /// Half as long, rounded down.
    pub const fn half(self) -> Self {
        Self(self.0 / 2)
    }
}

impl FromStr for Duration {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(ParseError::Empty);
        }
        let mut total = 0;
        let mut digits = String::new();
        for c in text.chars() {
            if c.is_ascii_digit() {
                digits.push(c);
                continue;
            }
            let factor = match c {
                's' => 1,
                'm' => 60,
                'h' => 3_600,
                'd' => 86_400,
                other => return Err(ParseError::Unit(other)),
            };
            let number: u64 = digits.parse().map_err(|_| ParseError::Number(digits.clone()))?;
            total += number * factor;
            digits.clear();
        }
        Ok(Self(total))
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}s", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_adds_up_units() {
        assert_eq!("2h30m".parse(), Ok(Duration(9_000)));
    }
}
