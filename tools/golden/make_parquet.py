#!/usr/bin/env python3
"""Writes tests/io/parquet/goldens: small Parquet files of four writers, and beside each the rows that pyarrow reads from it, as lines of
JSON without the nulls of objects.

    python3 -m venv env && env/bin/pip install pyarrow==26.0.1 duckdb==2.0.1 polars==2.1.0 fastparquet==2026.9.0
    env/bin/python tools/golden/make_parquet.py
"""

import datetime
import json
import pathlib

import duckdb
import fastparquet
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/io/parquet/goldens"
UNREAD = ("when", "attributes")  # JSON has no form for them
TEXTS = ["plain", "", None, 'a "quote" and a \\', "tab\tline\nreturn\r\b\f\x01\x1f\x7f", "été, 東京, 😀", "x" * 70,
         "same", "same", "sameness", "sam", None, "last"]


def rows(count):
    """Rows with every kind of null and list."""
    out = []
    for i in range(count):
        text = TEXTS[i % len(TEXTS)]
        out.append({
            "text": text,
            "n": None if i % 5 == 4 else i * i - 40,
            "small": i % 200,
            "flag": i % 3 == 0,
            "score": None if i % 7 == 3 else i + 0.5,
            "meta": None if i % 6 == 5 else {"text": TEXTS[(i + 1) % len(TEXTS)], "lang": "en"},
            "tags": [None, [], ["a"], ["b", None, "c"], ["d", "", TEXTS[i % 13]]][i % 5],
            "messages": [None, [], [{"role": "user", "content": text}],
                         [{"role": "user", "content": f"question {i}"}, None,
                          {"role": "assistant", "content": None}]][i % 4],
            "deep": [None, [], [[]], [["p"], None, ["q", None, "r"]], [[], ["s"]]][i % 5],
        })
    return out


SCHEMA = pa.schema([
    ("text", pa.string()), ("n", pa.int64()), ("small", pa.uint8()), ("flag", pa.bool_()), ("score", pa.float64()),
    ("meta", pa.struct([("text", pa.string()), ("lang", pa.string())])), ("tags", pa.list_(pa.string())),
    ("messages", pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))),
    ("deep", pa.list_(pa.list_(pa.string())))])
FLAT = ["text", "n", "small", "flag", "score"]


def without_nulls(value):
    if isinstance(value, dict):
        return {key: without_nulls(part) for key, part in value.items() if part is not None}
    return [without_nulls(part) for part in value] if isinstance(value, list) else value


def expect(path):
    """Writes the rows that pyarrow reads."""
    table = pq.ParquetFile(path).read()
    table = table.select([name for name in table.column_names if name not in UNREAD])
    lines = [json.dumps(without_nulls(row), ensure_ascii=False, separators=(",", ":")) for row in table.to_pylist()]
    path.with_suffix(".jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="")


def by_pyarrow(name, table, **options):
    path = FOLDER / f"{name}.parquet"
    pq.write_table(table, path, **options)
    return path


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows(40), SCHEMA)
    few = {"row_group_size": 13, "data_page_size": 64, "write_batch_size": 3}
    paths = [
        by_pyarrow("plain_v1", table, compression="none", use_dictionary=False, **few),
        by_pyarrow("dictionary_snappy_v2", table, compression="snappy", data_page_version="2.0", **few),
        by_pyarrow("gzip_checksums", table, compression="gzip", write_page_checksum=True, row_group_size=17),
        by_pyarrow("delta_zstd_v2", table.select(["text", "n", "small", "tags"]), compression="zstd",
                   use_dictionary=False, data_page_version="2.0", row_group_size=29,
                   column_encoding={"text": "DELTA_BYTE_ARRAY", "n": "DELTA_BINARY_PACKED",
                                    "small": "DELTA_BINARY_PACKED", "tags.list.element": "DELTA_LENGTH_BYTE_ARRAY"}),
        by_pyarrow("split_floats", table.select(["score", "n"]), compression="zstd", use_dictionary=False,
                   column_encoding={"score": "BYTE_STREAM_SPLIT", "n": "BYTE_STREAM_SPLIT"}),
        by_pyarrow("old_lists", table.select(["tags", "messages"]), use_compliant_nested_type=False),
        by_pyarrow("no_rows", table.slice(0, 0)),
        by_pyarrow("with_times", table.select(["text"]).append_column(
            "when", pa.array([datetime.datetime(2026, 1, 1)] * 40)).append_column(
            "attributes", pa.array([[("k", 1)]] * 40, pa.map_(pa.string(), pa.int32())))),
    ]
    numbers = [{"text": None if i % 9 == 4 else " ".join(str((i * 31 + n) % 60000) for n in range(i % 23 + 1)),
                "t": str(i)} for i in range(150)]
    # Without rows beside it: for tests/data/preprocess.
    by_pyarrow("numbers", pa.Table.from_pylist(numbers), compression="zstd", row_group_size=20)
    for codec in ("lz4", "brotli"):
        by_pyarrow(f"refused_{codec}", table.select(["text"]), compression=codec)
    for version, codec in (("V1", "snappy"), ("V2", "zstd")):
        paths.append(FOLDER / f"duckdb_{version.lower()}.parquet")
        connection = duckdb.connect()
        connection.register("all_rows", table)
        connection.execute(f"COPY (SELECT * FROM all_rows) TO '{paths[-1]}' (FORMAT parquet, COMPRESSION {codec}, "
                   f"PARQUET_VERSION {version}, ROW_GROUP_SIZE 2048)")
    paths.append(FOLDER / "polars.parquet")
    polars.from_arrow(table).write_parquet(paths[-1], compression="zstd", row_group_size=15, data_page_size=128)
    frame = table.select(FLAT).to_pandas().astype({"n": "Int64"})
    for codec in ("SNAPPY", "GZIP"):
        paths.append(FOLDER / f"fastparquet_{codec.lower()}.parquet")
        fastparquet.write(str(paths[-1]), frame, compression=codec, row_group_offsets=[0, 11, 30], write_index=False)
    for path in paths:
        expect(path)


if __name__ == "__main__":
    main()
