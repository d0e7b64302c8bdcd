#!/usr/bin/env python3
"""Preprocesses a corpus by tasks of Ray, on nodes that share its folders:
    python examples/ray_tasks.py N CORPUS OUT TOKENIZER
Only the shards that are missing are done, so that the same command continues after an interruption.
"""
import subprocess
import sys
import time

import ray


class Again(Exception):
    """The shard may be done by another attempt."""


@ray.remote(num_cpus=1, max_retries=20, retry_exceptions=[Again])
def preprocess(shard, corpus, out, tokenizer):
    code = subprocess.run(["megalith-preprocess", "--input", corpus, "--output-prefix", out, "--tokenizer-model",
                           tokenizer, "--append-eod", "--workers", "1", "--shard", shard], check=False).returncode
    if code < 0 or code in (74, 75):  # killed, a full disk, or another attempt still runs
        time.sleep(2)
        raise Again(f"shard {shard}: exit code {code}")
    if code:
        raise RuntimeError(f"shard {shard}: exit code {code}; no attempt can end otherwise")


def main():
    shards, corpus, out, tokenizer = sys.argv[1:]
    ray.init(log_to_driver=False)  # RAY_ADDRESS: a cluster that runs already
    missing = subprocess.run(["megalith-data", "shards", "--missing", out, "--shards", shards, "--format", "lines"],
                             capture_output=True, text=True, check=False).stdout.split()
    ray.get([preprocess.remote(f"{shard}/{shards}", corpus, out, tokenizer) for shard in missing])
    subprocess.run(["megalith-merge", "--shards", out, "--output-prefix", out], check=True)


if __name__ == "__main__":
    main()
