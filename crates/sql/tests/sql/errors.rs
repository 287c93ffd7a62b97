//! Errors that DataFusion reports as texts only are reworded as ClickHouse's. Each query here makes DataFusion write
//! one of the texts that `granary_dialect` reads; if DataFusion changes the text, its own words come out, and the test
//! fails.

use granary_sql::{Options, Session};

/// A query, and the code and the message of its error.
const REFUSED: &[(&str, i32, &str)] = &[
    // "Invalid function"
    (
        "SELECT displayName(1)",
        46,
        "Function with name `displayName` does not exist. Maybe you meant: ['displayName']",
    ),
    // "argument types"
    ("SELECT stddevPop('a')", 43, "Illegal type String of argument of function stddevPop"),
    ("SELECT covarPop(1, 'a')", 43, "Illegal types UInt8 and String of arguments of function covarPop"),
    (
        "SELECT coalesce()",
        42,
        "Number of arguments for function coalesce doesn't match: passed 0, should be 1 or more",
    ),
    // "must appear in the GROUP BY clause"
    (
        "SELECT number + 1, count() FROM numbers(3)",
        215,
        "Column 'number' is not under aggregate function and not in GROUP BY keys",
    ),
    // "Unnest should be rewritten"
    (
        "SELECT sum(arrayJoin([1, 2]))",
        48,
        "arrayJoin is known among the columns of SELECT and in GROUP BY: put it into a subquery, and the rest around it",
    ),
    // "Dot access not supported"
    (
        "SELECT n.null FROM (SELECT toNullable(1) AS n)",
        48,
        "Subcolumns are elements of tuples, size0 of arrays and maps, and keys and values of maps here: write n IS NULL for n.null",
    ),
    // "require unique expression names"
    ("SELECT *, * FROM (SELECT 1 AS a)", 48, REPEATED),
    // "subquery can only be used in"
    (
        "SELECT number FROM numbers(2) ORDER BY number IN (SELECT 1)",
        48,
        "IN (SELECT ..) is not known in ORDER BY: make it a column of SELECT, and order by its alias",
    ),
    // "Cannot run range queries"
    (
        "SELECT sum(number) OVER (ORDER BY (number, 1)) FROM numbers(2)",
        48,
        "A window is not ordered by a tuple here, unless it has a frame of ROWS: ORDER BY its elements",
    ),
    // "Min/Max accumulator"
    (
        "SELECT max(map('a', number)) FROM numbers(2)",
        48,
        "min and max of maps are not known here: compare what they hold",
    ),
    // "Too many columns!"
    (
        "SELECT (1, 2) IN (SELECT 1 AS a, 2 AS b)",
        48,
        "Several columns are not looked for with IN among those of a subquery: join with it, as with SEMI JOIN, or look \
         for the tuple among tuples, as in (a, b) IN (SELECT (a, b) ..)",
    ),
    // "Cannot cast string"
    ("SELECT number = 'abc' FROM numbers(1)", 53, "Cannot convert string 'abc' to type UInt64"),
    (
        "SELECT 1.5 = 'abc'",
        72,
        "Cannot read floating point value here: abc: while converting 'abc' to Float64",
    ),
];

const REPEATED: &str = "Two columns of a SELECT have the same name, and one of them is of a `*`, a subquery or an \
    aggregate: give one another name with AS, or leave one out with * EXCEPT";

/// Queries whose errors keep DataFusion's own words, and the codes derived from some of these.
const IN_ITS_WORDS: &[(&str, i32)] = &[("SELECT number LIKE 'a' FROM numbers(1)", 43)];

const NO_SUPERTYPE: &str = "There is no supertype for types String, Array(UInt8) because some of them are \
    String/FixedString/Enum and some of them are not: while executing function equals; convert one of them, as with \
    toString";

/// Queries that are refused before DataFusion sees their error.
const BEFORE_DATAFUSION: &[(&str, i32, &str)] = &[
    ("SELECT today() = [1]", 43, "Illegal types of arguments (`Date`, `Array(UInt8)`) of function `equals`"),
    (
        "SELECT [1] >= today()",
        43,
        "Illegal types of arguments (`Array(UInt8)`, `Date`) of function `greaterOrEquals`",
    ),
    ("SELECT 'a' = [1]", 386, NO_SUPERTYPE),
    ("SELECT [1] + 1", 43, "Illegal types Array(UInt8) and UInt8 of arguments of function plus"),
    ("SELECT 'a' % 2", 43, "Illegal types String and UInt8 of arguments of function modulo"),
    ("SELECT * FROM nosuch", 60, "Unknown table expression identifier 'nosuch'"),
    ("SELECT * FROM system.nosuch", 60, "Unknown table expression identifier 'system.nosuch'"),
    ("WITH t AS (SELECT * FROM u) SELECT * FROM t", 60, "Unknown table expression identifier 'u'"),
    ("SELECT * FROM nosuch.t", 81, "Database nosuch does not exist"),
    ("SELECT * FROM generate_series(1, 2)", 46, "Unknown table function generate_series"),
    ("SELECT rank()", 46, "Function with name `rank` does not exist. Maybe you meant: ['rank', 'rand']"),
    ("SELECT toUInt8()", 42, "Number of arguments for function toUInt8 doesn't match: passed 0, should be 1"),
    (
        "SELECT toUInt8(1, 2)",
        42,
        "Number of arguments for function toUInt8 doesn't match: passed 2, should be 1",
    ),
    ("SELECT has([1])", 42, "Number of arguments for function has doesn't match: passed 1, should be 2"),
    ("SELECT rand(1, 2)", 42, "Number of arguments for function rand doesn't match: passed 2, should be 1"),
    ("SELECT sum()", 42, "Aggregate function sum requires single argument"),
    ("SELECT avgIf(1, 2, 1)", 42, "Aggregate function avg requires single argument"),
    ("SELECT corr(1)", 42, "Aggregate function corr requires two arguments"),
    ("SELECT uniq()", 42, "Aggregate function uniq requires at least one argument"),
    (
        "SELECT number % 3 AS i FROM numbers(9) LIMIT 1 BY i",
        48,
        "LIMIT .. BY is not implemented: number the rows by row_number() OVER (PARTITION BY ..) in a subquery",
    ),
    (
        "SELECT a FROM (SELECT [1, 2] AS arr) ARRAY JOIN arr AS a",
        48,
        "ARRAY JOIN is not implemented: write arrayJoin(array) AS item among the columns of SELECT",
    ),
    (
        "SELECT anyLast(number) OVER () FROM numbers(2)",
        48,
        "Aggregate function anyLast is not known over a window: join its answer for each group, from a subquery",
    ),
    (
        "SELECT 1 AS x UNION ALL SELECT 'a'",
        386,
        "There is no supertype for types UInt8, String of column 1 of a UNION, and there are no Variants here: cast one \
         to another's type",
    ),
    (
        "SELECT k FROM (SELECT 1 AS k) AS a LEFT JOIN (SELECT 2 AS k) AS b USING (k) WHERE b.k = 0",
        48,
        "`b.k` is not known behind an outer join with USING (k): write `k` for the value of whichever side has a row, \
         or ON with = for that of one side",
    ),
    ("SELECT dictGet()", 42, "Number of arguments for function dictGet doesn't match: passed 0, should be 3"),
];

async fn error_of(session: &Session, sql: &str) -> granary_sql::Error {
    let statements = granary_sql::split(sql).unwrap();
    match session.execute(&statements[0]).await {
        Err(error) => error,
        Ok(mut output) => output.next().await.unwrap_or_else(|| panic!("{sql} has no error")).unwrap_err(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_clickhouses() {
    let session = Session::open(Options::default()).unwrap();
    for (sql, code, message) in REFUSED.iter().chain(BEFORE_DATAFUSION) {
        let error = error_of(&session, sql).await;
        assert_eq!((error.code, error.message.as_str()), (*code, *message), "{sql}");
    }
    for (sql, code) in IN_ITS_WORDS {
        assert_eq!(error_of(&session, sql).await.code, *code, "{sql}");
    }
}
