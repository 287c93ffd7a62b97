//! Functions over the HIERARCHICAL attribute: the way up (`dictGetHierarchy`, `dictIsIn`, `dictGetRoot`) and the way
//! down (`dictGetChildren`, `dictGetDescendants`).

mod down;
mod up;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayBuilder, ArrayRef, AsArray, BooleanArray, ListArray, UInt64Array, UInt64Builder,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, UInt64Type};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use granary_dialect::Error;
use granary_dialect::functions::arguments::{self, check_count, constants};
use granary_dialect::functions::constant_text;
use granary_dialect::functions::{check_bytes, rows, shaped};
use granary_dialect::rewrite::CONSTANT_SUFFIX;
use granary_dialect::types::type_name;
use granary_dict::{Dictionary, Key, LayoutKind};

use self::down::{Descendants, Level};
use self::up::Ancestors;
use super::converted::converted;
use crate::catalogue::Catalogue;

/// What is asked of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HierarchyFunctionKind {
    /// All its ancestors, the key first.
    Ancestors,
    /// Its last ancestor.
    Root,
    /// Whether another key is one of its ancestors, or the key itself.
    IsIn,
    /// Its direct children.
    Children,
    /// Its descendants, all or those at one level.
    Descendants,
}

/// The functions and what they ask.
pub const FUNCTIONS: [(&str, HierarchyFunctionKind); 5] = [
    ("dictGetHierarchy", HierarchyFunctionKind::Ancestors),
    ("dictGetRoot", HierarchyFunctionKind::Root),
    ("dictIsIn", HierarchyFunctionKind::IsIn),
    ("dictGetChildren", HierarchyFunctionKind::Children),
    ("dictGetDescendants", HierarchyFunctionKind::Descendants),
];

/// A function of the hierarchy.
#[derive(Debug)]
pub struct HierarchyFunction {
    name: String,
    kind: HierarchyFunctionKind,
    catalogue: Arc<Catalogue>,
    signature: Signature,
}

impl PartialEq for HierarchyFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.catalogue, &other.catalogue)
    }
}

impl Eq for HierarchyFunction {}

impl Hash for HierarchyFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl HierarchyFunction {
    pub fn new(
        name: String,
        kind: HierarchyFunctionKind,
        volatility: Volatility,
        catalogue: Arc<Catalogue>,
    ) -> Self {
        Self { name, kind, catalogue, signature: arguments::any(volatility) }
    }

    /// Refuses a wrong number of arguments, and a level that is no number.
    fn check(&self, given: &[FieldRef]) -> Result<()> {
        let shown = self.name.trim_end_matches(CONSTANT_SUFFIX);
        let wanted = match self.kind {
            HierarchyFunctionKind::IsIn => 3..=3,
            HierarchyFunctionKind::Ancestors
            | HierarchyFunctionKind::Root
            | HierarchyFunctionKind::Children => 2..=2,
            HierarchyFunctionKind::Descendants => 2..=3,
        };
        check_count(shown, given.len(), wanted)?;
        match given.get(2) {
            Some(level)
                if self.kind == HierarchyFunctionKind::Descendants
                    && !level.data_type().is_integer()
                    && !level.data_type().is_null() =>
            {
                let is = type_name(level);
                Err(Error::illegal_type(format!(
                    "Illegal type of third argument of function {shown}. Expected const unsigned integer. Actual type {is}"
                ))
                .into())
            }
            _ => Ok(()),
        }
    }

    /// The dictionary, and its attribute that names the parent.
    fn resolve(&self, constants: &[Option<&ScalarValue>]) -> Result<(Arc<Dictionary>, usize)> {
        let shown = self.name.trim_end_matches(CONSTANT_SUFFIX);
        let name = constant_text(constants[0]).ok_or_else(|| {
            let message =
                format!("Argument 1 of function {shown} must be a constant string: the dictionary's name");
            Error::illegal_type(message)
        })?;
        let dictionary = self.catalogue.dictionary_shown_as(name)?;
        let structure = &dictionary.definition().structure;
        let full_name = dictionary.definition().full_name();
        if !matches!(structure.key, Key::Simple { .. }) {
            let message =
                format!("Dictionary {full_name} does not support hierarchy: its key is not one UInt64");
            return Err(Error::unsupported_method(message).into());
        }
        let Some(parent) = structure.parent_index() else {
            let message =
                format!("Dictionary {full_name} does not support hierarchy: no attribute is HIERARCHICAL");
            return Err(Error::unsupported_method(message).into());
        };
        // No cache layout knows the way down, which needs all keys.
        let has_all = matches!(dictionary.definition().layout.kind, LayoutKind::FullLoad(_));
        if !has_all
            && matches!(self.kind, HierarchyFunctionKind::Children | HierarchyFunctionKind::Descendants)
        {
            let message = format!("Function {shown}: hierarchical index is not supported for {full_name}");
            return Err(Error::not_implemented(message).into());
        }
        Ok((dictionary, parent))
    }

    /// The descendants that a call asks for, by its third argument; 0 is all.
    fn level(&self, constants: &[Option<&ScalarValue>]) -> Result<Level> {
        let given = match (self.kind, constants.get(2)) {
            (HierarchyFunctionKind::Children, _) => Some(1),
            (_, None) => Some(0),
            (_, Some(None)) => None,
            (_, Some(Some(scalar))) if !scalar.data_type().is_integer() => None,
            (_, Some(Some(scalar))) => match scalar.cast_to(&DataType::Int64)? {
                ScalarValue::Int64(Some(level)) => usize::try_from(level).ok(),
                _ => None,
            },
        };
        let shown = self.name.trim_end_matches(CONSTANT_SUFFIX);
        match given {
            Some(0) => Ok(Level::All),
            Some(level) => Ok(Level::At(level)),
            None => Err(Error::illegal_type(format!(
                "Illegal type of third argument of function {shown}. Expected const unsigned integer"
            ))
            .into()),
        }
    }
}

impl ScalarUDFImpl for HierarchyFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(format!("the type of {} needs its constant arguments", self.name)))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.check(args.arg_fields)?;
        self.resolve(args.scalar_arguments)?;
        // For NULL itself as key, the whole answer is NULL.
        if args.arg_fields[1..].iter().any(|field| field.data_type().is_null()) {
            return Ok(Arc::new(Field::new(self.name.as_str(), DataType::Null, true)));
        }
        let data_type = match self.kind {
            HierarchyFunctionKind::IsIn => DataType::Boolean,
            HierarchyFunctionKind::Root => DataType::UInt64,
            HierarchyFunctionKind::Ancestors
            | HierarchyFunctionKind::Children
            | HierarchyFunctionKind::Descendants => DataType::List(item()),
        };
        let nullable = !data_type.is_nested() && args.arg_fields[1..].iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name.as_str(), data_type, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (dictionary, parent) = self.resolve(&constants(&args.args))?;
        if args.return_field.data_type().is_null() {
            return Ok(ColumnarValue::Scalar(ScalarValue::Null));
        }
        let rows = rows(&args.args[1..], args.number_rows);
        let keys = |place: usize| -> Result<UInt64Array> {
            let array = args.args[place].to_array(rows)?;
            let array =
                converted(&args.arg_fields[place], &array, &Field::new("key", DataType::UInt64, true))?;
            Ok(array.as_primitive::<UInt64Type>().clone())
        };
        let mut asked = keys(1)?;
        // An array is never NULL: ClickHouse looks up the value under the NULL.
        if args.return_field.data_type().is_nested() && asked.null_count() > 0 {
            asked = UInt64Array::from_iter_values(asked.iter().map(Option::unwrap_or_default));
        }
        if matches!(self.kind, HierarchyFunctionKind::Children | HierarchyFunctionKind::Descendants) {
            let children = dictionary.children().map_err(Error::from)?;
            let level = self.level(&constants(&args.args))?;
            let below = children.map(|children| Descendants::find(&children, &asked, level)).transpose()?;
            return shaped(lists(below.unwrap_or_default().rows())?, &args.args[1..2]);
        }
        let ancestors = Ancestors::find(&dictionary, parent, &asked)?;
        let ancestors = asked.iter().map(|key| ancestors.up(key));
        let answer: ArrayRef = match self.kind {
            HierarchyFunctionKind::IsIn => {
                let above = keys(2)?;
                let found = ancestors.zip(above.values()).map(|(way, above)| way.contains(above));
                let nulls = NullBuffer::union(asked.nulls(), above.nulls());
                Arc::new(BooleanArray::new(found.collect::<Vec<_>>().into(), nulls))
            }
            HierarchyFunctionKind::Root => {
                // A key that is not in the dictionary has no root.
                let roots = ancestors.map(|way| way.last().copied().unwrap_or(0)).collect::<Vec<_>>();
                Arc::new(UInt64Array::new(roots.into(), asked.nulls().cloned()))
            }
            _ => lists(ancestors)?,
        };
        shaped(answer, &args.args[1..])
    }
}

fn item() -> FieldRef {
    Arc::new(Field::new("item", DataType::UInt64, false))
}

/// The rows' keys as lists.
///
/// # Errors
/// MEMORY_LIMIT_EXCEEDED if they are too many for one block.
fn lists(rows: impl Iterator<Item = impl AsRef<[u64]>>) -> Result<ArrayRef> {
    let mut items = UInt64Builder::new();
    let mut lengths = Vec::new();
    for row in rows {
        let row = row.as_ref();
        check_bytes(((items.len() + row.len()) * size_of::<u64>()) as u64)?;
        items.append_slice(row);
        lengths.push(row.len());
    }
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(item(), offsets, Arc::new(items.finish()), None)?))
}
