#!/usr/bin/env python3
"""compare_parquet.py [FILES]: preprocesses FILES (60) random tables, which pyarrow, DuckDB, Polars and fastparquet write with random codecs,
encodings, page and row group sizes. Preprocesses the rows that pyarrow reads from them, too, as lines of JSON: datasets and rejected lines must
be equal, also those of shards.
The writers are installed into build/engines/parquet.  Environment: BUILD (build/release), SEED (1)."""
import filecmp
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("BUILD", ROOT / "build/release")).resolve() / "bin"
PACKAGES = ["pyarrow==26.0.1", "duckdb==2.0.1", "polars==2.1.0", "fastparquet==2026.9.0"]
KEYS = ["text", "tags", "meta.text"]


def enter_environment():
    """Starts this program again with the Python that has the writers."""
    folder = ROOT / "build/engines/parquet"
    if pathlib.Path(sys.prefix).resolve() == folder.resolve():
        return
    if not (folder / "bin/python").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", *PACKAGES], check=True)
    python = str(folder / "bin/python")  # also as the first word: by it Python finds its environment
    os.execv(python, [python, *sys.argv])


def random_text(rng):
    if rng.random() < 0.15:
        return None
    pieces = ["harbour ", "été ", "東京", '"', "\\", "\n", "\t", "\x01", "a" * rng.randrange(40), "😀"]
    text = "".join(rng.choice(pieces) for _ in range(rng.choice([0, 1, 3, 20])))
    return text * (2000 if rng.random() < 0.002 else 1)


def random_table(rng):
    import pyarrow as pa
    few = [random_text(rng) for _ in range(5)]
    text = (lambda: rng.choice(few)) if rng.random() < 0.3 else (lambda: random_text(rng))
    rows = [{"id": i, "text": text(),
             "tags": None if rng.random() < 0.2 else [text() for _ in range(rng.choice([0, 1, 2, 9]))],
             "meta": None if rng.random() < 0.2 else {"text": text(), "n": i, "flag": rng.random() < 0.5}}
            for i in range(rng.choice([0, 1, 50, 3000]))]
    return pa.Table.from_pylist(rows, pa.schema([
        ("id", pa.int64()), ("text", pa.string()), ("tags", pa.list_(pa.string())),
        ("meta", pa.struct([("text", pa.string()), ("n", pa.int32()), ("flag", pa.bool_())]))]))


def by_pyarrow(rng, table, path):
    import pyarrow.parquet as pq
    options = {"compression": rng.choice(["none", "snappy", "gzip", "zstd"]), "row_group_size": rng.choice([7, 500, 100000]),
               "data_page_size": rng.choice([100, 5000, 1 << 20]), "data_page_version": rng.choice(["1.0", "2.0"]),
               "use_dictionary": rng.random() < 0.5, "write_page_checksum": rng.random() < 0.5,
               "use_compliant_nested_type": rng.random() < 0.5}
    if not options["use_dictionary"]:
        options["column_encoding"] = {"text": rng.choice(["PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])}
    pq.write_table(table, path, **options)


def by_duckdb(rng, table, path):
    import duckdb
    connection = duckdb.connect()
    connection.register("all_rows", table)
    connection.execute(f"COPY (SELECT * FROM all_rows) TO '{path}' (FORMAT parquet, COMPRESSION {rng.choice(['uncompressed', 'snappy', 'gzip', 'zstd'])}, "
                       f"PARQUET_VERSION {rng.choice(['V1', 'V2'])}, ROW_GROUP_SIZE {rng.choice([2048, 100000])})")


def by_polars(rng, table, path):
    import polars
    polars.from_arrow(table).write_parquet(path, compression=rng.choice(["uncompressed", "snappy", "gzip", "zstd"]),
                                           row_group_size=rng.choice([11, 1000]), data_page_size=rng.choice([200, 1 << 20]))


def by_fastparquet(rng, table, path):
    import fastparquet
    frame = table.select(["id", "text"]).to_pandas().astype({"id": "int64", "text": "object"})
    fastparquet.write(str(path), frame, compression=rng.choice([None, "SNAPPY", "GZIP", "ZSTD"]), write_index=False, object_encoding="utf8",
                      row_group_offsets=sorted({0, len(frame) // 3}))


def without_nulls(value):
    if isinstance(value, dict):
        return {key: without_nulls(part) for key, part in value.items() if part is not None}
    return [without_nulls(part) for part in value] if isinstance(value, list) else value


def write_lines(source, path, keys):
    import pyarrow.parquet as pq
    with open(path, "w", encoding="utf-8", newline="") as file:
        for row in pq.ParquetFile(source).read().to_pylist():
            kept = {key: row[key] for key in ("text", "tags", "meta") if key in row and any(name.split(".")[0] == key for name in keys)}
            if kept.get("meta"):
                kept["meta"] = {"text": kept["meta"]["text"]}
            file.write(json.dumps(without_nulls(kept), ensure_ascii=False, separators=(",", ":")) + "\n")


def preprocess(source, out, keys, *more):
    subprocess.run([BIN / "megalith-preprocess", "--input", source, "--output-prefix", out, "--json-keys", *keys, "--tokenizer-model",
                    ROOT / "tests/text/goldens/trained", "--append-eod", "--on-error", "skip", "--rejects", f"{out}.rejects", *more],
                   check=True, capture_output=True)


def differences(folder, keys):
    """The names of files of the two runs, and of the shards, that are not equal."""
    ends = [f"_{key}_document.{end}" for key in keys for end in ("bin", "idx")] + [".rejects"]
    return [f"{name}{end}" for name in ("rows", "all") for end in ends
            if not filecmp.cmp(f"{folder}/{name}{end}", f"{folder}/lines{end}", shallow=False)]


def compare(rng, writer, folder):
    keys = ["text"] if writer is by_fastparquet else KEYS
    source = folder / "rows.parquet"
    writer(rng, random_table(rng), source)
    write_lines(source, folder / "rows.jsonl", keys)
    preprocess(source, folder / "rows", keys)
    preprocess(folder / "rows.jsonl", folder / "lines", keys)
    shards = rng.choice([1, 3, 7, 64])
    preprocess(source, folder / "out/set", keys, "--shard", f"0-{shards - 1}/{shards}")
    subprocess.run([BIN / "megalith-merge", "--shards", folder / "out/set", "--output-prefix", folder / "all", "--rejects", folder / "out/set.rejects"],
                   check=True, capture_output=True)
    os.rename(folder / "out/set.rejects", folder / "all.rejects")
    return differences(folder, keys)


def main():
    enter_environment()
    seed, failed = int(os.environ.get("SEED", "1")), 0
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    writers = [by_pyarrow, by_duckdb, by_polars, by_fastparquet]
    for number in range(seed, seed + count):
        rng, writer = random.Random(number), writers[number % len(writers)]
        with tempfile.TemporaryDirectory() as folder:
            found = compare(rng, writer, pathlib.Path(folder))
        if found:
            failed += 1
            print(f"FAIL SEED={number} {writer.__name__}: {', '.join(found)}", flush=True)
    print(f"{count} files of {len(writers)} writers, {failed} with differences")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
