//! The way up: `dictGetHierarchy`, `dictIsIn` and `dictGetRoot`, over the attribute that is HIERARCHICAL. Each level
//! of a batch is one lookup of the keys in it.

use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, UInt64Array, UInt64Builder,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, UInt64Type};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use granary_dict::{Attribute, Dictionary, Hierarchy, Key, Literal};

use super::call::constants;
use crate::catalogue::Catalogue;
use crate::error::Error;
use crate::functions::exact::exact;
use crate::functions::numbers::{rows, shaped};
use crate::functions::planner::constant_text;
use crate::limits::HIERARCHY_DEPTH_MAX;
use crate::rewrite::CONSTANT_SUFFIX;

/// What is asked of a key's ancestors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// All of them, the key first.
    Ancestors,
    /// The last.
    Root,
    /// Whether another key is one of them, or the key itself.
    IsIn,
    /// The way down, which no cache layout knows: it would have to have all keys.
    Down,
}

/// The functions and what they ask.
pub const FUNCTIONS: [(&str, Question); 5] = [
    ("dictGetHierarchy", Question::Ancestors),
    ("dictGetRoot", Question::Root),
    ("dictIsIn", Question::IsIn),
    ("dictGetChildren", Question::Down),
    ("dictGetDescendants", Question::Down),
];

/// One of them.
#[derive(Debug)]
pub struct HierarchyFunction {
    name: String,
    question: Question,
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
    pub fn new(name: String, question: Question, volatility: Volatility, catalogue: Arc<Catalogue>) -> Self {
        Self { name, question, catalogue, signature: Signature::variadic_any(volatility) }
    }

    /// The dictionary, and its attribute that names the parent.
    fn resolve(&self, constants: &[Option<&ScalarValue>]) -> Result<(Arc<Dictionary>, usize)> {
        let shown = self.name.trim_end_matches(CONSTANT_SUFFIX);
        let wanted = match self.question {
            Question::IsIn => 3..=3,
            Question::Ancestors | Question::Root => 2..=2,
            Question::Down => 2..=3,
        };
        if !wanted.contains(&constants.len()) {
            let (given, wanted) = (constants.len(), wanted.end());
            let message = format!(
                "Number of arguments for function {shown} doesn't match: passed {given}, should be {wanted}"
            );
            return Err(Error::wrong_argument_count(message).into());
        }
        let name = constant_text(constants[0]).ok_or_else(|| {
            let message =
                format!("Argument 1 of function {shown} must be a constant string: the dictionary's name");
            Error::illegal_type(message)
        })?;
        let dictionary = self.catalogue.dictionary(name)?;
        let structure = &dictionary.definition().structure;
        let full_name = dictionary.definition().full_name();
        if !matches!(structure.key, Key::Simple { .. }) {
            let message =
                format!("Dictionary {full_name} does not support hierarchy: its key is not one UInt64");
            return Err(Error::unsupported_method(message).into());
        }
        let hierarchical = |attribute: &Attribute| attribute.hierarchy != Hierarchy::Flat;
        let Some(parent) = structure.attributes.iter().position(hierarchical) else {
            let message =
                format!("Dictionary {full_name} does not support hierarchy: no attribute is HIERARCHICAL");
            return Err(Error::unsupported_method(message).into());
        };
        if self.question == Question::Down {
            let message = format!("Function {shown}: hierarchical index is not supported for {full_name}");
            return Err(Error::not_implemented(message).into());
        }
        Ok((dictionary, parent))
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
        self.resolve(args.scalar_arguments)?;
        // Of NULL itself, all three are NULL.
        if args.arg_fields[1..].iter().any(|field| field.data_type().is_null()) {
            return Ok(Arc::new(Field::new(self.name.as_str(), DataType::Null, true)));
        }
        let data_type = match self.question {
            Question::IsIn => DataType::Boolean,
            Question::Root => DataType::UInt64,
            Question::Ancestors | Question::Down => DataType::List(item()),
        };
        Ok(Arc::new(Field::new(self.name.as_str(), data_type, false)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (dictionary, parent) = self.resolve(&constants(&args.args))?;
        if args.return_field.data_type().is_null() {
            return Ok(ColumnarValue::Scalar(ScalarValue::Null));
        }
        let rows = rows(&args.args[1..], args.number_rows);
        let keys = |place: usize| -> Result<UInt64Array> {
            let array = args.args[place].to_array(rows)?;
            let array = exact(&args.arg_fields[place], &array, &Field::new("key", DataType::UInt64, true))?;
            Ok(array.as_primitive::<UInt64Type>().clone())
        };
        let below = keys(1)?;
        let ways = Ways::find(&dictionary, parent, &below)?;
        let ways = below.iter().map(|key| ways.up(key));
        let answer: ArrayRef = match self.question {
            Question::IsIn => {
                let above = keys(2)?;
                let found = ways.zip(above.values()).map(|(way, above)| way.contains(above));
                Arc::new(BooleanArray::from(found.collect::<Vec<_>>()))
            }
            Question::Root => {
                // A key that the dictionary does not have has no root.
                Arc::new(UInt64Array::from_iter_values(ways.map(|way| way.last().copied().unwrap_or(0))))
            }
            Question::Ancestors | Question::Down => {
                let mut items = UInt64Builder::new();
                let mut lengths = Vec::with_capacity(rows);
                for way in ways {
                    items.append_slice(&way);
                    lengths.push(way.len());
                }
                let offsets = OffsetBuffer::from_lengths(lengths);
                Arc::new(ListArray::try_new(item(), offsets, Arc::new(items.finish()), None)?)
            }
        };
        shaped(answer, &args.args[1..])
    }
}

fn item() -> FieldRef {
    Arc::new(Field::new("item", DataType::UInt64, false))
}

/// Who stands above whom, of some keys and those above them.
struct Ways {
    /// The parents of keys that the dictionary has; `None`: it is at the top.
    parents: HashMap<u64, Option<u64>>,
}

impl Ways {
    /// Asks for the keys, then for their parents, level by level.
    fn find(dictionary: &Dictionary, parent: usize, keys: &UInt64Array) -> Result<Self> {
        let top = top(&dictionary.definition().structure.attributes[parent]);
        let mut parents: HashMap<u64, Option<u64>> = HashMap::new();
        let mut asked: HashSet<u64> = HashSet::new();
        let mut level: Vec<u64> = keys.iter().flatten().collect();
        for _ in 0..HIERARCHY_DEPTH_MAX {
            level.sort_unstable();
            level.retain(|key| asked.insert(*key));
            if level.is_empty() {
                break;
            }
            let keys: ArrayRef = Arc::new(UInt64Array::from(std::mem::take(&mut level)));
            let answer = dictionary.get(&[parent], std::slice::from_ref(&keys)).map_err(Error::from)?;
            let above = answer.columns[0].as_primitive::<UInt64Type>();
            for (row, &key) in keys.as_primitive::<UInt64Type>().values().iter().enumerate() {
                if answer.found.value(row) {
                    let above = Some(above).filter(|above| above.is_valid(row)).map(|above| above.value(row));
                    let above = above.filter(|above| Some(*above) != top);
                    parents.insert(key, above);
                    level.extend(above);
                }
            }
        }
        Ok(Self { parents })
    }

    /// A key and its ancestors, up to one at the top, one that the dictionary does not have, or the one before a key
    /// that was passed. A key that it does not have itself has none.
    fn up(&self, key: Option<u64>) -> Vec<u64> {
        let mut way = Vec::new();
        let mut next = key.filter(|key| self.parents.contains_key(key));
        while let Some(key) = next
            && way.len() < HIERARCHY_DEPTH_MAX
            && !way.contains(&key)
        {
            way.push(key);
            next = self.parents.get(&key).copied().flatten();
        }
        way
    }
}

/// What an attribute says of a key at the top, unless it is NULL: its DEFAULT.
fn top(attribute: &Attribute) -> Option<u64> {
    match &attribute.default {
        Some(Literal::Bare(text) | Literal::Quoted(text)) => text.parse().ok(),
        Some(Literal::Null) => None,
        None => (!attribute.data_type.is_nullable()).then_some(0),
    }
}
