#!/usr/bin/env python3
"""Asks ClickHouse for every function's answers at the edges, and records them.

    sweep.py [--only NAME] [FOLDER]

Writes FOLDER/*.tsv (crates/sql/tests/conformance unless given), which
crates/sql/tests/sql/conformance.rs compares with Granary's answers. `make sweep` runs it.

A file is a list of sections. `= template` begins one: an expression, or a whole query,
with a `?` where an argument goes. A line below it is one call:

    form TAB type TAB value TAB argument TAB argument ..

`form` says how the arguments are given: `c` as constants, `m` as columns (the argument
in materialize()), `=` for both with one answer. If there is an error, the type is `!`
and the value its code. Values are those of TabSeparated.
"""

import argparse
import re
from itertools import product
from pathlib import Path

from client import ClickHouse, EngineDied

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent.parent / "crates/sql/tests/conformance"

# Values at the edges. Literals of integers have the smallest type that holds them.
WHOLE = """0 1 -1 2 127 128 -128 -129 255 256 32767 -32768 65535 65536 2147483647 -2147483648 4294967295 4294967296
9223372036854775807 -9223372036854775808 18446744073709551615""".split()
TYPED = [f"to{name}({value})" for value in (0, 7, -7) for name in ("Int8", "Int16", "Int32", "Int64")] + [
    f"to{name}(7)" for name in ("UInt8", "UInt16", "UInt32", "UInt64")
]
FLOATS = """0.0 -0.0 0.5 1.5 -1.5 2.5 3.7 0.1 1e15 1e20 -1e20 1e-20 1e308 5e-324 123456789.125 nan inf -inf
toFloat32(0.1) toFloat32(-2.5) toFloat32(nan) toFloat32(inf) toFloat32(16777217)""".split()
TEXTS = [
    "''", "'a'", "'abc'", "'ABC xyz'", "'äöÜ'", "'日本語'", "'😀x'", "' a b '", "'0'", "'123'", "'-5'", "'256'", "'1.5'", "'1e3'",
    "' 7'", "'7x'", "'nan'", "'-inf'", "'true'", "'2020-02-29'", "'2020-02-30'", "'2020-02-29 12:34:56'", "'a,b,,c'",
    "'100%_'", "'\\\\n\\t'", "'127.0.0.1'", "'1.2.3.400'", "'::1'", "'61f0c404-5cb3-11e7-907b-a6006ad3dba0'", "'61f0'",
    "'YWJj'", "'4A4b'", "'99999999999999999999999'",
]  # fmt: skip
DATES = ["toDate('1970-01-01')", "toDate('2149-06-06')", "toDate('2020-02-29')", "toDate('2024-12-30')"]
DATES32 = ["toDate32('1900-01-01')", "toDate32('2299-12-31')", "toDate32('2020-02-29')"]
TIMES = [
    "toDateTime('1970-01-01 00:00:00')", "toDateTime('2106-02-07 06:28:15')", "toDateTime('2020-02-29 23:59:59')",
    "toDateTime('2021-01-03 12:34:56')", "toDateTime('2020-03-29 03:30:00', 'Europe/Berlin')",
]  # fmt: skip
TIMES64 = [
    "toDateTime64('1900-01-01 00:00:00', 3)", "toDateTime64('2299-12-31 23:59:59.999', 3)",
    "toDateTime64('2020-02-29 12:34:56.789', 3)", "toDateTime64('1969-12-31 23:59:59.5', 6)",
]  # fmt: skip
ALL_TIMES = DATES + DATES32 + TIMES + TIMES64
DECIMALS = [
    "toDecimal32('0', 2)", "toDecimal32('1.55', 2)", "toDecimal32('-1.45', 2)", "toDecimal32('9999999.99', 2)",
    "toDecimal64('-99999999999999.9999', 4)", "toDecimal128('2.5', 10)", "toDecimal256('1.5', 20)",
]  # fmt: skip
WIDE = [
    "toInt128('170141183460469231731687303715884105727')", "toUInt128('340282366920938463463374607431768211455')",
    "toInt256('-1')", "toInt128(-5)",
]  # fmt: skip
TRUTHS = ["true", "false"]
NULLS = [
    "NULL", "CAST(NULL AS Nullable(Int32))", "CAST(7 AS Nullable(UInt8))", "CAST(NULL AS Nullable(String))",
    "CAST('x' AS Nullable(String))", "CAST(NULL AS Nullable(Float64))",
]  # fmt: skip
IDS = [
    "toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')", "toIPv4('127.0.0.1')", "toIPv4('255.255.255.255')", "toIPv6('::1')",
    "toIPv6('::ffff:1.2.3.4')",
]  # fmt: skip
ARRAYS = [
    "[]", "[0]", "[1, 2, 3]", "[3, 1, 2, 1]", "[-1, 300]", "[1, NULL, 2]", "[NULL]", "[1.5, nan, -inf, 0.0]", "['b', 'a', '']",
    "['a', NULL]", "[[1], [2, 3]]", "[toDate('2020-01-01')]", "[toInt64(5), toInt64(-5)]", "[toUInt64(18446744073709551615), 1]",
    "[(1, 'a')]", "[toDecimal32('1.25', 2), toDecimal32('2.5', 2)]", "['ä', 'z']", "[true, false]",
]  # fmt: skip
OTHERS = ["(1, 'a')", "map('a', 1)", "map('a', 1, 'b', 2)", "toFixedString('abc', 5)"]
NUMBERS = WHOLE + TYPED + FLOATS + DECIMALS + WIDE + TRUTHS
# One or two of each type: where a function does not take it.
SAMPLES = [
    "1", "-1", "300", "1.5", "'a'", "'12'", "toDate('2020-02-29')", "toDateTime('2020-02-29 23:59:59')",
    "toDecimal32('1.5', 2)", "true", "NULL", "CAST(NULL AS Nullable(Int32))", "[1, 2]", "(1, 'a')", "map('a', 1)",
    "toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')", "toIPv4('127.0.0.1')", "toFixedString('abc', 5)",
    "toDateTime64('2020-02-29 12:34:56.789', 3)", "toInt128(-5)",
]  # fmt: skip
EVERYTHING = NUMBERS + TEXTS + ALL_TIMES + NULLS + IDS + ARRAYS + OTHERS

# For functions of two arguments.
NUMBERS_2 = """0 1 -1 7 127 -128 255 32767 65535 -2147483648 4294967295 9223372036854775807 -9223372036854775808
18446744073709551615 0.0 -0.0 1.5 -2.5 nan inf -inf toFloat32(0.1)""".split() + [
    "toDecimal32('1.5', 2)", "toDecimal64('-3.25', 4)", "true", "CAST(NULL AS Nullable(Int32))", "CAST(7 AS Nullable(UInt8))", "NULL",
]  # fmt: skip
MIXED_2 = """0 -1 255 18446744073709551615 1.5 nan -0.0 'a' '' 'ä' '1' '2020-02-29' true NULL [1] (1,'a')""".split() + [
    "toDate('2020-02-29')", "toDateTime('2020-02-29 00:00:00')", "toDate32('1900-01-01')", "toDateTime64('2020-02-29 12:34:56.789', 3)",
    "toDecimal32('1.5', 2)", "toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')", "toIPv4('127.0.0.1')", "toIPv6('::1')",
    "CAST(NULL AS Nullable(Int32))", "CAST('x' AS Nullable(String))", "toFixedString('a', 2)", "toInt128(-5)",
]  # fmt: skip
TEXTS_2 = ["''", "'a'", "'abcabc'", "'ä'", "'Äöüä'", "'%'", "'b'", "'日本語'", "'.'", "' '", "NULL", "CAST('a' AS Nullable(String))", "1"]
OFFSETS = ["0", "1", "2", "-1", "-2", "3", "100", "-100", "9223372036854775807", "-9223372036854775808", "NULL"]
SHIFTS = ["0", "1", "-1", "31", "365", "100000", "1.5", "toInt64(5)", "toUInt8(200)", "NULL", "9223372036854775807"]


def calls(names, *arguments):
    """Sections of the functions of these names: each argument of each list with each of the others."""
    marks = ", ".join("?" * len(arguments))
    return [(f"{name}({marks})", list(product(*arguments))) for name in names.split()]


def given(template, *arguments):
    return [(template, list(product(*arguments)))]


def rows(template, *calls_):
    return [(template, [call if isinstance(call, tuple) else (call,) for call in calls_])]


GROUPS = {
    "conversions": calls(
        "toUInt8 toUInt16 toUInt32 toUInt64 toInt8 toInt16 toInt32 toInt64 toFloat32 toFloat64 toString toDate toDateTime "
        "toBool toTypeName toNullable toLowCardinality toDate32 toInt128 toUInt128 toInt256 identity materialize",
        EVERYTHING,
    )
    + calls(
        " ".join(
            f"to{name}Or{otherwise}"
            for name in "UInt8 UInt16 UInt32 UInt64 Int8 Int16 Int32 Int64 Float32 Float64".split()
            for otherwise in ("Null", "Zero")
        ),
        TEXTS + SAMPLES + NULLS,
    )
    + calls(
        "toUUID toUUIDOrNull toUUIDOrZero toUUIDOrDefault toIPv4 toIPv4OrNull toIPv4OrDefault toIPv6 toIPv6OrNull "
        "toIPv6OrDefault toIPv4OrZero toIPv6OrZero IPv4StringToNum IPv6StringToNum assumeNotNull",
        TEXTS + SAMPLES + NULLS + IDS + ["'0.0.0.0'", "'1.2.3'", "'::ffff:1.2.3.4'", "'fe80::1'", "'00000000-0000-0000-0000-000000000000'"],
    )
    + calls("toUUIDOrDefault", ["'x'", "'61f0c404-5cb3-11e7-907b-a6006ad3dba0'", "NULL"], ["toUUID('00000000-0000-0000-0000-000000000001')", "'x'"])
    + calls("toIPv4OrDefault", ["'x'", "'1.2.3.4'", "NULL"], ["toIPv4('9.9.9.9')", "'x'"])
    + calls("toIPv6OrDefault", ["'x'", "'::1'", "'1.2.3.4'"], ["toIPv6('::9')", "'x'"])
    + given("toDecimal32(?, 2)", NUMBERS + TEXTS + NULLS + DATES)
    + given("toDecimal64(?, 4)", NUMBERS + TEXTS[:12] + NULLS)
    + given("toDecimal128(?, 0)", NUMBERS + TEXTS[:12])
    + given("toDecimal256(?, 10)", FLOATS + TEXTS[:12] + WIDE)
    + given("toDateTime64(?, 3)", WHOLE + FLOATS[:8] + TEXTS + ALL_TIMES + NULLS)
    + given("toDateTime(?, 'Europe/Berlin')", ["0", "1582934400"] + TEXTS[18:22] + ALL_TIMES)
    + given("toFixedString(?, 4)", TEXTS + SAMPLES)
    + [
        section
        for to in (
            "UInt8 Int8 Int32 UInt64 Int64 Float32 Float64 String Date DateTime Bool UUID IPv4 IPv6 Date32 DateTime64(3) "
            "Decimal(9,2) Nullable(UInt8) Nullable(Int64) Nullable(String) Nullable(UUID) Nullable(Float64) Nullable(Date) "
            "Nullable(IPv4) Nullable(Bool) Nullable(DateTime)"
        ).split()
        for section in given(f"CAST(? AS {to})", SAMPLES + TEXTS[8:21] + ["nan", "-0.0", "256", "-129", "CAST('1' AS Nullable(String))", "'61f0c404-5cb3-11e7-907b-a6006ad3dba0'"])
    ]
    + given("?::Int16", SAMPLES)
    + given("toString(?, 'Europe/Berlin')", ALL_TIMES + ["1"])
    + calls("toUnixTimestamp toYear toMonth toDayOfMonth toHour toMinute toSecond toQuarter toDayOfWeek toDayOfYear toISOWeek "
            "toISOYear toYYYYMM toYYYYMMDD toYYYYMMDDhhmmss", SAMPLES[:11]),
    "arithmetic": [
        section
        for operator in "+ - * / %".split() + ["DIV"]
        for section in given(f"? {operator} ?", NUMBERS_2, NUMBERS_2)
    ]
    + calls("intDivOrZero", NUMBERS_2, NUMBERS_2)
    + [section for operator in "+-" for section in given(f"? {operator} ?", ALL_TIMES + ["'2020-02-29'"], ["0", "1", "-1", "70000", "1.5", "NULL", "toDate('2020-02-28')", "toDateTime('2020-02-28 00:00:00')"])]
    + calls("plus minus multiply divide modulo mod intDiv", ["7", "-7", "1.5"], ["2", "-2", "0", "'a'", "NULL"])
    + calls("negate abs sign", NUMBERS + SAMPLES)
    + given("-?", NUMBERS + SAMPLES)
    + given("+?", SAMPLES)
    + calls("round floor ceil ceiling trunc truncate", NUMBERS + SAMPLES)
    + calls("round floor ceil", ["0.5", "1.5", "2.5", "-2.5", "1234.5678", "nan", "-0.0", "25", "-25", "255", "toDecimal32('1.55', 2)", "toDecimal32('-1.45', 2)", "toFloat32(2.675)", "9223372036854775807", "1e300"], ["0", "1", "2", "-1", "-2", "-10", "20", "NULL"])
    + calls("trunc truncate", ["1234.5678", "-2.5", "25", "toDecimal32('1.55', 2)"], ["0", "1", "-1", "-2"])
    + calls("exp exp2 log ln log2 log10 sqrt cbrt sin cos tan asin acos atan sinh cosh tanh isNaN isFinite isInfinite formatReadableSize", NUMBERS + SAMPLES)
    + calls("pow power hypot atan2 ifNotFinite", NUMBERS_2[:24], NUMBERS_2[:24])
    + calls("bitAnd bitOr bitXor bitShiftLeft bitShiftRight bitTest", NUMBERS_2[:17] + ["'a'", "true", "NULL", "toDecimal32('1.5', 2)"], NUMBERS_2[:17] + ["2", "3", "true", "NULL"])
    + calls("bitNot bitCount", NUMBERS + SAMPLES)
    + calls("gcd lcm", ["0", "1", "-4", "6", "255", "1.5", "NULL"], ["0", "1", "-4", "6", "255", "1.5"])
    + calls("intHash32 intHash64", NUMBERS + SAMPLES)
    + calls("cityHash64", EVERYTHING)
    + calls("cityHash64", SAMPLES, SAMPLES)
    + calls("cityHash64", ["1", "'a'"], ["2", "NULL"], ["3", "'c'"])
    + rows("cityHash64(?)", "'" + "x" * 8 + "'", "'" + "xy" * 8 + "'", "'" + "abc" * 11 + "'", "'" + "abcd" * 16 + "'", "'" + "abcde" * 30 + "'")
    + rows("?", "pi()", "e()", "tuple()", "1 = 1", "1 AND 2", "NOT 0", "today() = toDate(now())", "toTypeName(now())", "toTypeName(today())",
           "toTypeName(now64())", "toTypeName(rand())", "rand() < 4294967296", "toTypeName(rand64())", "toTypeName(yesterday())", "toTypeName(rand() % 50000)", "version() != ''", "toTypeName(generateUUIDv4())",
           "0x10", "1_000", "0b101", "1e400", "18446744073709551616", "-9223372036854775809", ".5", "5.", "'a' 'b'", "1 + 1 AS x", "[1, 2][1]", "[1, 2][-1]", "[1, 2][0]", "[1, 2][3]", "(1, 2).1", "1 ? 2 : 3", "NOT NULL", "NULL AND 0", "NULL OR 1", "1 = NULL", "(1, NULL) = (1, 2)"),
    "comparisons": [
        section
        for operator in "= != < <= > >=".split()
        for section in given(f"? {operator} ?", MIXED_2, MIXED_2)
    ]
    + [section for operator in "= < >".split() for section in given(f"? {operator} ?", NUMBERS_2, NUMBERS_2)]
    + given("? <=> ?", ["1", "2", "NULL", "CAST(NULL AS Nullable(Int32))", "nan"], ["1", "NULL", "nan"])
    + given("? IS DISTINCT FROM ?", ["1", "NULL"], ["1", "NULL"])
    + given("? IS NOT DISTINCT FROM ?", ["1", "NULL"], ["1", "NULL"])
    + [section for operator in ("AND", "OR") for section in given(f"? {operator} ?", ["0", "1", "2", "0.5", "nan", "NULL", "true", "'a'", "toDate('2020-02-29')", "CAST(NULL AS Nullable(UInt8))"], ["0", "1", "NULL", "nan", "-1"])]
    + given("NOT ?", NUMBERS + SAMPLES)
    + calls("and or xor", ["0", "1", "2", "NULL", "0.5"], ["0", "1", "NULL", "255"])
    + calls("and or xor", ["0", "1", "NULL"], ["0", "1"], ["0", "7", "NULL"])
    + calls("not isNull isNotNull", SAMPLES)
    + given("? IS NULL", SAMPLES)
    + given("? IS NOT NULL", SAMPLES)
    + given("? BETWEEN ? AND ?", ["1", "1.5", "nan", "NULL", "'b'", "toDate('2020-02-29')"], ["0", "'a'", "nan", "'2020-01-01'"], ["2", "'c'", "nan", "'2021-01-01'"])
    + given("? NOT BETWEEN ? AND ?", ["1", "nan", "NULL"], ["0", "nan"], ["2", "nan"])
    + given("? IN (1, 2)", SAMPLES + ["nan", "1.0", "2.5", "toInt64(1)", "'1'"])
    + given("? IN (1, NULL)", ["1", "2", "NULL", "CAST(NULL AS Nullable(Int32))"])
    + given("? NOT IN (1, 2)", SAMPLES + ["nan", "1.0"])
    + given("? NOT IN (1, NULL)", ["1", "2", "NULL"])
    + given("? IN ('a', 'b')", SAMPLES + ["'b'", "''", "'ä'"])
    + given("? IN (nan, 1.5)", ["nan", "1.5", "1", "toFloat32(1.5)", "-0.0"])
    + given("? IN (0, 0.5)", ["-0.0", "0", "0.5", "false", "nan"])
    + given("? IN (-1, 300)", ["-1", "255", "300", "toInt8(-1)", "toUInt64(18446744073709551615)"])
    + given("? IN ((1, 'a'), (2, 'b'))", ["(1, 'a')", "(2, 'a')", "(1, NULL)", "1"])
    + given("? IN ('2020-02-29', '1970-01-01')", ALL_TIMES)
    + given("? IN ('127.0.0.1')", IDS)
    + given("(?, ?) = (?, ?)", ["1", "NULL", "nan"], ["'a'", "NULL"], ["1", "nan"], ["'a'", "'b'"])
    + given("(?, ?) < (?, ?)", ["1", "2", "NULL"], ["'a'"], ["1", "nan"], ["'a'", "'b'"])
    + given("? = ?", ARRAYS[:9], ARRAYS[:9])
    + given("? < ?", ["[1]", "[]", "[1, 2]", "[nan]"], ["[1]", "[1, 0]", "[nan]"])
    + calls("if", ["1", "0", "NULL", "2", "nan", "0.5", "'a'", "CAST(NULL AS Nullable(UInt8))", "CAST(1 AS Nullable(UInt8))"], ["1", "'a'", "NULL", "-1.5"], ["300", "'b'", "NULL", "toDate('2020-02-29')", "toDecimal32('1.5', 2)", "CAST(NULL AS Nullable(Int32))"])
    + given("if(1, ?, ?)", MIXED_2, MIXED_2)
    + calls("ifNull nullIf coalesce greatest least", MIXED_2, MIXED_2)
    + calls("greatest least", NUMBERS_2, NUMBERS_2)
    + calls("greatest least coalesce", ["1", "NULL", "2.5"], ["-1", "NULL", "'a'"], ["300", "toInt64(5)"])
    + calls("coalesce greatest least", SAMPLES)
    + calls("multiIf", ["1", "0", "NULL"], ["'a'", "1"], ["0", "1"], ["'b'", "2", "NULL"], ["NULL", "'c'", "3.5"])
    + given("CASE WHEN ? THEN ? ELSE ? END", ["1", "0", "NULL"], ["1", "'a'", "NULL"], ["300", "'b'"])
    + given("CASE WHEN ? THEN ? END", ["1", "0", "NULL"], ["1", "'a'", "NULL"])
    + given("CASE ? WHEN 1 THEN ? ELSE ? END", ["1", "2", "NULL", "1.0"], ["1", "'a'"], ["300", "'b'"])
    + given("CASE ? WHEN NULL THEN 'n' WHEN 1 THEN 'one' ELSE 'other' END", ["1", "2", "NULL", "CAST(NULL AS Nullable(Int32))"])
    + given("CASE ? WHEN nan THEN 'n' WHEN 0.0 THEN 'zero' ELSE 'other' END", ["nan", "-0.0", "1.5"])
    + given("transform(?, [1, 2], ['one', 'two'], 'other')", NUMBERS_2 + ["2", "'1'"])
    + given("transform(?, [1, 2], [10, 300])", ["1", "2", "3", "1.0", "toInt64(2)", "-1", "NULL", "nan", "'a'", "255"])
    + given("transform(?, [1, NULL], [10, 20], 30)", ["1", "2", "NULL", "CAST(NULL AS Nullable(Int32))"])
    + given("transform(?, ['a', 'b'], [1, 2], ?)", ["'a'", "'b'", "'c'", "''", "CAST('a' AS Nullable(String))", "NULL", "1"], ["0", "-1", "1.5", "NULL", "'x'"])
    + given("transform(?, ['a', 'b'], ['x', 'y'])", ["'a'", "'b'", "'c'", "'ä'"])
    + given("transform(?, [toDate('2020-02-29')], ['leap'], 'no')", DATES)
    + given("transform(?, [1.5, nan], [1, 2], 0)", ["1.5", "nan", "2.5"]),
    "strings": calls(
        "length lengthUTF8 char_length lower upper lowerUTF8 upperUTF8 lcase ucase reverse reverseUTF8 trim trimLeft trimRight trimBoth "
        "ltrim rtrim empty notEmpty hex unhex base64Encode base64Decode isValidUTF8 ascii CHAR_LENGTH OCTET_LENGTH initcap MD5 char",
        TEXTS + SAMPLES,
    )
    + calls("concat", MIXED_2, ["'x'", "1", "NULL", "CAST(NULL AS Nullable(String))", "1.5"])
    + given("? || ?", MIXED_2, ["'x'", "1", "NULL"])
    + calls("concat", ["'a'", "'ä'", "NULL", "1"], ["''", "'b'"], ["'c'", "NULL", "toDate('2020-02-29')"])
    + calls("concat", SAMPLES)
    + calls("concatWithSeparator concat_ws", ["','", "''", "NULL"], ["'a'", "1", "NULL"], ["'b'", "1.5"])
    + calls("substring substr mid substringUTF8 left right leftUTF8 rightUTF8", ["'abcdef'", "'äöü'", "''", "'日本'", "NULL", "1", "toFixedString('abc', 5)"], OFFSETS)
    + calls("substring substringUTF8", ["'abcdef'", "'äöü'", "''"], OFFSETS, OFFSETS)
    + given("SUBSTRING(? FROM ? FOR ?)", ["'abcdef'", "'äöü'"], ["0", "1", "-2"], ["0", "2", "-1"])
    + given("SUBSTRING(? FROM ?)", ["'abcdef'"], ["0", "1", "-2"])
    + calls("position positionCaseInsensitive locate startsWith endsWith countSubstrings instr positionUTF8", TEXTS_2, TEXTS_2)
    + calls("position locate", ["'abcabc'", "'bc'"], ["'bc'", "'abcabc'"], ["1", "3", "0", "100"])
    + given("POSITION(? IN ?)", ["'b'", "'ä'", "''", "'z'"], ["'abcabc'", "'Äöüä'", "''"])
    + [section for word in ("LIKE", "NOT LIKE", "ILIKE", "NOT ILIKE") for section in given(f"? {word} ?", ["''", "'abc'", "'ABC'", "'äÖ'", "'a%c'", "'a_c'", "'a\\nc'", "NULL", "'a\\\\c'"], ["''", "'%'", "'a%'", "'_b_'", "'a__'", "'a\\\\%c'", "'a\\\\_c'", "'Ä_'", "'%C'", "'a%c'", "NULL", "'a\\\\\\\\c'"])]
    + calls("like notLike ilike notILike", ["'abc'", "'ABC'"], ["'a%'", "'%B%'"])
    + calls("match extract extractAll countMatches", ["'abc abc'", "''", "'äbc1'", "'12 34'"], ["'b'", "'[0-9]+'", "'(a)(b)'", "'^$'", "''", "'.'", "'(?i)ABC'", "'\\\\w+'", "'\\\\d'", "'('"])
    + calls("replaceAll replace replaceOne", ["'abcabc'", "'äöä'", "''"], ["'b'", "''", "'ä'", "'abcabc'"], ["'X'", "''", "'日'"])
    + calls("replaceRegexpAll replaceRegexpOne", ["'abcabc'", "'äb1'", "''"], ["'b'", "'(b)(c)'", "'^'", "''", "'[0-9]'"], ["'X'", "''", "'\\\\2\\\\1'", "'\\\\0'"])
    + calls("repeat", ["'ab'", "''", "'ä'", "NULL", "1"], OFFSETS[:5] + ["NULL"])
    + calls("space", ["0", "3", "-1", "NULL"])
    + calls("leftPad rightPad lpad rpad", ["'ab'", "'ä'", "''", "'abcdef'"], ["0", "1", "4", "-1", "7"])
    + calls("leftPad rightPad", ["'ab'", "'ä'", "''"], ["1", "4", "7"], ["'xyz'", "''", "'ä'"])
    + calls("splitByChar", ["','", "'ab'", "''", "'ä'"], ["'a,b,,c'", "''", "','", "'äöä'"])
    + calls("splitByString", ["','", "'ab'", "''", "'ä'"], ["'a,b,,c'", "''", "','", "'äöä'", "'xabyabz'"])
    + given("TRIM(BOTH ? FROM ?)", ["'a'", "'ab'", "' '", "''"], ["'abcba'", "' a '", "''"])
    + given("TRIM(LEADING ? FROM ?)", ["'a'", "'ab'"], ["'abcba'", "' a '"])
    + given("TRIM(TRAILING ? FROM ?)", ["'a'", "'ab'"], ["'abcba'", "' a '"])
    + calls("trim", ["'abcba'"], ["'a'", "'ab'"])
    + calls("format", ["'{} {}'"], ["'a'", "1"], ["'b'"])
    + calls("toString", ["'a'", "NULL"])
    + calls("domain domainWithoutWWW path protocol", ["'https://www.example.com/a?b=1'", "''"]),
    # Other names of the same functions, each in some case, and operators written as functions.
    "names": calls("equals notEquals less lessOrEquals greater greaterOrEquals", ["1", "1.5", "nan", "'a'", "NULL"], ["2", "-1", "nan", "'b'", "NULL"])
    + given("in(?, (1, 2))", ["1", "3", "NULL"])
    + given("notIn(?, (1, 2))", ["1", "3", "NULL"])
    + [
        section
        for unit in "Second Minute Hour Day Week Month Quarter Year".split()
        for section in given(f"? + toInterval{unit}(?)", ["toDate('2020-02-29')", "toDateTime('2020-02-29 23:59:59')"], ["1", "-1", "0"])
    ]
    + rows(
        "?", "array_to_string(['a', 'b'], '-')", "CARDINALITY('äb')", "cardinality([1, 2])", "CHARACTER_LENGTH('äb')", "Char_Length('äb')", "octet_length('äb')",
        "toTypeName(curdate())", "toTypeName(CURRENT_DATE())", "toTypeName(current_timestamp())", "toTypeName(localtimestamp())", "curdate() = today()",
        "DATE_FORMAT(toDate('2020-02-29'), '%Y')", "DATE_TRUNC('month', toDate('2020-02-29'))", "DAYOFMONTH(toDate('2020-02-29'))", "dayofweek(toDate('2020-02-29'))",
        "DayOfYear(toDate('2020-02-29'))", "FORMAT_BYTES(1024)", "from_base64('YWJj')", "TO_BASE64('abc')", "MINUTE(toDateTime('2020-02-29 23:59:58'))",
        "QUARTER(toDate('2020-02-29'))", "second(toDateTime('2020-02-29 23:59:58'))", "toTypeName(rand32())", "REGEXP_MATCHES('abc', 'b')", "regexp_replace('abcb', 'b', 'x')",
        "timestamp_diff('day', toDate('2020-02-28'), toDate('2020-03-01'))", "TIMESTAMP_DIFF('day', toDate('2020-02-28'), toDate('2020-03-01'))",
        "toTypeName(connectionId())", "LOWER('Ab')", "Upper('Ab')", "LENGTH('ab')", "CONCAT('a', 'b')", "COALESCE(NULL, 1)", "IF(1, 2, 3)", "ABS(-1)",
        "ROUND(2.5)", "Floor(2.5)", "CEIL(2.5)", "GREATEST(1, 2)", "Least(1, 2)", "SUBSTRING('abc', 2)", "POSITION('abc', 'b')", "LOCATE('b', 'abc')", "REVERSE('abc')", "REPEAT('a', 2)",
        "LEFT('abc', 1)", "RIGHT('abc', 1)", "HEX('a')", "EXP(0)", "LOG(1)", "SQRT(4)", "POW(2, 3)", "SIGN(-2)", "PI()", "NOW() >= toDateTime(0)", "TODAY() >= toDate(0)", "NULLIF(1, 1)",
        "IFNULL(NULL, 1)", "ISNULL(NULL)", "tostring(1)", "TOSTRING(1)", "touint8(1)", "DICTGET('d', 'a', 1)", "arraymap(x -> x, [1])", "startswith('a', 'a')", "starts_with('a', 'a')",
        "character_length('a')", "strpos('abc', 'b')", "array_length([1])", "make_array(1)", "nvl(NULL, 1)", "md5('a')", "to_char(1, 'x')", "array_append([1], 2)", "uuid()", "arrow_typeof(1)",
        "btrim(' a ')", "chr(65)", "date_part('year', today())", "named_struct('a', 1)", "isnan(nan)", "log(2, 8)", "trunc(1.5, 0)", "nanvl(nan, 1)", "signum(-1)", "random()", "sha256('a')",
    )
    + [
        (f"SELECT {name}(x) FROM (SELECT arrayJoin([3, 1, 2]) AS x)", [()])
        for name in "BIT_AND BIT_OR bit_xor STD stddev_pop STDDEV_SAMP VAR_POP var_samp uniqCombined64 uniqHLL12 quantilesExactInclusive(0.5) COUNT Sum AVG Min MAX string_agg bool_and stddev array_agg approx_distinct median".split()
    ]
    + [
        (f"SELECT {name}(x, x) FROM (SELECT arrayJoin([3, 1, 2]) AS x)", [()])
        for name in "COVAR_POP covar_samp CORR max_by MIN_BY regr_slope".split()
    ]
    + [(f"SELECT number, {name}() OVER (ORDER BY number % 2) FROM numbers(4) ORDER BY number", [()]) for name in "denseRank DENSE_RANK Rank ROW_NUMBER".split()]
    + [("SELECT number, max(x) OVER (ORDER BY number), min(x) OVER (ORDER BY number) FROM (SELECT number, [1.5, nan, -1.0, 7.0][number + 1] AS x FROM numbers(4)) ORDER BY number", [()])]
    + [("SELECT unnest(?)", [("[1, 2]",)])],
    "times": calls(
        "toYear toMonth toDayOfMonth toHour toMinute toSecond toQuarter toDayOfWeek toDayOfYear toISOWeek toISOYear toYYYYMM "
        "toYYYYMMDD toYYYYMMDDhhmmss toStartOfYear toStartOfISOYear toStartOfQuarter toStartOfMonth toMonday toStartOfWeek "
        "toStartOfDay toStartOfHour toStartOfFifteenMinutes toStartOfTenMinutes toStartOfFiveMinutes toStartOfMinute "
        "toStartOfFiveMinute toUnixTimestamp toUnixTimestamp64Second toUnixTimestamp64Milli toUnixTimestamp64Micro toUnixTimestamp64Nano "
        "YEAR MONTH DAY HOUR toWeek toLastDayOfMonth toRelativeDayNum timezoneOf",
        ALL_TIMES + ["'2020-02-29'", "1", "NULL", "CAST(NULL AS Nullable(DateTime))"],
    )
    + [section for part in "YEAR MONTH DAY HOUR MINUTE SECOND QUARTER WEEK".split() for section in given(f"EXTRACT({part} FROM ?)", ALL_TIMES + ["'2020-02-29'", "1"])]
    + [
        section
        for name in "toYear toHour toYYYYMMDD toStartOfDay toStartOfHour toStartOfMonth toMonday toDate toDayOfWeek".split()
        for section in given(f"{name}(?, 'Asia/Kolkata')", TIMES + TIMES64 + DATES[:1])
    ]
    + calls("toDayOfWeek toStartOfWeek", DATES + TIMES, ["0", "1", "2", "3"])
    + calls("fromUnixTimestamp FROM_UNIXTIME", WHOLE + ["1.5", "'a'", "NULL"])
    + calls(
        "addSeconds addMinutes addHours addDays addWeeks addMonths addQuarters addYears subtractSeconds subtractMinutes "
        "subtractHours subtractDays subtractWeeks subtractMonths subtractQuarters subtractYears",
        ["toDate('2020-02-29')", "toDate('1970-01-01')", "toDate('2149-06-06')", "toDateTime('2020-02-29 23:59:59')", "toDateTime('2106-02-07 06:28:15')",
         "toDate32('2020-02-29')", "toDate32('2299-12-31')", "toDateTime64('2020-02-29 12:34:56.789', 3)", "'2020-02-29'", "NULL"],
        SHIFTS,
    )
    + [section for sign in "+-" for unit in "SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR".split() for section in given(f"? {sign} INTERVAL 1 {unit}", ALL_TIMES)]
    + given("? + INTERVAL '2 day'", DATES)
    + [
        section
        for unit in "second minute hour day week month quarter year".split()
        for section in given(f"dateDiff('{unit}', ?, ?)", ALL_TIMES[:12], ALL_TIMES[:12:2] + TIMES64[:3])
    ]
    + given("dateDiff('day', ?, ?)", ["'2020-02-29'", "NULL", "1"], ["toDate('2020-03-01')"])
    + calls("date_diff timestampDiff DATE_DIFF", ["'day'", "'hour'", "'dd'", "'nosuch'"], ["toDate('2020-02-29')"], ["toDateTime('2020-03-01 12:00:00')"])
    + [section for unit in "second minute hour day week month quarter year".split() for name in ("dateTrunc", "date_trunc") for section in given(f"{name}('{unit}', ?)", ALL_TIMES)]
    + [
        section
        for unit in "SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR".split()
        for count in (1, 2, 5, 7, 15)
        for section in given(f"toStartOfInterval(?, INTERVAL {count} {unit})", ALL_TIMES)
    ]
    + rows("toStartOfInterval(?, ?)", ("toDateTime('2020-02-29 23:59:59')", "INTERVAL 0 HOUR"), ("toDateTime('2020-02-29 23:59:59')", "INTERVAL -1 HOUR"),
           ("toDateTime('2020-02-29 23:59:59')", "1"), ("toDateTime('2020-02-29 23:59:59')", "toIntervalHour(6)"), ("NULL", "INTERVAL 1 HOUR"),
           ("'2020-02-29'", "INTERVAL 1 HOUR"), ("toDateTime('2020-03-29 03:30:00', 'Europe/Berlin')", "toIntervalDay(1)"))
    + given("toStartOfInterval(?, INTERVAL 3 HOUR, 'Asia/Kolkata')", TIMES)
    + [section for pattern in "%Y-%m-%d %H:%M:%S|%F|%T|%D|%y %e %j %V %u %w %a %b %W %M %i %h %I %p|%%|%s|%f|%c|%Q|%C|%G|%g|%R|%r|%n%t|%z|%k %l|%E|".split("|") for section in given(f"formatDateTime(?, '{pattern}')", ALL_TIMES[::2])]
    + given("formatDateTime(?, '%H', 'Asia/Kolkata')", TIMES)
    + given("toTimezone(?, 'Asia/Kolkata')", ALL_TIMES)
    + given("toTimeZone(?, 'Nowhere/Else')", TIMES[:1])
    + rows("?", "DATE '2020-02-29'", "TIMESTAMP '2020-02-29 01:02:03'", "toDate('2020-02-29') + INTERVAL 1 MONTH - INTERVAL 1 DAY", "INTERVAL 1 DAY", "toIntervalMonth(2)",
           "toDateTime('2020-02-29 00:00:00') - toDateTime('2020-02-28 00:00:00')", "toDate('2020-03-01') - toDate('2020-02-28')", "makeDate(2020, 2, 29)"),
    "arrays": calls(
        "arrayReverse arrayPopBack arrayPopFront arrayMin arrayMax arrayEnumerate arrayStringConcat range arraySum arrayAvg arrayProduct "
        "arrayCumSum arrayUniq arrayDistinct arraySort arrayReverseSort length empty notEmpty arrayExists arrayAll arrayCount arrayFilter "
        "arrayFirst arrayJoin arrayFlatten arrayCompact arrayDifference reverse toString mapKeys mapValues toTypeName array tuple",
        ARRAYS + SAMPLES,
    )
    + calls("hasAny hasAll arrayIntersect arrayConcat", ARRAYS, ARRAYS)
    + calls("has indexOf countEqual arrayPushBack arrayPushFront arrayElement", ARRAYS, ["0", "1", "-1", "2", "NULL", "'a'", "nan", "1.5", "toInt64(300)", "toDate('2020-01-01')", "256"])
    + given("?[?]", ARRAYS, ["1", "-1", "0", "4", "NULL", "'a'"])
    + calls("arraySlice", ["[1, 2, 3, 4]", "[]", "['a', NULL]", "NULL"], OFFSETS[:9])
    + calls("arraySlice", ["[1, 2, 3, 4]", "[]"], OFFSETS[:9], OFFSETS[:6])
    + calls("range", ["0", "3", "-1", "1.5", "toInt64(2)", "NULL"], ["0", "3", "5", "-2"])
    + calls("range", ["0", "5", "1"], ["10", "0"], ["1", "3", "-2", "0"])
    + calls("arrayStringConcat", ["['a', 'b']", "[]", "['a', NULL]", "[1, 2]"], ["','", "''", "1", "NULL"])
    + [
        section
        for name, body in product(
            "arrayMap arrayFilter arrayExists arrayAll arrayCount arrayFirst arrayLast arrayFirstIndex arrayLastIndex arrayFirstOrNull arrayLastOrNull arraySum arrayAvg arrayMin arrayMax arrayProduct arrayCumSum arraySort arrayReverseSort".split(),
            ["x > 1", "x", "-x", "x % 2", "NULL"],
        )
        for section in given(f"{name}(x -> {body}, ?)", ["[1, 2, 3]", "[]", "[3, -1, 2]", "[1, NULL, 2]", "[1.5, nan]", "['a']", "NULL"])
    ]
    + given("arrayMap((x, y) -> x + y, ?, ?)", ["[1, 2]", "[]", "[1.5]"], ["[3, 4]", "[]", "[7]"])
    + calls("tupleElement", ["(1, 'a')", "tuple(1)", "(NULL, 2)", "CAST((1, 'a') AS Tuple(x UInt8, y String))"], ["1", "2", "0", "3", "'x'", "'y'", "-1"])
    + given("(?).1", ["(1, 'a')", "(NULL, 2)"])
    + calls("tuple", SAMPLES, ["1", "'a'", "NULL"])
    + calls("map", ["'a'", "1", "NULL"], ["1", "'x'", "NULL", "[1]"])
    + calls("mapContains mapContainsKey", ["map('a', 1)", "map(1, 2)", "map()"], ["'a'", "'b'", "1", "NULL"])
    + given("?[?]", ["map('a', 1)", "map(1, 'x')"], ["'a'", "'b'", "1", "2", "NULL"]),
    "aggregates": [
        section
        for name in "count sum avg min max any anyLast groupArray uniq uniqExact uniqCombined median quantile(0.25) quantileExactInclusive(0.25) quantiles(0.1,0.9) stddevPop stddevSamp varPop varSamp groupBitAnd groupBitOr groupBitXor first_value last_value any_value array_agg".split()
        for section in given(f"SELECT {name}(x) FROM (SELECT arrayJoin(?) AS x)", ARRAYS + ["[toUInt8(255), 255]", "[9223372036854775807, 1]", "[18446744073709551615, 1]", "[toInt64(-5)]", "[nan]", "[nan, 1.5]", "[1.5, nan]", "[-0.0, 0.0]", "[inf, -inf]", "[toFloat32(0.1), toFloat32(0.2)]", "[toDateTime('2020-02-29 23:59:59')]", "[toDecimal64('1.5', 4), toDecimal64('-2.5', 4)]", "[2, 4, 4, 5]", "emptyArrayUInt8()", "[toNullable(5)]"])
    ]
    + [
        section
        for call in "count() sum(x) avg(x) min(x) max(x) any(x) anyLast(x) groupArray(x) arraySort(groupUniqArray(x)) uniqExact(x) median(x) quantiles(0.5)(x) stddevPop(x) varSamp(x) groupBitAnd(x) groupBitXor(x) argMin(x,y) argMax(x,y) sumIf(x,y>1) countIf(y) countIf(x=1) avgIf(x,0) minIf(x,y) maxIf(x,y) anyIf(x,y) argMinIf(x,y,y>1) argMaxIf(x,y,y) groupArrayIf(x,y) uniqIf(x,y) corr(x,y) covarPop(x,y) covarSamp(x,y) sum(DISTINCT(x)) count(DISTINCT(x)) count(x,y) sumIf(x,nan) countIf(x=x) covar_pop(x,y) STDDEV(x) max_by(x,y) min_by(x,y) first_value(x) last_value(x) sum(-x) sum(x>1) min(x>1) any(x>1)".split()
        for section in rows(f"SELECT {call} FROM (SELECT tupleElement(t, 1) AS x, tupleElement(t, 2) AS y FROM (SELECT arrayJoin(?) AS t))",
            "[(1, 1), (2, 2), (3, 0)]", "[(1.5, 1), (nan, 2), (-2.5, 3)]", "[(toNullable(1), 1), (NULL, 2), (3, 3)]", "[(-1, nan), (2, 1.5)]", "[('a', 2), ('b', 1)]", "[(1, NULL), (2, 1)]")
    ]
    + [
        section
        for call in "count() sum(number) avg(number) min(number) max(number) any(number) groupArray(number) uniqExact(number) median(number) stddevSamp(number) varPop(number) groupBitAnd(number) argMin(number,number) countIf(1) sumIf(number,1) min(toString(number)) max(toNullable(number)) sum(toNullable(number)) quantile(0.5)(number) corr(number,number)".split()
        for section in rows(f"SELECT {call} FROM numbers(?)", "0", "1", "7")
    ]
    + rows(
        "SELECT ? FROM (SELECT arrayJoin([3, 1, 2, 2]) AS x)",
        "groupArray(x) FROM (SELECT x AS x FROM (SELECT arrayJoin([nan, 1.5, NULL, -inf, inf, -1]) AS x) ORDER BY x)",
    )
    + [
        ("SELECT x FROM (SELECT arrayJoin(?) AS x) ORDER BY " + order, [("[2.5, nan, -inf, inf, 0.5]",), ("[2.5, nan, NULL, -1]",), ("[3, NULL, 1]",), ("['b', 'a', 'ä', 'B', '']",), ("[toDate('2020-01-02'), toDate('2020-01-01')]",)])
        for order in ("x", "x DESC", "x NULLS FIRST", "x DESC NULLS FIRST", "-x" , "x ASC NULLS LAST")
    ]
    + [
        (f"SELECT count() FROM (SELECT arrayJoin(?) AS x) WHERE {where}", [("[1.5, nan, -inf, inf, 0.0]",), ("[2, NULL, 0]",)])
        for where in ("x = x", "x != x", "x > 1", "x < 1", "NOT (x > 1)", "x", "x >= 1 OR x < 1", "x IN (nan, 2)", "x NOT IN (1.5)", "isNaN(x)", "x BETWEEN 0 AND inf", "x = nan", "x != nan", "x > nan", "x < nan")
    ]
    + [
        (f"SELECT x, count() FROM (SELECT arrayJoin(?) AS x) GROUP BY x ORDER BY x", [("[1.5, 2.5, 1.5]",), ("[0.0, 1.5]",), ("[1, NULL, 1, NULL]",), ("['a', 'b', 'a']",)]),
        ("SELECT DISTINCT x FROM (SELECT arrayJoin(?) AS x) ORDER BY x", [("[1.5, 2.5, 1.5]",), ("[1, NULL, 1, NULL]",), ("[1, 2, 1]",)]),
        ("SELECT count() FROM (SELECT arrayJoin(?) AS x) AS a JOIN (SELECT arrayJoin(?) AS x) AS b ON a.x = b.x", [("[nan, 1.5]", "[nan, 1.5]"), ("[-0.0, 1.5]", "[0.0, 2.5]"), ("[1, NULL]", "[1, NULL]"), ("[1, 2]", "[1.0, 3.5]"), ("[-1]", "[255]"), ("[nan]", "[nan, 0.5]")]),
        ("SELECT a.x, b.x FROM (SELECT arrayJoin(?) AS x) AS a LEFT JOIN (SELECT arrayJoin(?) AS x) AS b ON a.x = b.x ORDER BY 1, 2", [("[nan, 1.5]", "[nan, 1.5]"), ("[1, 2]", "[1]"), ("['a', 'b']", "['a']")]),
        ("SELECT toTypeName(x), x FROM (SELECT arrayJoin(?) AS x) ORDER BY x", [("[1, 2]",), ("['a']",), ("[1, NULL]",), ("[1.5]",)]),
        ("SELECT arraySort(groupUniqArray(x)) FROM (SELECT arrayJoin(?) AS x)", [("[3, 1, 2, 1]",), ("['b', 'a', 'b']",), ("[1, NULL, 1]",)]),
        ("SELECT * FROM (SELECT ? AS x UNION ALL SELECT ? AS x) ORDER BY 1", [("1", "300"), ("1", "-1"), ("1", "NULL"), ("'a'", "NULL"), ("1.5", "1"), ("'a'", "1")]),
        ("SELECT number, ? FROM numbers(5) ORDER BY number", [(call,) for call in ("row_number() OVER (ORDER BY number)", "rank() OVER (ORDER BY number % 2)", "dense_rank() OVER (ORDER BY number % 2)", "sum(number) OVER (ORDER BY number)", "sum(number) OVER ()", "count() OVER (PARTITION BY number % 2)", "max(number) OVER (PARTITION BY number % 2 ORDER BY number)", "lag(number) OVER (ORDER BY number)", "lead(number, 2) OVER (ORDER BY number)", "lagInFrame(number) OVER (ORDER BY number)", "first_value(number) OVER (ORDER BY number)", "last_value(number) OVER (ORDER BY number)", "nth_value(number, 2) OVER (ORDER BY number)", "ntile(2) OVER (ORDER BY number)", "percent_rank() OVER (ORDER BY number)", "cume_dist() OVER (ORDER BY number)", "avg(number) OVER (ORDER BY number ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", "min(number) OVER (ORDER BY number ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)")]),
    ],
}  # fmt: skip

CODE = re.compile(r"Code: (\d+)")


def substituted(template: str, arguments, form: str) -> str:
    parts = template.split("?")
    text = parts[0]
    for argument, rest in zip(arguments, parts[1:], strict=True):
        text += (f"materialize({argument})" if form == "m" else argument) + rest
    return text if template.startswith("SELECT") else f"SELECT {text}"


def asked(engine: ClickHouse, sql: str) -> tuple[str, str]:
    """The type and the value; of several columns and rows, all of them."""
    reply = engine.ask(sql, "TabSeparatedWithNamesAndTypes")
    if reply["error"] is not None:
        # chdb writes the head of an answer that failed in front of the next one.
        engine.ask("SELECT 1")
        found = CODE.search(reply["error"])
        return "!", found.group(1) if found else "0"
    _, types, *values = reply["result"].removesuffix("\n").split("\n")
    return types.replace("\t", ";"), "|".join(value.replace("\t", ";") for value in values)


def main() -> None:
    parser = argparse.ArgumentParser(description="Records ClickHouse's answers at the edges.")
    parser.add_argument("--only", help="the one file to write, without .tsv")
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for group, sections in GROUPS.items():
        if arguments.only in (None, group):
            count = write(group, sections, arguments.folder / f"{group}.tsv")
            print(f"{group}: {count}")


def write(group: str, sections, path: Path) -> int:
    lines, seen = [], set()
    engine = ClickHouse(timeout_seconds=20)
    for template, all_arguments in sections:
        lines.append(f"= {template}")
        for call in all_arguments:
            if (template, call) in seen:
                continue
            seen.add((template, call))
            answers = {}
            forms = "c" if template == "?" or template.startswith(("SELECT", "materialize(")) else "cm"
            for form in forms:
                try:
                    answers[form] = asked(engine, substituted(template, call, form))
                except EngineDied as reason:
                    print(reason)
                    engine = ClickHouse(timeout_seconds=20)
                    answers[form] = None
            if len(answers) == 2 and answers["c"] == answers["m"]:
                answers = {"=": answers["c"]}
            for form, answer in answers.items():
                if answer is not None:
                    lines.append("\t".join([form, *answer, *call]))
    engine.close()
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(lines)


if __name__ == "__main__":
    main()
