//! Policies by name, as they are written in configurations.

use super::{Admission, Flashield};
use std::fmt;
use std::str::FromStr;

/// A text that names no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} is not a policy: there are all, none, probability:P (0 to 1), reject-first, reuse, flashield and flashield:READS (1 to 15)"
)]
pub struct UnknownAdmission(String);

impl FromStr for Admission {
    type Err = UnknownAdmission;

    fn from_str(text: &str) -> Result<Self, UnknownAdmission> {
        let unknown = || UnknownAdmission(text.to_owned());
        let (name, value) = text.split_once(':').map_or((text, None), |(name, value)| (name, Some(value)));
        match (name, value) {
            ("all", None) => Ok(Self::All),
            ("none", None) => Ok(Self::None),
            ("reject-first", None) => Ok(Self::RejectFirst),
            ("reuse", None) => Ok(Self::Reuse),
            ("flashield", None) => Ok(Self::Flashield(Flashield::default())),
            ("flashield", Some(reads)) => match reads.parse() {
                Ok(reads @ 1..=super::COUNT_MAX) => Ok(Self::Flashield(Flashield { reads })),
                _ => Err(unknown()),
            },
            ("probability", Some(value)) => match value.parse() {
                Ok(probability) if (0.0..=1.0).contains(&probability) => Ok(Self::Probability(probability)),
                _ => Err(unknown()),
            },
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::None => f.write_str("none"),
            Self::Probability(probability) => write!(f, "probability:{probability}"),
            Self::RejectFirst => f.write_str("reject-first"),
            Self::Reuse => f.write_str("reuse"),
            Self::Flashield(Flashield { reads }) => write!(f, "flashield:{reads}"),
        }
    }
}
