//! The DEFAULT of a String that is no string: the text that ClickHouse makes of a literal.

use crate::definition::Literal;
use crate::error::DictError;
use crate::types::float_literal;

/// The literal as ClickHouse prints its value, however it was written: `5.10` is `5.1`, and `1e3` is `1000.`.
///
/// # Errors
/// An array, and a number whose text is not known.
pub(super) fn as_text(literal: Literal) -> Result<Literal, DictError> {
    let Literal::Bare(written) = &literal else { return Ok(literal) };
    if matches!(written.as_str(), "true" | "false" | "nan" | "inf" | "-inf") {
        return Ok(literal);
    }
    match number(written) {
        Some(text) => Ok(Literal::Bare(text)),
        None => Err(DictError::bad_arguments(format!(
            "the DEFAULT of a String is written in quotes: '{}'",
            written.replace('\\', "\\\\").replace('\'', "\\'")
        ))),
    }
}

fn number(written: &str) -> Option<String> {
    if let Ok(whole) = written.parse::<i128>() {
        let is_known = (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&whole);
        // In ClickHouse -0 is a float.
        return (is_known && written != "-0").then(|| whole.to_string());
    }
    let float = written.parse().ok().filter(|float: &f64| float.is_finite())?;
    let text = float_literal(float);
    (!text.contains('e')).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_the_text_of_its_value() {
        for (written, text) in [
            ("5", "5"),
            ("-5", "-5"),
            ("007", "7"),
            ("18446744073709551615", "18446744073709551615"),
            ("5.10", "5.1"),
            ("-0.50", "-0.5"),
            ("1e3", "1000."),
            ("0.0", "0."),
            ("1000.", "1000."),
            ("0.000001", "0.000001"),
            ("1e20", "100000000000000000000."),
            ("nan", "nan"),
            ("true", "true"),
        ] {
            assert_eq!(
                as_text(Literal::Bare(written.into())).unwrap(),
                Literal::Bare(text.into()),
                "{written}"
            );
        }
        for written in ["[1,2]", "1e21", "1e-7", "18446744073709551616", "-9223372036854775809"] {
            let error = as_text(Literal::Bare(written.into())).unwrap_err();
            assert!(error.message().contains(&format!("in quotes: '{written}'")), "{error}");
        }
        for literal in [Literal::Null, Literal::Quoted("5.10".into())] {
            assert_eq!(as_text(literal.clone()).unwrap(), literal);
        }
    }
}
