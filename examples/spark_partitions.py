#!/usr/bin/env python3
"""Preprocesses the lines of a corpus by partitions of Spark, whose workers need no folder in common:
    spark-submit examples/spark_partitions.py N 'CORPUS/*.jsonl' OUT TOKENIZER
The workers need the programs and the tokenizer. Their datasets come to the driver as tar archives.
"""
import glob
import io
import subprocess
import sys
import tarfile

from pyspark import StorageLevel
from pyspark.sql import SparkSession


def preprocess(index, lines, shards, tokenizer):  # RDD.pipe() would cut the archive at line ends
    with subprocess.Popen(["megalith-preprocess", "--input", "-", "--output-prefix", "-", "--shard", f"{index}/{shards}",
                           "--tokenizer-model", tokenizer, "--append-eod", "--workers", "1"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for line in lines:
            process.stdin.write(line.encode() + b"\n")
        archive = process.communicate()[0]
    if process.returncode:  # Spark tries again
        raise RuntimeError(f"shard {index}: exit code {process.returncode}")
    yield bytearray(archive)


shards, corpus, out, tokenizer = sys.argv[1:]
context = SparkSession.builder.appName("megalith-preprocess").getOrCreate().sparkContext
texts = context.textFile(",".join(sorted(glob.glob(corpus))), int(shards))  # in this order
count = texts.getNumPartitions()
archives = texts.mapPartitionsWithIndex(lambda index, lines: preprocess(index, lines, count, tokenizer))
archives.persist(StorageLevel.DISK_ONLY).count()
for archive in archives.toLocalIterator():
    tarfile.open(fileobj=io.BytesIO(archive)).extractall(f"{out}.parts", filter="data")
subprocess.run(["megalith-merge", "--shards", f"{out}.parts/shard", "--output-prefix", out], check=True)
