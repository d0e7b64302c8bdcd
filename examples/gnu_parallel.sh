#!/bin/bash
# Preprocesses a corpus by GNU parallel, on this machine or on several that share its folders:
#   examples/gnu_parallel.sh N CORPUS OUT TOKENIZER [--sshlogin node1,node2 …]
# Only the shards that are missing are done, so that the same command continues after an interruption.
set -u
shards=$1 corpus=$2 out=$3 tokenizer=$4
shift 4

megalith-data shards --missing "$out" --shards "$shards" --format lines |
  parallel -q --retries 3 "$@" megalith-preprocess --input "$corpus" --output-prefix "$out" \
    --tokenizer-model "$tokenizer" --append-eod --workers 2 --shard "{}/$shards"

megalith-data shards --missing "$out" --shards "$shards" --format lines >/dev/null || exit
megalith-merge --shards "$out" --output-prefix "$out"
