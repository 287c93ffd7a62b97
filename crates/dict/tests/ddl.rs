//! CREATE DICTIONARY and XML: what they mean, what they refuse, and that nothing makes them fall over.

use granary_dict::{
    Attribute, Compression, CreateMode, Definition, Expired, Hierarchy, Injectivity, Key, KeyForm,
    LayoutKind, Lifetime, Literal, ObjectId, parse_create, parse_xml, parse_xml_each, quote,
};
use proptest::prelude::*;

const SEED: &str = "CREATE DICTIONARY ssd_dict_complex_key
(`k1` String, `k2` Int32, `a` UInt64 DEFAULT 0, `b` Int32 DEFAULT -1, `c` String DEFAULT 'none')
PRIMARY KEY k1, k2
SOURCE(POSTGRESQL(HOST 'localhost' PORT 5432 USER 'default' TABLE 'table_for_dict' PASSWORD 'it''s' DB 'database_for_dict'))
LIFETIME(MIN 1000 MAX 2000)
LAYOUT(COMPLEX_KEY_SSD_CACHE(FILE_SIZE 1073741824 PATH '/var/lib/clickhouse/clickhouse_dicts/1d' BLOCK_SIZE 4096 WRITE_BUFFER_SIZE 16384 MAX_STORED_KEYS 1048576))";

fn parse(sql: &str) -> Definition {
    parse_create(sql).unwrap_or_else(|e| panic!("{e}\n{sql}")).definition
}

#[test]
fn the_seed_s_statement() {
    let definition = parse(SEED);
    assert_eq!(definition.full_name(), "ssd_dict_complex_key");
    let Key::Complex(key) = &definition.structure.key else { panic!("the key is complex") };
    assert_eq!(key.iter().map(|k| k.name.as_str()).collect::<Vec<_>>(), ["k1", "k2"]);
    assert_eq!(key[1].data_type.to_string(), "Int32");
    let [a, b, c] = &definition.structure.attributes[..] else { panic!("three attributes") };
    assert_eq!(a.default, Some(Literal::Bare("0".into())));
    assert_eq!(b.default, Some(Literal::Bare("-1".into())));
    assert_eq!(c.default, Some(Literal::Quoted("none".into())));
    assert_eq!(definition.lifetime, Lifetime { min_seconds: 1000, max_seconds: 2000 });
    let LayoutKind::Ssd(ssd) = &definition.layout.kind else { panic!("on SSD") };
    assert_eq!((ssd.block_size, ssd.file_size, ssd.write_buffer_size), (4096, 1 << 30, 16384));
    assert_eq!((ssd.max_stored_keys, ssd.total_bytes()), (Some(1_048_576), 1 << 30));
    let source = &definition.source;
    assert_eq!(source.name(), "POSTGRESQL");
    assert_eq!((source.parameter("PORT"), source.parameter("PASSWORD")), (Some("5432"), Some("it's")));
    assert!(!format!("{definition:?}").contains("it's"), "debug output shows no password");
}

#[test]
fn shows_itself_as_clickhouse_does() {
    assert_eq!(
        parse(SEED).to_sql(),
        "CREATE DICTIONARY ssd_dict_complex_key
(
    `k1` String,
    `k2` Int32,
    `a` UInt64 DEFAULT 0,
    `b` Int32 DEFAULT -1,
    `c` String DEFAULT 'none'
)
PRIMARY KEY k1, k2
SOURCE(POSTGRESQL(HOST 'localhost' PORT 5432 USER 'default' PASSWORD '[HIDDEN]' DB 'database_for_dict' TABLE 'table_for_dict'))
LIFETIME(MIN 1000 MAX 2000)
LAYOUT(COMPLEX_KEY_SSD_CACHE(FILE_SIZE 1073741824 WRITE_BUFFER_SIZE 16384 PATH '/var/lib/clickhouse/clickhouse_dicts/1d' MAX_STORED_KEYS 1048576))"
    );
}

#[test]
fn types_beyond_arrow_in_ddl_and_xml() {
    let columns = [
        ("t", "DateTime64(4, 'Asia/Tokyo')", "'2024-02-29 01:02:03.5'"),
        ("i", "IPv4", "'1.2.3.4'"),
        ("j", "Nullable(IPv6)", "NULL"),
        ("d", "Decimal(76, 2)", "-1.5"),
        ("w", "UInt128", "340282366920938463463374607431768211455"),
        ("a", "Array(UInt8)", "[1, 2]"),
        ("s", "Array(Array(Nullable(String)))", r"[['it\'s, [', NULL], []]"),
        ("m", "Map(UInt8, Array(Float64))", "'{1:[2.5],1:[]}'"),
        ("n", "Nested(x UInt8, `y z` Bool)", "'[(1,true)]'"),
    ];
    let list: Vec<String> =
        columns.iter().map(|(name, kind, value)| format!("`{name}` {kind} DEFAULT {value}")).collect();
    let sql = format!(
        "CREATE DICTIONARY d (`id` UInt64, {}) PRIMARY KEY id SOURCE(SQLITE(PATH 'x' TABLE 't')) LIFETIME(1) \
         LAYOUT(CACHE(SIZE_IN_CELLS 8))",
        list.join(", ")
    );
    let definition = parse(&sql);
    assert_eq!(parse(&definition.to_sql_with_secrets()), definition);
    for column in list {
        assert!(definition.to_sql().contains(&column), "{column}\n{}", definition.to_sql());
    }
    let attributes = columns.map(|(name, kind, value)| {
        let value = if value == "NULL" { "" } else { value.trim_matches('\'') };
        format!(
            "<attribute><name>{name}</name><type>{kind}</type><null_value>{value}</null_value></attribute>"
        )
    });
    let xml = format!(
        "<dictionaries><dictionary><name>d</name><structure><id><name>id</name></id>{}</structure>\
         <source><sqlite><path>x</path><table>t</table></sqlite></source>\
         <layout><cache><size_in_cells>8</size_in_cells></cache></layout><lifetime>1</lifetime></dictionary></dictionaries>",
        attributes.concat()
    );
    let read = parse_xml(&xml).unwrap();
    let kinds = |definition: &Definition| {
        definition.structure.attributes.iter().map(|a| a.data_type.clone()).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&read[0]), kinds(&definition));
    for (kind, value) in [
        ("DateTime64(3)", "'x'"),
        ("IPv4", "'1.2.3'"),
        ("UInt128", "-1"),
        ("Array(UInt8)", "[256]"),
        ("Array(UInt8)", "NULL"),
        ("Array(UInt8)", "[1"),
        ("Array(String)", "[f(1)]"),
        ("Map(String, UInt8)", "{'a':1}"),
        ("Map(String, UInt8)", "map('a', 1)"),
        ("Map(String, UInt8)", "[]"),
        ("Map(String, UInt8)", "'{'"),
        ("Map(String, UInt8)", "5"),
        ("Map(String, UInt8)", "NULL"),
        ("Map(String)", "'{}'"),
        ("Map(Nullable(String), UInt8)", "'{}'"),
        ("Nullable(Map(String, UInt8))", "NULL"),
        ("Nested(x UInt8)", "'[(256)]'"),
        ("Tuple(UInt8)", "'(1)'"),
    ] {
        let sql = sql.replace("`i` IPv4 DEFAULT '1.2.3.4'", &format!("`i` {kind} DEFAULT {value}"));
        assert!(parse_create(&sql).is_err(), "{kind} {value}");
    }
}

#[test]
fn clauses_in_any_order_and_every_option() {
    let statement = parse_create(
        r#"create or replace dictionary "my db".`d``x` (
            -- a comment
            parent Nullable ( UInt64 ) default null HIERARCHICAL BIDIRECTIONAL,
            id UInt32,
            `when` DateTime('Europe/Moscow') INJECTIVE,
            n Decimal(9, 2) DEFAULT 1.5 IS_OBJECT_ID,
            s String DEFAULT 'a\'b\\c\nd'
        ) COMMENT 'what it''s for' SETTINGS(format_csv_allow_single_quotes = 0, x = 'y')
        LIFETIME(300) LAYOUT(cache(size_in_cells 1000 allow_read_expired_keys 1 MAX_THREADS_FOR_UPDATES 2))
        SOURCE(executable(command 'cat' format TSV implicit_key 1)) PRIMARY KEY (id);"#,
    )
    .unwrap();
    assert_eq!(statement.existing, CreateMode::CreateOrReplace);
    let definition = statement.definition;
    assert_eq!((definition.database.as_deref(), definition.name.as_str()), (Some("my db"), "d`x"));
    assert_eq!(definition.structure.key, Key::Simple { name: "id".into() });
    let names: Vec<&str> = definition.structure.attributes.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["parent", "when", "n", "s"]);
    assert_eq!(definition.structure.attributes[0].hierarchy, Hierarchy::Bidirectional);
    assert_eq!(definition.structure.attributes[1].injectivity, Injectivity::Injective);
    assert_eq!(definition.structure.attributes[3].default, Some(Literal::Quoted("a'b\\c\nd".into())));
    assert_eq!(definition.comment, "what it's for");
    assert_eq!(definition.settings[1], ("x".into(), "y".into()));
    assert_eq!(definition.lifetime, Lifetime { min_seconds: 0, max_seconds: 300 });
    assert_eq!(definition.layout.kind, LayoutKind::Memory { cells: 1000, compression: Compression::None });
    assert_eq!(definition.layout.update.expired, Expired::Read);
    let source = &definition.source;
    assert_eq!((source.name(), source.parameter("FORMAT")), ("EXECUTABLE", Some("TabSeparated")));
    assert_eq!(parse(&definition.to_sql_with_secrets()), definition);
}

#[test]
fn rows_may_be_compressed() {
    let sql = |layout: &str| {
        format!(
            "CREATE DICTIONARY d (id UInt64, s String) PRIMARY KEY id SOURCE(SQLITE(PATH 'x' TABLE 't')) \
             LAYOUT({layout}) LIFETIME(0)"
        )
    };
    let said = |layout: &str| match parse(&sql(layout)).layout.kind {
        LayoutKind::Ssd(ssd) => ssd.compression,
        LayoutKind::Memory { compression, .. } => compression,
        other => panic!("{other:?}"),
    };
    assert_eq!(said("SSD_CACHE(PATH 'c')"), Compression::None);
    assert_eq!(said("SSD_CACHE(PATH 'c' COMPRESSION 'ZSTD')"), Compression::Zstd);
    assert_eq!(said("CACHE(SIZE_IN_CELLS 10 COMPRESSION lz4)"), Compression::Lz4);
    let definition = parse(&sql("SSD_CACHE(PATH 'c' COMPRESSION 'zstd')"));
    assert!(definition.to_sql().contains("COMPRESSION 'zstd'"), "{}", definition.to_sql());
    assert_eq!(parse(&definition.to_sql()), definition);
    let error = parse_create(&sql("CACHE(SIZE_IN_CELLS 10 COMPRESSION 'gzip')")).unwrap_err();
    assert!(error.message().contains("must be 'zstd', 'lz4' or 'none', not 'gzip'"), "{error}");
    assert!(parse_create(&sql("DIRECT(COMPRESSION 'zstd')")).is_err());
    let xml = "<clickhouse><dictionary><name>d</name><structure><id><name>id</name></id>\
        <attribute><name>s</name><type>String</type><null_value/></attribute></structure>\
        <source><sqlite><path>x</path><table>t</table></sqlite></source><lifetime>0</lifetime>\
        <layout><cache><size_in_cells>10</size_in_cells><compression>zstd</compression></cache></layout>\
        </dictionary></clickhouse>";
    let storage = parse_xml(xml).unwrap().remove(0).layout.kind;
    assert_eq!(storage, LayoutKind::Memory { cells: 10, compression: Compression::Zstd });
}

#[test]
fn expressions_are_kept_as_written() {
    let definition = parse(
        "REPLACE DICTIONARY d (id UInt64, a String EXPRESSION concat(x, ',)', upper( y )) DEFAULT 'z', b Int8) PRIMARY KEY id \
         SOURCE(SQLITE(PATH 'x.db' TABLE 't')) LAYOUT(DIRECT())",
    );
    let a = &definition.structure.attributes[0];
    assert_eq!(a.expression.as_deref(), Some("concat(x, ',)', upper( y ))"));
    assert_eq!(a.default, Some(Literal::Quoted("z".into())));
    assert_eq!(parse(&definition.to_sql()), definition);
}

#[test]
fn keys_and_attributes_may_be_object_ids() {
    let sql = "CREATE DICTIONARY d (_id String IS_OBJECT_ID, b UInt8, parent String IS_OBJECT_ID) PRIMARY KEY _id, b \
               SOURCE(MONGODB(DB 'd' COLLECTION 'c')) LAYOUT(COMPLEX_KEY_DIRECT())";
    let definition = parse(sql);
    let keys: Vec<ObjectId> = definition.structure.key_columns().iter().map(|key| key.object_id).collect();
    assert_eq!(
        (keys, definition.structure.attributes[0].object_id),
        (vec![ObjectId::Yes, ObjectId::No], ObjectId::Yes)
    );
    assert_eq!(parse(&definition.to_sql()), definition);
    assert!(definition.to_sql().contains("`_id` String IS_OBJECT_ID,"));
    let xml = "<clickhouse><dictionary><name>d</name><structure><key>\
        <attribute><name>_id</name><type>String</type><is_object_id>true</is_object_id></attribute>\
        <attribute><name>b</name><type>UInt8</type></attribute></key>\
        <attribute><name>parent</name><type>String</type><null_value/><is_object_id>1</is_object_id></attribute>\
        </structure><source><mongodb><db>d</db><collection>c</collection></mongodb></source>\
        <layout><complex_key_direct/></layout></dictionary></clickhouse>";
    assert_eq!(parse_xml(xml).unwrap().remove(0).structure, definition.structure);
    let simple = sql.replace("PRIMARY KEY _id, b", "PRIMARY KEY _id").replace("COMPLEX_KEY_DIRECT", "DIRECT");
    assert_eq!(parse(&simple).layout.key_form, KeyForm::Complex, "its key is a String");
    let error = parse_create(&simple.replace("_id String", "_id UInt64")).unwrap_err();
    assert!(error.message().contains("IS_OBJECT_ID of key column _id: a simple key is a UInt64"), "{error}");
}

#[test]
fn a_dictionary_may_be_called_if() {
    let definition = parse(
        "CREATE DICTIONARY `if` (id UInt64) PRIMARY KEY id SOURCE(SQLITE(PATH 'x' TABLE 't')) LAYOUT(DIRECT)",
    );
    assert_eq!(parse(&definition.to_sql()), definition);
}

#[test]
fn defaults_of_ssd_cache() {
    let sql = "CREATE DICTIONARY IF NOT EXISTS d (id UInt64) PRIMARY KEY id SOURCE(SQLITE(PATH 'x' TABLE 't')) \
               LAYOUT(SSD_CACHE(PATH 'p')) LIFETIME(MIN 0 MAX 0)";
    let statement = parse_create(sql).unwrap();
    assert_eq!(statement.existing, CreateMode::IfNotExists);
    let LayoutKind::Ssd(ssd) = &statement.definition.layout.kind else { panic!("on SSD") };
    assert_eq!((ssd.block_size, ssd.file_size, ssd.write_buffer_size), (4096, 4 << 30, 4096));
    assert_eq!((ssd.read_buffer_size, ssd.max_partitions_count, ssd.memory_cache_size), (65536, 1, 16 << 20));
    let update = &statement.definition.layout.update;
    assert_eq!((update.max_update_queue_size, update.update_queue_push_timeout_ms), (100_000, 10));
    assert_eq!((update.query_wait_timeout_ms, update.max_threads_for_updates), (60_000, 4));
    assert_eq!(update.expired, Expired::Refetch);
}

/// A statement with some of its text replaced, the error's code, and words that its message has.
#[test]
fn refusals_name_the_clause_and_what_is_allowed() {
    let sql = "CREATE DICTIONARY d (id UInt64, v UInt8) PRIMARY KEY id SOURCE(SQLITE(PATH 'x' TABLE 't')) \
               LAYOUT(SSD_CACHE(PATH 'p')) LIFETIME(5)";
    parse(sql);
    let cases: &[(&str, &str, i32, &[&str])] = &[
        ("PRIMARY KEY id", "", 489, &["PRIMARY KEY is missing"]),
        ("LIFETIME(5)", "", 489, &["LIFETIME is missing", "LIFETIME(MIN a MAX b)"]),
        ("SOURCE(SQLITE(PATH 'x' TABLE 't'))", "", 489, &["SOURCE is missing"]),
        ("LAYOUT(SSD_CACHE(PATH 'p'))", "", 489, &["LAYOUT is missing"]),
        ("LIFETIME(5)", "LIFETIME(MIN 5 MAX 4)", 36, &["LIFETIME", "MIN 5 is greater than MAX 4"]),
        ("LIFETIME(5)", "LIFETIME(MAX 5)", 62, &["LIFETIME", "expected MIN"]),
        ("LIFETIME(5)", "LIFETIME()", 62, &["LIFETIME", "one number of seconds"]),
        ("LIFETIME(5)", "LIFETIME(5) LIFETIME(6)", 62, &["LIFETIME is given twice"]),
        ("LIFETIME(5)", "LIFETIME(99999999999)", 36, &["LIFETIME"]),
        ("SSD_CACHE(PATH 'p')", "DIRECT()", 36, &["redundant"]),
        ("SSD_CACHE(PATH 'p')", "TREE()", 137, &["LAYOUT", "TREE", "SSD_CACHE", "POLYGON", "REGEXP_TREE"]),
        ("SSD_CACHE(PATH 'p')", "COMPLEX_KEY_FLAT()", 137, &["COMPLEX_KEY_FLAT", "HASHED"]),
        ("SSD_CACHE(PATH 'p')", "HASHED(NOSUCH 5)", 115, &["NOSUCH", "QUERY_WAIT_TIMEOUT_MILLISECONDS"]),
        ("LAYOUT(SSD_CACHE(PATH 'p')) LIFETIME(5)", "LAYOUT(HASHED())", 489, &["LIFETIME is missing"]),
        (
            "PRIMARY KEY id SOURCE(SQLITE(PATH 'x' TABLE 't')) LAYOUT(SSD_CACHE(PATH 'p'))",
            "PRIMARY KEY id, v SOURCE(SQLITE(PATH 'x' TABLE 't')) LAYOUT(FLAT())",
            489,
            &["exactly one element", "COMPLEX_KEY_HASHED"],
        ),
        ("PATH 'p'", "", 36, &["PATH is required"]),
        ("PATH 'p'", "PATH 'p' NOSUCH 5", 115, &["NOSUCH", "BLOCK_SIZE", "MAX_THREADS_FOR_UPDATES"]),
        ("PATH 'p'", "PATH 'p' PATH 'q'", 36, &["PATH is given twice"]),
        ("PATH 'p'", "PATH 'p' BLOCK_SIZE 1000", 36, &["BLOCK_SIZE must be a multiple of 512"]),
        ("PATH 'p'", "PATH 'p' BLOCK_SIZE -1", 36, &["BLOCK_SIZE", "'-1'"]),
        (
            "PATH 'p'",
            "PATH 'p' WRITE_BUFFER_SIZE 5000",
            36,
            &["WRITE_BUFFER_SIZE must be a multiple of BLOCK_SIZE (4096)"],
        ),
        (
            "PATH 'p'",
            "PATH 'p' FILE_SIZE 12288 WRITE_BUFFER_SIZE 8192",
            36,
            &["FILE_SIZE must be a multiple of WRITE_BUFFER_SIZE (8192)"],
        ),
        ("PATH 'p'", "PATH 'p' READ_BUFFER_SIZE 5000", 36, &["READ_BUFFER_SIZE"]),
        ("PATH 'p'", "PATH 'p' MAX_PARTITIONS_COUNT 999999999", 36, &["FILE_SIZE * MAX_PARTITIONS_COUNT"]),
        ("PATH 'p'", "PATH 'p' ALLOW_READ_EXPIRED_KEYS 2", 36, &["ALLOW_READ_EXPIRED_KEYS must be 0 or 1"]),
        ("PATH 'p'", "PATH 'p' UPDATE_QUEUE_PUSH_TIMEOUT_MILLISECONDS 9", 36, &["from 10"]),
        ("SSD_CACHE(PATH 'p')", "CACHE()", 36, &["SIZE_IN_CELLS is required"]),
        ("SSD_CACHE(PATH 'p')", "CACHE(SIZE_IN_CELLS 0)", 36, &["SIZE_IN_CELLS", "from 1"]),
        (
            "SQLITE(PATH 'x' TABLE 't')",
            "NOSUCH(HOST 'h')",
            137,
            &["SOURCE", "NOSUCH", "SQLITE, POSTGRESQL, MYSQL", "EXECUTABLE"],
        ),
        ("TABLE 't'", "", 36, &["SOURCE(SQLITE)", "TABLE or QUERY"]),
        ("TABLE 't'", "TABLE 't' QUERY 'q'", 36, &["cannot be given together"]),
        ("TABLE 't'", "TABLE 't' HOST 'h'", 115, &["HOST", "PATH, TABLE, QUERY, WHERE"]),
        (
            "SQLITE(PATH 'x' TABLE 't')",
            "EXECUTABLE(COMMAND 'x' FORMAT Parquet)",
            73,
            &["Parquet", "RowBinary"],
        ),
        ("PRIMARY KEY id", "PRIMARY KEY nosuch", 489, &["nosuch", "id, v"]),
        ("PRIMARY KEY id", "PRIMARY KEY id, id", 36, &["twice"]),
        ("v UInt8", "v LowCardinality(String)", 50, &["column v", "LowCardinality(String)", "Nullable"]),
        ("v UInt8", "v UInt8 DEFAULT now()", 62, &["column v"]),
        ("v UInt8", "v UInt8 DEFAULT 256", 632, &["attribute v", "256"]),
        ("v UInt8", "v UInt8 DEFAULT 1 DEFAULT 2", 62, &["DEFAULT is given twice"]),
        ("v UInt8", "v UInt8 BIDIRECTIONAL", 36, &["HIERARCHICAL"]),
        ("v UInt8", "v Date DEFAULT 'x'", 38, &["attribute v"]),
        ("v UInt8", "v Decimal(5, 2) DEFAULT 123456", 69, &["attribute v"]),
        ("v UInt8", "v Array(UInt8) DEFAULT 5", 130, &["attribute v"]),
        ("v UInt8", "v UInt8 DEFAULT NULL", 632, &["Nullable(UInt8)"]),
        ("v UInt8", "v UInt8 HIERARCHICAL", 53, &["UInt64"]),
        ("v UInt8", "v UInt8, v Int8", 36, &["v is declared twice"]),
        ("v UInt8", "v UInt8 CODEC(LZ4)", 62, &["DEFAULT, EXPRESSION"]),
        ("v UInt8", ",", 62, &["the name of a column"]),
        ("DICTIONARY d", "DICTIONARY d ON CLUSTER c", 701, &["'c' not found"]),
        ("LIFETIME(5)", "LIFETIME(5) RANGE(MIN a MAX b)", 489, &["MIN a attribute is not defined"]),
        ("LIFETIME(5)", "LIFETIME(5) RANGE(MIN a)", 62, &["RANGE", "MAX"]),
        ("LIFETIME(5)", "LIFETIME(5); SELECT 1", 62, &["end of the statement"]),
        ("LIFETIME(5)", "LIFETIME(5) COMMENT 'unfinished", 62, &["Syntax error"]),
    ];
    for (from, to, code, words) in cases {
        assert!(sql.contains(from), "{from}");
        let changed = sql.replacen(from, to, 1);
        let error = parse_create(&changed).expect_err(&changed);
        assert_eq!(error.code(), *code, "{changed}\n{error}");
        for word in *words {
            assert!(error.message().contains(word), "{changed}\n{error}\nlacks {word}");
        }
    }
}

#[test]
fn a_key_that_is_no_lone_number_makes_a_simple_layout_complex() {
    let layout = |key: &str, types: &str, layout: &str| {
        let definition = parse(&format!(
            "CREATE DICTIONARY d ({types}, v String) PRIMARY KEY {key} SOURCE(SQLITE(PATH 'x' TABLE 't')) \
             LAYOUT({layout}) LIFETIME(0)"
        ));
        assert_eq!(parse(&definition.to_sql()), definition);
        assert_eq!(
            matches!(definition.structure.key, Key::Complex(_)),
            definition.layout.name().contains("COMPLEX")
        );
        definition.layout.name()
    };
    // The texts that ClickHouse 26.9 makes of each.
    for number in ["UInt8", "UInt64", "Int64", "UInt128", "Int256", "Float64", "Decimal(9, 2)", "Bool"] {
        assert_eq!(layout("a", &format!("a {number}"), "CACHE(SIZE_IN_CELLS 10)"), "CACHE", "{number}");
    }
    for other in [
        "String",
        "UUID",
        "Date",
        "DateTime",
        "DateTime64(3)",
        "IPv4",
        "IPv6",
        "Nullable(UInt64)",
        "Array(UInt8)",
    ] {
        let name = layout("a", &format!("a {other}"), "CACHE(SIZE_IN_CELLS 10)");
        assert_eq!(name, "COMPLEX_KEY_CACHE", "{other}");
    }
    assert_eq!(layout("a, b", "a UInt64, b UInt64", "HASHED"), "COMPLEX_KEY_HASHED");
    assert_eq!(layout("a", "a String", "SSD_CACHE(PATH 'p' FILE_SIZE 1048576)"), "COMPLEX_KEY_SSD_CACHE");
    assert_eq!(layout("a", "a String", "FLAT"), "FLAT");
}

const XML: &str = r#"<?xml version="1.0"?><clickhouse><comment>not one</comment>
<dictionary>
  <name>db.users</name><comment>a &lt;b&gt; &amp;c</comment>
  <structure>
    <id><name>id</name></id>
    <attribute><name>name</name><type>String</type><null_value>?</null_value><injective>true</injective></attribute>
    <attribute><name>parent</name><type>UInt64</type><null_value>0</null_value><hierarchical>true</hierarchical></attribute>
    <attribute><name>day</name><type>Nullable(Date)</type><null_value></null_value></attribute>
  </structure>
  <source><postgresql><host>h</host><port>5433</port><user>u</user><password>p</password><db>d</db><table>t</table></postgresql>
    <settings><x>1</x></settings></source>
  <layout><ssd_cache><file_size>1048576</file_size><write_buffer_size>65536</write_buffer_size><path>/p</path></ssd_cache></layout>
  <lifetime><min>3</min><max>5</max></lifetime>
</dictionary>
<dictionary>
  <name>pairs</name>
  <structure>
    <key><attribute><name>a</name><type>String</type></attribute><attribute><name>b</name><type>Int8</type></attribute></key>
    <attribute><name>v</name><type>Int8</type><null_value>-1</null_value></attribute>
  </structure>
  <source><executable><command>cat</command><format>CSV</format></executable></source>
  <layout><complex_key_cache><size_in_cells>8</size_in_cells></complex_key_cache></layout>
  <lifetime>300</lifetime>
</dictionary></clickhouse>"#;

#[test]
fn shown_is_what_was_written() {
    for (source, layout) in [
        ("CLICKHOUSE(TABLE 't')", "CACHE(SIZE_IN_CELLS 100)"),
        ("POSTGRESQL(PORT 5432 TABLE 't')", "COMPLEX_KEY_CACHE(SIZE_IN_CELLS 3)"),
        ("MYSQL(HOST 'localhost' DB '' TABLE 't')", "CACHE(SIZE_IN_CELLS 128)"),
    ] {
        let sql = format!(
            "CREATE DICTIONARY d (id UInt64, v String) PRIMARY KEY id SOURCE({source}) LAYOUT({layout}) LIFETIME(5)"
        );
        let mut definition = parse(&sql);
        definition.set_default_database("here");
        for shown in [definition.to_sql(), definition.to_sql_with_secrets()] {
            assert!(shown.contains(&format!("SOURCE({source})")), "{shown}");
            assert!(shown.contains(&format!("LAYOUT({layout})")), "{shown}");
        }
        let mut again = parse(&definition.to_sql_with_secrets());
        again.set_default_database("here");
        assert_eq!(again, definition);
    }
    // A source's database stays the same wherever the dictionary moves.
    let mut own = parse(
        "CREATE DICTIONARY d (id UInt64) PRIMARY KEY id SOURCE(CLICKHOUSE(TABLE 't')) LAYOUT(DIRECT())",
    );
    own.set_default_database("here");
    let own = own.moved(Some("there".into()), "e".into());
    assert!(own.to_sql().contains("SOURCE(CLICKHOUSE(DB 'here' TABLE 't'))"), "{}", own.to_sql());
}

#[test]
fn a_uuid_is_kept_and_not_shown() {
    let text = "4bf8d4c2-2c4e-4a3b-8a59-0d0f3f6c1e2a";
    let sql = format!(
        "CREATE DICTIONARY d UUID '{text}' (id UInt64) PRIMARY KEY id SOURCE(CLICKHOUSE(TABLE 't')) LAYOUT(DIRECT())"
    );
    let definition = parse(&sql);
    assert!(definition.to_sql_with_secrets().contains(text) && !definition.to_sql().contains(text));
    assert_eq!(parse(&definition.to_sql_with_secrets()), definition);
    assert!(parse_create(&sql.replace("4bf8", "4bfx")).is_err());
    let (one, other) = (parse(&definition.to_sql()).with_uuid(), parse(&definition.to_sql()).with_uuid());
    assert!(one.uuid.is_some() && one.uuid != other.uuid && one.is_same_as(&other));
    assert_eq!(one.clone().with_uuid().uuid, one.uuid);
}

#[test]
fn settings_that_would_change_what_is_read_are_refused() {
    let http = "HTTP(URL 'http://h' FORMAT CSV)";
    let remote = "CLICKHOUSE(HOST 'h' PORT 8123 TABLE 't')";
    for (source, settings, is_refused) in [
        (http, "format_csv_null_representation = 'NULL'", true),
        (http, "x = 1, format_csv_allow_single_quotes = 1", true),
        (http, "date_time_input_format = 'basic'", true),
        (http, "format_csv_delimiter = ',', join_use_nulls = 1", false),
        (remote, "join_use_nulls = 1", true),
        (remote, "join_use_nulls = 0, max_threads = 1", false),
        ("CLICKHOUSE(TABLE 't')", "join_use_nulls = 1, max_result_rows = 1", false),
        ("CLICKHOUSE(TABLE 't')", "transform_null_in = 1", true),
    ] {
        let sql = format!(
            "CREATE DICTIONARY d (id UInt64, v String) PRIMARY KEY id SOURCE({source}) LAYOUT(DIRECT()) SETTINGS({settings})"
        );
        let refused = parse_create(&sql).err().map(|error| error.code());
        assert_eq!(refused, is_refused.then_some(48), "{sql}");
    }
}

#[test]
fn xml_says_the_same_as_ddl() {
    let definitions = parse_xml(XML).unwrap();
    let [users, pairs] = &definitions[..] else { panic!("two dictionaries") };
    let same = parse(
        "CREATE DICTIONARY db.users (id UInt64, name String DEFAULT '?' INJECTIVE, parent UInt64 DEFAULT 0 HIERARCHICAL, \
         day Nullable(Date)) PRIMARY KEY id SOURCE(POSTGRESQL(HOST 'h' PORT 5433 USER 'u' PASSWORD 'p' DB 'd' TABLE 't')) \
         LAYOUT(SSD_CACHE(FILE_SIZE 1048576 WRITE_BUFFER_SIZE 65536 PATH '/p')) LIFETIME(MIN 3 MAX 5) \
         SETTINGS(x = 1) COMMENT 'a <b> &c'",
    );
    assert_eq!(*users, same);
    // A number alone is both ends in XML, the upper one in DDL.
    assert_eq!(pairs.lifetime, Lifetime { min_seconds: 300, max_seconds: 300 });
    assert!(matches!(&pairs.structure.key, Key::Complex(columns) if columns.len() == 2));
    assert_eq!(parse(&pairs.to_sql_with_secrets()), *pairs);
}

#[test]
fn xml_refusals() {
    let cases: &[(&str, &str, i32, &str)] = &[
        ("<clickhouse>", "<config>", 62, "Malformed XML"),
        ("<name>db.users</name>", "", 489, "<name> is missing"),
        ("<null_value>?</null_value>", "", 489, "<attribute> name: <attribute>: <null_value> is missing"),
        ("<type>String</type>", "<type>Enum8('a')</type>", 50, "Enum8"),
        ("<id><name>id</name></id>", "", 489, "either <id> or <key>"),
        ("<ssd_cache>", "<ssd_cache><nosuch>1</nosuch>", 115, "NOSUCH"),
        ("<min>3</min>", "<min>x</min>", 36, "<min>"),
        (
            "<hierarchical>true</hierarchical>",
            "<hierarchial>true</hierarchial>",
            36,
            "Unknown key 'hierarchial' inside attribute section: it may hold <name>, <type>",
        ),
        ("&amp;c", "&nosuch;", 62, "nosuch"),
        ("<lifetime><min>3</min><max>5</max></lifetime>", "", 489, "LIFETIME is missing"),
    ];
    for (from, to, code, words) in cases {
        assert!(XML.contains(from), "{from}");
        let changed = XML.replacen(from, to, 1);
        let error = parse_xml(&changed).expect_err(from);
        assert_eq!(error.code(), *code, "{from} -> {to}: {error}");
        assert!(error.message().contains(words), "{from} -> {to}: {error}");
    }
    assert_eq!(parse_xml("<config></config>").unwrap_err().code(), 137);
    assert!(parse_xml("<clickhouse/>").unwrap().is_empty());
    let deep = "<a>".repeat(1000);
    assert_eq!(parse_xml(&deep).unwrap_err().code(), 62);
}

#[test]
fn a_key_of_xml_is_for_layouts_that_have_one() {
    for (layout, complex) in [
        ("flat", "complex_key_hashed"),
        ("hashed", "complex_key_hashed"),
        ("sparse_hashed", "complex_key_sparse_hashed"),
        ("hashed_array", "complex_key_hashed_array"),
        ("range_hashed", "complex_key_range_hashed"),
        ("direct", "complex_key_direct"),
        ("cache", "complex_key_cache"),
        ("ssd_cache", "complex_key_ssd_cache"),
    ] {
        let parameters = match layout {
            "cache" => "<size_in_cells>8</size_in_cells>",
            "ssd_cache" => "<path>/p</path>",
            _ => "",
        };
        let lifetime = if layout == "direct" { "" } else { "<lifetime>1</lifetime>" };
        let bound = |name: &str| format!("<range_{name}><name>{name}</name></range_{name}>");
        let bounds = if layout == "range_hashed" { bound("min") + &bound("max") } else { String::new() };
        let column = |name: &str, data_type: &str| {
            format!("<attribute><name>{name}</name><type>{data_type}</type></attribute>")
        };
        let document = |layout: &str, columns: &str| {
            format!(
                "<clickhouse><dictionary><name>d</name><structure><key>{columns}</key>{bounds}<attribute><name>v</name>\
                 <type>String</type><null_value/></attribute></structure><source><file><path>a</path><format>CSV</format>\
                 </file></source><layout><{layout}>{parameters}</{layout}></layout>{lifetime}</dictionary></clickhouse>"
            )
        };
        // '007' and '7' would be one key if they were read as numbers.
        for columns in
            [column("code", "String"), column("id", "UInt64"), column("a", "UInt64") + &column("b", "String")]
        {
            let error = parse_xml(&document(layout, &columns)).unwrap_err();
            assert_eq!(error.code(), 1, "{layout}: {error}");
            let words = format!("'key' is not supported for dictionary of layout '{layout}'");
            assert!(error.message().contains(&words), "{error}");
            assert!(error.message().contains(&format!("<key> is for {complex}")), "{error}");
            assert!(matches!(
                parse_xml(&document(complex, &columns)).unwrap()[0].structure.key,
                Key::Complex(_)
            ));
        }
    }
}

#[test]
fn xml_of_one_dictionary_is_nothing_to_another() {
    let two = parse_xml_each(&XML.replacen("<type>String</type>", "<type>Enum8('a')</type>", 1)).unwrap();
    let of =
        |place: usize| (two[place].database.as_deref(), two[place].name.as_str(), &two[place].definition);
    assert!(matches!(of(0), (Some("db"), "users", Err(error)) if error.code() == 50));
    assert!(matches!(of(1), (None, _, Ok(_))));
    // ClickHouse's DIRECT passes over a lifetime that is a number alone.
    let direct = XML.replace(
        "<complex_key_cache><size_in_cells>8</size_in_cells></complex_key_cache>",
        "<complex_key_direct/>",
    );
    let definition =
        parse_xml(&direct.replace("<lifetime>300</lifetime>", "<lifetime>0</lifetime>")).unwrap().remove(1);
    assert_eq!(definition.lifetime, Lifetime::FOREVER);
    let said = "<lifetime><min>0</min><max>0</max></lifetime>";
    let error = parse_xml(&direct.replace("<lifetime>300</lifetime>", said)).unwrap_err();
    assert!(error.code() == 36 && error.message().contains("redundant"), "{error}");
}

#[test]
fn xml_takes_values_from_the_environment() {
    let with = |attribute: &str| {
        parse_xml(&XML.replace("<command>cat</command>", &format!("<command {attribute}/>")))
    };
    // cargo sets this one.
    let pairs = with("from_env='CARGO_PKG_NAME'").unwrap().remove(1);
    assert_eq!(pairs.source.name(), "EXECUTABLE");
    assert_eq!(pairs.source.parameter("COMMAND"), Some("granary-dict"));
    for (attribute, words) in [
        ("from_env='GRANARY_NO_SUCH'", "from_env=\"GRANARY_NO_SUCH\""),
        ("from_zk='/path'", "from_zk is not read here"),
        ("incl='x'", "incl is not read here"),
    ] {
        let error = with(attribute).unwrap_err();
        assert!(error.message().contains(words), "{error}");
    }
}

fn literal() -> impl Strategy<Value = (String, Option<Literal>)> {
    prop_oneof![
        any::<i64>().prop_map(|n| ("Int64".to_string(), Some(Literal::Bare(n.to_string())))),
        ".*".prop_map(|s| ("String".to_string(), Some(Literal::Quoted(s)))),
        Just(("Nullable(Float64)".to_string(), Some(Literal::Null))),
        Just(("DateTime('UTC')".to_string(), None)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// A printed definition is read back as the same one, whatever the names and strings are.
    #[test]
    fn storage_text_round_trips(
        name in "[^`]{1,12}|[a-z`\"]{1,5}",
        attribute_name in "[a-z `'\\\\\"]{1,8}",
        (data_type, default) in literal(),
        password in ".*",
        path in ".{1,20}",
        comment in ".*",
    ) {
        let mut definition = parse(&SEED.replace("'it''s'", &quote(&password)));
        prop_assert_eq!(definition.source.parameter("PASSWORD"), Some(password.as_str()));
        definition.name = name;
        definition.comment = comment;
        let mut attribute = Attribute::new(format!("{attribute_name}_"), granary_dict::DataType::parse(&data_type).unwrap());
        attribute.default = default;
        definition.structure.attributes.push(attribute);
        if let LayoutKind::Ssd(ssd) = &mut definition.layout.kind {
            ssd.path = path;
        }
        let sql = definition.to_sql_with_secrets();
        let read = parse_create(&sql);
        prop_assert!(read.is_ok(), "{}\n{}", read.unwrap_err(), sql);
        prop_assert_eq!(read.unwrap().definition, definition);
    }

    /// Bytes that are nearly a statement.
    #[test]
    fn no_statement_panics(cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), ".{0,3}"), 1..4)) {
        let pieces = ["(", ")", "'", "`", "\\", ",", "DEFAULT", "EXPRESSION", "-", "1", "Nullable(", ";", "é", "--", "/*", "$$"];
        let mut sql = SEED.to_string();
        for (at, piece, random) in cuts {
            let mut place = at.index(sql.len() + 1);
            while !sql.is_char_boundary(place) {
                place -= 1;
            }
            let end = (place + random.len()).min(sql.len());
            if sql.is_char_boundary(end) {
                sql.replace_range(place..end, piece.get::<&str>(&pieces));
            }
            sql.insert_str(place, &random);
        }
        if let Ok(statement) = parse_create(&sql) {
            let again = parse_create(&statement.definition.to_sql_with_secrets());
            prop_assert_eq!(again.unwrap().definition, statement.definition);
        }
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        let _ = parse_create(&text);
        let _ = parse_xml(&text);
        let _ = granary_dict::DataType::parse(&text);
    }

    /// Bytes that are nearly a document.
    #[test]
    fn no_document_panics(cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..30, "[<>/&;a-z!\\[\\]?-]{0,6}"), 1..4)) {
        let mut xml = XML.to_string();
        for (at, length, random) in cuts {
            let start = at.index(xml.len() + 1);
            let end = (start + length).min(xml.len());
            if xml.is_char_boundary(start) && xml.is_char_boundary(end) {
                xml.replace_range(start..end, &random);
            }
        }
        for definition in parse_xml(&xml).unwrap_or_default() {
            prop_assert_eq!(parse_create(&definition.to_sql_with_secrets()).unwrap().definition, definition);
        }
    }
}
