//! The examples of ClickHouse's documentation of dictionaries: each kind of clause means the same in DDL and in XML, or
//! is refused by a text that says what to do.

use granary_dict::{Collections, DictError, parse_create, parse_xml};

const KEY: &str = "<id><name>id</name></id>";
const ATTRIBUTE: &str = "<attribute><name>v</name><type>String</type><null_value/></attribute>";
const SOURCE: (&str, &str) = (
    "FILE(path 'os.tsv' format 'TabSeparated')",
    "<file><path>os.tsv</path><format>TabSeparated</format></file>",
);

/// A clause in DDL, and in XML.
const LAYOUTS: &[(&str, &str)] = &[
    (
        "FLAT(INITIAL_ARRAY_SIZE 50000 MAX_ARRAY_SIZE 5000000)",
        "<flat><initial_array_size>50000</initial_array_size><max_array_size>5000000</max_array_size></flat>",
    ),
    ("HASHED()", "<hashed />"),
    (
        "HASHED(SHARDS 10 SHARD_LOAD_QUEUE_BACKLOG 10000 MAX_LOAD_FACTOR 0.5)",
        "<hashed><!-- In parallel. --><shards>10</shards><shard_load_queue_backlog>10000</shard_load_queue_backlog>\
         <max_load_factor>0.5</max_load_factor></hashed>",
    ),
    ("SPARSE_HASHED(SHARDS 1)", "<sparse_hashed><!-- <shards>1</shards> --></sparse_hashed>"),
    ("HASHED_ARRAY(SHARDS 1)", "<hashed_array>\n</hashed_array>"),
    (
        "CACHE(SIZE_IN_CELLS 1000000000)",
        "<cache><!-- Cells. --><size_in_cells>1000000000</size_in_cells>\
         <allow_read_expired_keys>0</allow_read_expired_keys><max_update_queue_size>100000</max_update_queue_size>\
         <update_queue_push_timeout_milliseconds>10</update_queue_push_timeout_milliseconds>\
         <query_wait_timeout_milliseconds>60000</query_wait_timeout_milliseconds>\
         <max_threads_for_updates>4</max_threads_for_updates></cache>",
    ),
    (
        "SSD_CACHE(BLOCK_SIZE 4096 FILE_SIZE 16777216 READ_BUFFER_SIZE 131072 WRITE_BUFFER_SIZE 1048576 PATH '/data/d')",
        "<ssd_cache><block_size>4096</block_size><file_size>16777216</file_size>\
         <read_buffer_size>131072</read_buffer_size><write_buffer_size>1048576</write_buffer_size>\
         <path>/data/d</path></ssd_cache>",
    ),
    ("DIRECT()", "<direct />"),
];

const SOURCES: &[(&str, &str)] = &[
    SOURCE,
    (
        "EXECUTABLE(command 'cat os.tsv' format 'TabSeparated')",
        "<executable><command>cat os.tsv</command><format>TabSeparated</format><implicit_key>false</implicit_key>\
         <command_termination_timeout>10</command_termination_timeout></executable>",
    ),
    (
        "EXECUTABLE_POOL(command 'while read key; do echo; done' format 'TabSeparated' pool_size 10)",
        "<executable_pool><command>while read key; do echo; done</command><format>TabSeparated</format>\
         <pool_size>10</pool_size><max_command_execution_time>10</max_command_execution_time>\
         <implicit_key>false</implicit_key></executable_pool>",
    ),
    (
        "HTTP(url 'http://[::1]/os.tsv' format 'TabSeparated' credentials(user 'user' password 'password') \
         headers(header(name 'API-KEY' value 'key')))",
        "<http><url>http://[::1]/os.tsv</url><format>TabSeparated</format><credentials><user>user</user>\
         <password>password</password></credentials><headers><header><name>API-KEY</name><value>key</value>\
         </header></headers></http>",
    ),
    (
        "MYSQL(port 3306 user 'reader' password 'secret' replica(host 'one' priority 1) \
         replica(host 'two' priority 1) db 'shop' table 'goods' where 'id=10' invalidate_query 'SELECT 1' \
         fail_on_connection_loss 'true')",
        "<mysql><port>3306</port><user>reader</user><password>secret</password><replica><host>one</host>\
         <priority>1</priority></replica><replica><host>two</host><priority>1</priority></replica><db>shop</db>\
         <table>goods</table><where>id=10</where><invalidate_query>SELECT 1</invalidate_query>\
         <fail_on_connection_loss>true</fail_on_connection_loss></mysql>",
    ),
    (
        "MYSQL(port 3306 user 'u' db 'd' table 't' replica(host 'h' priority 1 enable_compression 1) \
         enable_compression 1 connection_pool_size 8)",
        "<mysql><port>3306</port><user>u</user><db>d</db><table>t</table><replica><host>h</host><priority>1</priority>\
         <enable_compression>1</enable_compression></replica><enable_compression>1</enable_compression></mysql>",
    ),
    (
        "CLICKHOUSE(host 'there' port 8443 user 'default' password '' db 'default' table 'ids' where 'id=10' secure 1 \
         update_field 'added_time' update_lag 15)",
        "<clickhouse><host>there</host><port>8443</port><user>default</user><password></password><db>default</db>\
         <table>ids</table><where>id=10</where><secure>1</secure><update_field>added_time</update_field>\
         <update_lag>15</update_lag></clickhouse>",
    ),
    (
        "CLICKHOUSE(update_field 'added_time' QUERY 'SELECT id, v FROM (SELECT * FROM t WHERE {condition})')",
        "<clickhouse><update_field>added_time</update_field>\
         <query>SELECT id, v FROM (SELECT * FROM t WHERE {condition})</query></clickhouse>",
    ),
    (
        "MONGODB(host 'localhost' port 27017 user '' password '' db 'test' collection 'rows' options 'ssl=true')",
        "<mongodb><host>localhost</host><port>27017</port><user></user><password></password><db>test</db>\
         <collection>rows</collection><options>ssl=true</options></mongodb>",
    ),
    (
        "MONGODB(uri 'mongodb://localhost:27017/test?ssl=true' collection 'rows')",
        "<mongodb><uri>mongodb://localhost:27017/test?ssl=true</uri><collection>rows</collection></mongodb>",
    ),
    (
        "REDIS(host 'localhost' port 6379 storage_type 'simple' db_index 0)",
        "<redis><host>localhost</host><port>6379</port><storage_type>simple</storage_type><db_index>0</db_index>\
         </redis>",
    ),
    (
        "POSTGRESQL(port 5432 host 'there' user 'reader' password 'secret' db 'shop' table 'goods' \
         replica(host 'one' port 5432 priority 1) replica(host 'two' port 5432 priority 2) where 'id=10' \
         invalidate_query 'SELECT 1')",
        "<postgresql><port>5432</port><host>there</host><user>reader</user><password>secret</password><db>shop</db>\
         <table>goods</table><replica><host>one</host><port>5432</port><priority>1</priority></replica>\
         <replica><host>two</host><port>5432</port><priority>2</priority></replica><where>id=10</where>\
         <invalidate_query>SELECT 1</invalidate_query><background_reconnect>false</background_reconnect></postgresql>",
    ),
    ("NULL()", "<null/>"),
];

/// A source, and what its refusal says.
const REFUSED: &[(&str, &str)] = &[
    (
        "ODBC(connection_string 'DSN=mine' table 'goods')",
        "Granary does not have ClickHouse's ODBC; allowed are",
    ),
    ("CASSANDRA(host 'localhost' port 9042)", "Granary does not have ClickHouse's CASSANDRA; allowed are"),
    (
        "YTSAURUS(http_proxy_urls 'http://h' cypress_path '//x')",
        "Granary does not have ClickHouse's YTSAURUS; allowed",
    ),
    (
        "MYSQL(host 'localhost' socket '/run/mysql.sock' table 't')",
        "SOCKET is not read here; give HOST and PORT",
    ),
    (
        "MYSQL(addresses_expr 'h{1,2}:3306' table 't')",
        "ADDRESSES_EXPR is not read here; give HOST, or REPLICA",
    ),
    ("MYSQL(table 't' on_duplicate_clause 1)", "unknown parameter ON_DUPLICATE_CLAUSE"),
    ("POSTGRESQL(table 't' on_conflict 'DO NOTHING')", "unknown parameter ON_CONFLICT"),
    ("MYSQL(table 't' query 'SELECT 1')", "TABLE and QUERY cannot be given together"),
    ("MYSQL(query 'SELECT 1' where 'id=10')", "WHERE goes into QUERY itself"),
    ("CLICKHOUSE(host 'there' port 9000 secure 1 table 'ids')", "use PORT 8123, or 8443 with SECURE 1"),
];

fn ddl((source, layout): (&str, &str)) -> Result<String, DictError> {
    let lifetime = if layout.starts_with("DIRECT") { "" } else { "LIFETIME(MIN 300 MAX 360)" };
    let sql = format!(
        "CREATE DICTIONARY d (id UInt64, v String) PRIMARY KEY id SOURCE({source}) LAYOUT({layout}) {lifetime} \
         SETTINGS(format_csv_allow_single_quotes = 0)"
    );
    parse_create(&sql).map(|read| read.definition.to_sql_with_secrets())
}

fn xml((source, layout): (&str, &str)) -> Result<String, DictError> {
    let lifetime = match layout.starts_with("<direct") {
        true => "",
        false => "<lifetime><min>300</min><max>360</max></lifetime>",
    };
    let settings = "<settings><format_csv_allow_single_quotes>0</format_csv_allow_single_quotes></settings>";
    let document = format!(
        "<clickhouse><comment>Anything <b>at all</b>.</comment>\n<!-- Optional. -->\n<dictionary><name>d</name>\
         <structure>{KEY}{ATTRIBUTE}</structure><source>{source}{settings}</source><layout>{layout}</layout>{lifetime}\
         </dictionary></clickhouse>"
    );
    Ok(parse_xml(&document)?.remove(0).to_sql_with_secrets())
}

#[test]
fn layouts_mean_the_same_in_both() {
    for (in_ddl, in_xml) in LAYOUTS {
        let from_ddl = ddl((SOURCE.0, in_ddl)).unwrap_or_else(|e| panic!("{in_ddl}\n{e}"));
        assert_eq!(from_ddl, xml((SOURCE.1, in_xml)).unwrap_or_else(|e| panic!("{in_xml}\n{e}")));
        // Where SPARSE_HASHED and HASHED_ARRAY are HASHED, their names stay.
        let name = in_ddl.split('(').next().unwrap();
        assert!(from_ddl.contains(&format!("LAYOUT({name}(")), "{from_ddl}");
    }
}

#[test]
fn sources_mean_the_same_in_both() {
    for (in_ddl, in_xml) in SOURCES {
        // The programs of a pool answer keys, and have no rows to be held.
        let (layout, element) = match in_ddl.starts_with("EXECUTABLE_POOL") {
            true => ("CACHE(SIZE_IN_CELLS 8)", "<cache><size_in_cells>8</size_in_cells></cache>"),
            false => ("HASHED()", "<hashed/>"),
        };
        let from_ddl = ddl((in_ddl, layout)).unwrap_or_else(|e| panic!("{in_ddl}\n{e}"));
        let from_xml = xml((in_xml, element)).unwrap_or_else(|e| panic!("{in_xml}\n{e}"));
        let spelled = |sql: &str| parse_create(sql).unwrap().definition;
        assert!(spelled(&from_ddl).is_same_as(&spelled(&from_xml)), "{from_ddl}\n{from_xml}");
    }
}

/// Collections are for ClickHouse's tables, too, which have parameters that dictionaries have not.
#[test]
fn collections_of_tables_are_collections_of_dictionaries() {
    let server = [("user", "myuser"), ("password", "mypass"), ("host", "127.0.0.1"), ("database", "test")];
    for (kind, port, others) in [
        ("MYSQL", "3306", &["connection_pool_size", "on_duplicate_clause", "replace_query"][..]),
        ("POSTGRESQL", "5432", &["on_conflict", "use_table_cache"][..]),
    ] {
        let collections = Collections::default();
        let sql = format!(
            "CREATE DICTIONARY dict (A Int64, B String) PRIMARY KEY A SOURCE({kind}(NAME mine TABLE 'source')) \
             LIFETIME(MIN 1 MAX 2) LAYOUT(HASHED())"
        );
        let completed = |parameters: &[&str]| {
            let ones = parameters.iter().map(|name| (*name, "1"));
            let all = server.into_iter().chain([("port", port)]).chain(ones);
            collections.set("mine", Some(all.map(|(name, value)| (name.into(), value.into())).collect()));
            parse_create(&sql).unwrap().definition.completed(&collections)
        };
        let definition = completed(others).unwrap_or_else(|e| panic!("{kind}\n{e}"));
        assert_eq!(definition.source.parameter("DB"), Some("test"));
        let error = completed(&["nosuch"]).unwrap_err();
        assert_eq!(error.code(), 115, "{error}");
        let error = completed(&["addresses_expr"]).unwrap_err();
        assert!(error.message().contains("ADDRESSES_EXPR is not read here"), "{error}");
    }
}

/// All queries would fail.
#[test]
fn sources_that_answer_keys_only_fill_no_layout_that_holds_all_rows() {
    for (in_ddl, in_xml, words) in [
        (
            "EXECUTABLE_POOL(command 'cat' format 'TabSeparated')",
            "<executable_pool><command>cat</command><format>TabSeparated</format></executable_pool>",
            "EXECUTABLE_POOL cannot be read whole",
        ),
        (
            "EXECUTABLE(command 'cat' format 'TabSeparated' implicit_key 1)",
            "<executable><command>cat</command><format>TabSeparated</format><implicit_key>true</implicit_key></executable>",
            "EXECUTABLE with IMPLICIT_KEY cannot be read whole",
        ),
    ] {
        for (layout, element) in [("FLAT()", "<flat/>"), ("HASHED_ARRAY()", "<hashed_array/>")] {
            for error in [ddl((in_ddl, layout)).unwrap_err(), xml((in_xml, element)).unwrap_err()] {
                assert_eq!(error.code(), 1, "{error}");
                assert!(error.message().contains(words), "{error}");
            }
        }
        ddl((in_ddl, "DIRECT()")).unwrap();
        xml((in_xml, "<direct/>")).unwrap();
    }
}

#[test]
fn what_is_not_there_is_refused() {
    for (source, words) in REFUSED {
        let error = ddl((source, "HASHED()")).expect_err(source);
        assert!(error.message().contains(words), "{source}\n{error}");
    }
}

#[test]
fn layouts_of_models_are_refused() {
    for (in_ddl, in_xml) in [("NAIVE_BAYES()", "<naive_bayes/>"), ("XGBOOST()", "<xgboost/>")] {
        for error in [ddl((SOURCE.0, in_ddl)).unwrap_err(), xml((SOURCE.1, in_xml)).unwrap_err()] {
            let name = in_ddl.trim_end_matches("()");
            assert_eq!(error.code(), 48, "{error}");
            assert!(
                error.message().contains(&format!("does not have ClickHouse's {name}; allowed are")),
                "{error}"
            );
        }
    }
    assert_eq!(ddl((SOURCE.0, "NOSUCH()")).unwrap_err().code(), 137);
}

#[test]
fn keys_attributes_and_hierarchies_mean_the_same_in_both() {
    let sql = "CREATE DICTIONARY d (region_id UInt64, parent_region UInt64 DEFAULT 0 HIERARCHICAL, region_name String INJECTIVE) \
               PRIMARY KEY region_id SOURCE(FILE(path 'os.tsv' format 'TabSeparated')) LAYOUT(HASHED()) LIFETIME(300)";
    let document = format!(
        "<dictionaries><dictionary><name>d</name><structure><id><name>region_id</name></id><attribute>\
         <name>parent_region</name><type>UInt64</type><null_value>0</null_value><hierarchical>true</hierarchical>\
         </attribute><attribute><name>region_name</name><type>String</type><null_value></null_value>\
         <injective>true</injective></attribute></structure><source>{}</source><layout><hashed/></layout>\
         <lifetime>300</lifetime></dictionary></dictionaries>",
        SOURCE.1
    );
    // One number is the longest time in DDL, and both in XML.
    let from_ddl = parse_create(sql).unwrap().definition.to_sql().replace("MIN 0 ", "MIN 300 ");
    assert_eq!(parse_xml(&document).unwrap().remove(0).to_sql().replace("MIN 0 ", "MIN 300 "), from_ddl);

    let sql = "CREATE DICTIONARY d (field1 String, field2 UInt32, v String) PRIMARY KEY field1, field2 \
               SOURCE(FILE(path 'os.tsv' format 'TabSeparated')) LAYOUT(COMPLEX_KEY_HASHED(SHARDS 1)) LIFETIME(0)";
    let document = format!(
        "<yandex><dictionary><name>d</name><structure><key><attribute><name>field1</name><type>String</type></attribute>\
         <attribute><name>field2</name><type>UInt32</type></attribute></key>{ATTRIBUTE}</structure>\
         <source>{}</source><layout><complex_key_hashed><shards>1</shards></complex_key_hashed></layout>\
         <lifetime>0</lifetime></dictionary></yandex>",
        SOURCE.1
    );
    assert_eq!(parse_xml(&document).unwrap().remove(0), parse_create(sql).unwrap().definition);
}

/// RANGE_HASHED, where the types of bounds are Date if they are not given, IP_TRIE and POLYGON.
#[test]
fn layouts_that_find_rows_by_what_lies_in_them_mean_the_same_in_both() {
    let cases = [
        (
            "CREATE DICTIONARY d (shop UInt64, since Date, until Date, part Float64) PRIMARY KEY shop SOURCE(FILE(path 'os.tsv' format 'TabSeparated')) \
             LAYOUT(RANGE_HASHED(range_lookup_strategy 'max')) RANGE(MIN since MAX until) LIFETIME(0)",
            "<structure><id><name>shop</name></id><range_min><name>since</name></range_min><range_max><name>until</name>\
             <type>Date</type></range_max><attribute><name>part</name><type>Float64</type><null_value/></attribute></structure>\
             <layout><range_hashed><range_lookup_strategy>max</range_lookup_strategy></range_hashed></layout>",
        ),
        (
            "CREATE DICTIONARY d (prefix String, asn UInt32, cca2 String DEFAULT '??') PRIMARY KEY prefix SOURCE(FILE(path 'os.tsv' format 'TabSeparated')) \
             LAYOUT(IP_TRIE(ACCESS_TO_KEY_FROM_ATTRIBUTES 1)) LIFETIME(0)",
            "<structure><key><attribute><name>prefix</name><type>String</type></attribute></key><attribute><name>asn</name>\
             <type>UInt32</type><null_value /></attribute><attribute><name>cca2</name><type>String</type>\
             <null_value>??</null_value></attribute></structure><layout><ip_trie>\
             <access_to_key_from_attributes>true</access_to_key_from_attributes></ip_trie></layout>",
        ),
        (
            "CREATE DICTIONARY d (key Array(Array(Array(Array(Float64)))), name String, value UInt64 DEFAULT 0) PRIMARY KEY key \
             SOURCE(FILE(path 'os.tsv' format 'TabSeparated')) LAYOUT(POLYGON(STORE_POLYGON_KEY_COLUMN 1)) LIFETIME(0)",
            "<structure><key><attribute><name>key</name><type>Array(Array(Array(Array(Float64))))</type></attribute></key>\
             <attribute><name>name</name><type>String</type><null_value></null_value></attribute><attribute>\
             <name>value</name><type>UInt64</type><null_value>0</null_value></attribute></structure><layout><polygon>\
             <store_polygon_key_column>1</store_polygon_key_column></polygon></layout>",
        ),
    ];
    for (sql, parts) in cases {
        let document = format!(
            "<clickhouse><dictionary><name>d</name>{parts}<source>{}</source><lifetime>0</lifetime></dictionary></clickhouse>",
            SOURCE.1
        );
        let from_xml = parse_xml(&document).unwrap_or_else(|e| panic!("{document}\n{e}")).remove(0);
        let from_ddl = parse_create(sql).unwrap_or_else(|e| panic!("{sql}\n{e}")).definition;
        // A default that is the type's own may be written or not.
        let shown = |sql: String| sql.replace(" DEFAULT ''", "").replace(" DEFAULT 0", "");
        assert_eq!(shown(from_xml.to_sql()), shown(from_ddl.to_sql()));
    }
}
