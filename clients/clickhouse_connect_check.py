"""DDL, SELECTs and an INSERT by clickhouse-connect. The argument is the server's port."""

import datetime
import sys
import uuid
from decimal import Decimal

import clickhouse_connect
from clickhouse_connect.driver.exceptions import DatabaseError, StreamFailureError

client = clickhouse_connect.get_client(host="127.0.0.1", port=int(sys.argv[1]))
client.command(
    "CREATE OR REPLACE DICTIONARY of_python (id UInt64, name String, city Nullable(String)) PRIMARY KEY id "
    "SOURCE(SQLITE(PATH 'users.db' TABLE 'users')) LIFETIME(1000) LAYOUT(CACHE(SIZE_IN_CELLS 1000))"
)
rows = client.query(
    "SELECT number, dictGet('of_python', 'name', number) AS name, dictGet('of_python', 'city', number) "
    "FROM numbers({n:UInt64}) WHERE number > 0 ORDER BY number",
    parameters={"n": 3},
)
assert rows.column_names[1] == "name", rows.column_names
assert rows.result_rows == [(1, "n1", "Riga"), (2, "n2", None)], rows.result_rows
values = client.query(
    "SELECT [1, 2], (1, 'x'), toDate('2024-01-02'), toDateTime(5), CAST(1.5 AS Decimal(9, 2)), "
    "toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0'), true, -1.5"
).result_rows
assert values == [
    (
        [1, 2],
        (1, "x"),
        datetime.date(2024, 1, 2),
        datetime.datetime(1970, 1, 1, 0, 0, 5),
        Decimal("1.50"),
        uuid.UUID("61f0c404-5cb3-11e7-907b-a6006ad3dba0"),
        True,
        -1.5,
    )
], values
assert client.query("SELECT * FROM numbers(300000)").row_count == 300000
assert client.query("SELECT 1 WHERE 0").result_rows == []
try:
    client.query("SELECT nosuch")
    raise AssertionError("no error")
except DatabaseError as error:
    assert "UNKNOWN_IDENTIFIER" in str(error), error
try:
    failing = "SELECT number, intDiv(1, toInt64(number) - 1000000) FROM numbers(2000000)"
    client.query(failing, settings={"max_threads": 1, "wait_end_of_query": 0}).result_rows
    raise AssertionError("no error in the middle of rows")
except StreamFailureError as error:
    assert "Division by zero" in str(error), error
client.command("DROP DICTIONARY of_python")
client.command("CREATE TABLE of_python (id UInt64, name String, city Nullable(String), day Date)")
rows = [(1, "one", None, datetime.date(2024, 1, 2)), (2, "two", "Riga", datetime.date(1970, 1, 1))]
client.insert("of_python", rows, column_names=["id", "name", "city", "day"])
assert client.query("SELECT * FROM of_python ORDER BY id").result_rows == rows
client.command("DROP TABLE of_python")
print("Ok.")
