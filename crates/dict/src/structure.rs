//! What DDL and XML share in putting a definition together.

use crate::config::{KeyForm, Layout, LayoutKind};
use crate::definition::{Attribute, Key, KeyColumn, Lifetime, ObjectId, Structure};
use crate::error::{Code, DictError};

/// Splits the columns into key and attributes. The only key column of a simple layout is a UInt64, whatever its
/// declared type; several make a complex key, which FLAT, the one layout that stays simple with them, then refuses.
pub(crate) fn from_columns(
    columns: Vec<Attribute>,
    key_names: &[String],
    form: KeyForm,
) -> Result<Structure, DictError> {
    let mut key = Vec::with_capacity(key_names.len());
    for (at, name) in key_names.iter().enumerate() {
        if key_names[..at].contains(name) {
            return Err(DictError::bad_arguments(format!("PRIMARY KEY names column {name} twice")));
        }
        let column = columns.iter().find(|column| column.name == *name).ok_or_else(|| {
            let known: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
            DictError::definition(format!(
                "PRIMARY KEY: unknown column {name}; the columns are {}",
                known.join(", ")
            ))
        })?;
        if let Some(expression) = &column.expression {
            let what = format!(
                "EXPRESSION {expression} of key column {name}: keys are looked up by the source's own column. Make a view of \
                 the source that has the expression as a column"
            );
            return Err(DictError::new(Code::NotImplemented, what));
        }
        key.push(KeyColumn {
            name: column.name.clone(),
            data_type: column.data_type.clone(),
            object_id: column.object_id,
        });
    }
    let attributes = columns.into_iter().filter(|column| !key_names.contains(&column.name)).collect();
    let key = match (form, key.as_slice()) {
        (KeyForm::Simple, [only]) if only.object_id == ObjectId::Yes => {
            return Err(DictError::bad_arguments(format!(
                "IS_OBJECT_ID of key column {}: a simple key is a UInt64; use a layout COMPLEX_KEY_.. with the column as a String",
                only.name
            )));
        }
        (KeyForm::Simple, [only]) => Key::Simple { name: only.name.clone() },
        _ => Key::Complex(key),
    };
    Ok(Structure { key, attributes })
}

/// LIFETIME, which cache layouts must have and DIRECT must not.
pub(crate) fn lifetime_or_default(
    lifetime: Option<Lifetime>,
    layout: &Layout,
) -> Result<Lifetime, DictError> {
    match (lifetime, &layout.kind) {
        (Some(_), LayoutKind::Direct) => Err(DictError::bad_arguments(
            "'lifetime' parameter is redundant for the dictionary of layout 'direct'",
        )),
        (None, LayoutKind::Direct) => Ok(Lifetime::FOREVER),
        (Some(lifetime), _) => Ok(lifetime),
        (None, _) => Err(DictError::definition(format!(
            "LIFETIME is missing; layout {} needs LIFETIME(seconds) or LIFETIME(MIN a MAX b), 0 for ever",
            layout.name()
        ))),
    }
}
