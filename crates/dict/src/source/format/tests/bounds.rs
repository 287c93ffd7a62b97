//! Streams whose rows would take far more than the bytes that they come in.

use super::*;
use arrow::array::{
    ArrayData, DictionaryArray, Int8Array, Int64Array, ListArray, NullArray, RunArray, make_array,
};
use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType as Arrow, Field, Int8Type, Int64Type, Schema};
use arrow::ipc::writer::StreamWriter;
use std::sync::atomic::{AtomicUsize, Ordering};

fn varint(number: usize) -> Vec<u8> {
    let mut out = Vec::new();
    crate::row::put_varint(&mut out, number);
    out
}

/// A stream of one batch of these columns.
fn stream(columns: &[(&str, ArrayRef)]) -> Vec<u8> {
    let field = |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
    let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let arrays = columns.iter().map(|(_, array)| Arc::clone(array)).collect();
    let mut writer = StreamWriter::try_new(Vec::new(), &schema).unwrap();
    writer.write(&RecordBatch::try_new(schema, arrays).unwrap()).unwrap();
    writer.into_inner().unwrap()
}

fn columns(all: &[(&str, &str)]) -> Vec<(String, DataType)> {
    all.iter().map(|(name, text)| ((*name).to_owned(), DataType::parse(text).unwrap())).collect()
}

fn read(data_type: &str, array: ArrayRef) -> Result<ArrayRef, DictError> {
    let reader = RowReader::of_columns(Format::ArrowStream, &columns(&[("v", data_type)]));
    Ok(reader.read_all(&stream(&[("v", array)]))?.remove(0))
}

/// Values of a type of no length.
fn of_no_length(data_type: Arrow, len: usize) -> ArrayRef {
    let data = ArrayData::builder(data_type.clone()).len(len);
    let data = match &data_type {
        Arrow::FixedSizeList(item, _) => data.add_child_data(ArrayData::new_empty(item.data_type())),
        _ => data.add_buffer(Buffer::from([])),
    };
    make_array(data.build().unwrap())
}

#[test]
fn a_batch_of_arrow_has_bytes_for_its_values() {
    let item = |data_type| Arc::new(Field::new_list_field(data_type, true));
    let list = |items: ArrayRef| -> ArrayRef {
        let ends = OffsetBuffer::new(ScalarBuffer::from(vec![0, items.len() as i32]));
        Arc::new(ListArray::new(item(items.data_type().clone()), ends, items, None))
    };
    let runs = |len: i64| -> ArrayRef {
        let ends = Int64Array::from(vec![len]);
        Arc::new(RunArray::<Int64Type>::try_new(&ends, &StringArray::from(vec!["7"])).unwrap())
    };
    let nulls = |len| Arc::new(NullArray::new(len)) as ArrayRef;
    for (data_type, array) in [
        ("Decimal(76, 0)", nulls(1 << 38)),
        ("UInt64", nulls(1 << 31)),
        ("String", runs(1 << 38)),
        ("Array(UInt8)", of_no_length(Arrow::FixedSizeList(item(Arrow::Int8), 0), 1 << 38)),
        ("String", of_no_length(Arrow::FixedSizeBinary(0), 1 << 38)),
        ("Array(Decimal(76, 0))", list(nulls(i32::MAX as usize))),
        ("Array(String)", list(runs(i64::from(i32::MAX)))),
    ] {
        let what = format!("{data_type} of {}", array.data_type());
        assert_eq!(read(data_type, array).unwrap_err().name(), "LIMIT_EXCEEDED", "{what}");
    }
    // As many as there may be.
    assert_eq!(read("UInt64", nulls(70_000)).unwrap().null_count(), 70_000);
    assert_eq!(read("String", runs(70_000)).unwrap().len(), 70_000);
    // A column without bytes beside one that has them.
    let numbers: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..2_000_000));
    let bytes = stream(&[("k", Arc::clone(&numbers)), ("v", nulls(numbers.len()))]);
    let reader = RowReader::of_columns(Format::ArrowStream, &columns(&[("k", "UInt64"), ("v", "String")]));
    let read = reader.read_all(&bytes).unwrap();
    assert_eq!((&read[0], read[1].null_count()), (&numbers, numbers.len()));
}

#[test]
fn one_long_value_of_a_dictionary_is_not_copied_for_all_rows_at_once() {
    let keys = |rows| Int8Array::from_iter_values(std::iter::repeat_n(0, rows));
    let of = |text: &str, rows| -> ArrayRef {
        let values = Arc::new(StringArray::from(vec![text]));
        Arc::new(DictionaryArray::<Int8Type>::try_new(keys(rows), values).unwrap())
    };
    assert_eq!(read("String", of("x", 10_000)).unwrap().len(), 10_000);
    let mut rows = Rows::of_columns(&columns(&[("v", "String")])).at_most(64 << 20);
    let bytes = stream(&[("v", of(&"x".repeat(4 << 20), 100_000))]);
    let error = read_rows(Format::ArrowStream, &bytes, &mut rows).unwrap_err();
    assert_eq!(error.name(), "LIMIT_EXCEEDED", "{error}");
    assert!(rows.bytes() < 200 << 20, "{} bytes", rows.bytes());
}

/// A row that lacks a column takes the width of that column all the same.
#[test]
fn absent_columns_are_checked_while_rows_are_read() {
    let names: Vec<String> = (0..100).map(|i| format!("a{i}")).collect();
    let mut all = vec![("id", "UInt8")];
    all.extend(names.iter().map(|name| (name.as_str(), "Decimal(76, 0)")));
    let all = columns(&all);
    let rows = 100_000;
    let ids = stream(&[("id", Arc::new(Int8Array::from(vec![7; rows])))]);
    let native = [&b"\x01"[..], b"\xa0\x8d\x06", b"\x02id\x05UInt8", &vec![7; rows]].concat();
    let binary = [&b"\x01\x02id"[..], &vec![7; rows]].concat();
    for (format, bytes) in [
        ("JSONEachRow", "{}\n".repeat(rows).into_bytes()),
        ("JSONCompactEachRowWithNames", ["[\"id\"]\n", &"[7]\n".repeat(rows)].concat().into_bytes()),
        ("CSVWithNames", ["id\n", &"7\n".repeat(rows)].concat().into_bytes()),
        ("RowBinaryWithNames", binary),
        ("Native", native),
        ("ArrowStream", ids),
    ] {
        let format = Format::named(format).unwrap();
        let mut bounded = Rows::of_columns(&all).at_most(10 << 20);
        let error = read_rows(format, &bytes, &mut bounded).unwrap_err();
        assert_eq!(error.name(), "LIMIT_EXCEEDED", "{format:?}: {error}");
        assert!(bounded.bytes() < 20 << 20, "{format:?}: {} bytes", bounded.bytes());

        let taken = Arc::new(AtomicUsize::new(0));
        let total = Arc::clone(&taken);
        let check = move |bytes| match total.fetch_add(bytes, Ordering::Relaxed) + bytes > 10 << 20 {
            true => Err(DictError::new(Code::MemoryLimitExceeded, "no more")),
            false => Ok(()),
        };
        let error = RowReader::of_columns(format, &all).within_memory(check).read_all(&bytes).unwrap_err();
        assert_eq!(error.name(), "MEMORY_LIMIT_EXCEEDED", "{format:?}: {error}");
        let taken = taken.load(Ordering::Relaxed);
        assert!(taken < 20 << 20, "{format:?}: {taken} bytes");
    }
}

/// An item of 32 bytes is written in two, and one that is NULL in one.
#[test]
fn a_long_array_is_checked_before_it_is_read() {
    let check = |bytes| match bytes > 1 << 20 {
        true => Err(DictError::new(Code::MemoryLimitExceeded, "no more")),
        false => Ok(()),
    };
    let all = columns(&[("a", "Array(Nullable(Decimal(76, 0)))")]);
    let read = |format: &str, row: &[u8]| {
        let format = Format::named(format).unwrap();
        RowReader::of_columns(format, &all).within_memory(check).read_all(row)
    };
    let texts = |items: usize| format!("[{}1]\n", "1,".repeat(items - 1)).into_bytes();
    assert!(read("TabSeparated", &texts(10_000)).is_ok());
    assert_eq!(read("TabSeparated", &texts(100_000)).unwrap_err().name(), "MEMORY_LIMIT_EXCEEDED");
    let nulls = |items: usize| [varint(items), vec![1; items]].concat();
    assert!(read("RowBinary", &nulls(10_000)).is_ok());
    assert_eq!(read("RowBinary", &nulls(100_000)).unwrap_err().name(), "MEMORY_LIMIT_EXCEEDED");
}

/// Types are trees of many times their texts.
#[test]
fn a_head_has_so_many_bytes() {
    let columns = columns(&[("a", "UInt8")]);
    let text = |text: &str| [varint(text.len()), text.as_bytes().to_vec()].concat();
    let elements: Vec<String> = (0..300_000).map(|i| format!("element{i} UInt8")).collect();
    let (long, name) = (format!("Tuple({})", elements.join(",")), "n".repeat(1 << 20));
    for (format, bytes) in [
        ("Native", [varint(2), varint(1), text("b"), text(&long)].concat()),
        ("Native", [varint(6), varint(0), [text(&name), text("UInt8")].concat().repeat(6)].concat()),
        // Refused before they have come.
        ("Native", [varint(1), varint(0), varint(60 << 20), b"name".to_vec()].concat()),
        ("RowBinaryWithNames", [varint(1), varint(60 << 20), b"name".to_vec()].concat()),
        (
            "RowBinaryWithNamesAndTypes",
            [varint(2), text("a"), text("b"), text("UInt8"), text(&long)].concat(),
        ),
    ] {
        let mut reader = RowReader::of_columns(Format::named(format).unwrap(), &columns);
        let error = reader.push(&bytes).unwrap_err();
        assert!(error.message().len() < 2_000, "{format}: {} letters", error.message().len());
    }
}
