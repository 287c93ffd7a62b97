//! The columns of RANGE(..).

use super::LookupKey;
use crate::config::Layout;
use crate::definition::Attribute;
use crate::error::DictError;
use crate::types::DataType;

/// The columns of RANGE(MIN .. MAX ..).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RangeNames {
    pub min: String,
    pub max: String,
}

/// Puts the columns of RANGE(..) before the other attributes.
pub(crate) fn bounds_first(
    mut attributes: Vec<Attribute>,
    layout: &Layout,
    range: Option<RangeNames>,
) -> Result<Vec<Attribute>, DictError> {
    let Some(range) = range else {
        return match layout.lookup_key() {
            LookupKey::KeyInRange => Err(DictError::bad_arguments(format!(
                "dictionary of layout '{}' requires .structure.range_min and .structure.range_max: RANGE(MIN a MAX b)",
                layout.name().to_lowercase()
            ))),
            LookupKey::Key | LookupKey::Address | LookupKey::Point | LookupKey::Text => Ok(attributes),
        };
    };
    let mut bounds = Vec::new();
    for (which, name) in [("MIN", &range.min), ("MAX", &range.max)] {
        let place = attributes.iter().position(|attribute| attribute.name == *name).ok_or_else(|| {
            let message = format!("{which} {name} attribute is not defined in the dictionary attributes");
            DictError::definition(message)
        })?;
        bounds.push(bound(attributes.remove(place)));
    }
    if layout.lookup_key() != LookupKey::KeyInRange {
        return Err(DictError::bad_arguments(
            "elements .structure.range_min and .structure.range_max should be defined only for a dictionary of layout 'range_hashed'",
        ));
    }
    bounds.extend(attributes);
    Ok(bounds)
}

/// NULL is no bound: a row with NULL gets another bound, or is left out.
fn bound(mut attribute: Attribute) -> Attribute {
    if let DataType::Nullable(inner) = attribute.data_type {
        attribute.data_type = *inner;
        attribute.default = None;
    }
    attribute
}
