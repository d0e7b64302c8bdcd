#!/usr/bin/env python3
"""Preprocesses a corpus by tasks of Dask, on workers that share its folders:
    python examples/dask_tasks.py N CORPUS OUT TOKENIZER [SCHEDULER]
Only the shards that are missing are done, so that the same command continues after an interruption.
"""
import subprocess
import sys
import time

from dask.distributed import Client


def preprocess(shard, corpus, out, tokenizer):
    code = subprocess.run(["megalith-preprocess", "--input", corpus, "--output-prefix", out, "--tokenizer-model",
                           tokenizer, "--append-eod", "--workers", "1", "--shard", shard], check=False).returncode
    if code < 0 or code in (74, 75):  # killed, a full disk, or another attempt still runs
        time.sleep(2)
        raise InterruptedError(f"shard {shard}: exit code {code}")
    return code


def main():
    shards, corpus, out, tokenizer, *scheduler = sys.argv[1:]
    missing = subprocess.run(["megalith-data", "shards", "--missing", out, "--shards", shards, "--format", "lines"],
                             capture_output=True, text=True, check=False).stdout.split()
    with Client(*scheduler) as client:  # without a scheduler: workers of this machine
        codes = client.gather(client.map(preprocess, [f"{shard}/{shards}" for shard in missing], corpus=corpus,
                                         out=out, tokenizer=tokenizer, retries=20, pure=False))
    if any(codes):
        sys.exit(max(codes))  # no other attempt can end otherwise
    subprocess.run(["megalith-merge", "--shards", out, "--output-prefix", out], check=True)


if __name__ == "__main__":
    main()
