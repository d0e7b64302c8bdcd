#!/usr/bin/env bash
# tools/peers/object_store.sh: reads objects of S3 by --input-command 'aws s3 cp {} -', from moto's server on this machine: lines, gzip and
# Parquet, whole and in shards; the bytes are those of the same files. An object that is not there is 75. moto and awscli are installed into
# build/engines/moto. Environment: BUILD (build/release).
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD env=$PWD/build/engines/moto
PATH=$(realpath "${BUILD:-build/release}")/bin:$env/bin:$PATH
[ -x "$env/bin/moto_server" ] && [ -x "$env/bin/aws" ] ||
  { python3 -m venv "$env" && "$env/bin/python" -m pip install -q --disable-pip-version-check 'moto[server]==5.2.5' awscli; }

folder=$(mktemp -d) server=
trap '[ -z "$server" ] || kill $server; rm -rf "$folder"' EXIT
cd "$folder"
mkdir corpus
for file in 0 1; do
  awk -v f=$file 'BEGIN { for (i = 0; i < 20000; ++i) printf "{\"text\": \"Document %d of file %d\"}\n", i, f }' > corpus/$file.jsonl
done
gzip corpus/1.jsonl
cp "$root/tests/io/parquet/goldens/numbers.parquet" corpus/2.parquet

# what the tools of AWS want to know; the server takes any of it
export AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any AWS_DEFAULT_REGION=us-east-1
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export AWS_ENDPOINT_URL=http://127.0.0.1:$port
moto_server -H 127.0.0.1 -p "$port" > server.log 2>&1 &
server=$!
for _ in $(seq 100); do aws s3 mb s3://corpus > made.log 2>&1 && break; sleep 0.2; done
aws s3 cp --quiet --recursive corpus s3://corpus
ls corpus | sed 's#^#s3://corpus/#' > list

set -- --tokenizer-model "$root/tests/text/goldens/trained" --append-eod --on-error skip --workers 2
megalith-preprocess --input corpus --output-prefix files "$@" > files.log
megalith-preprocess --input list --input-command 'aws s3 cp {} -' --output-prefix objects "$@" > objects.log
megalith-preprocess --input list --input-command 'aws s3 cp {} -' --output-prefix out/set --shard 0-2/3 "$@" > shards.log
megalith-merge --shards out/set --output-prefix merged > merged.log
for name in objects merged; do
  cmp files_text_document.bin ${name}_text_document.bin
  cmp files_text_document.idx ${name}_text_document.idx
done
echo s3://corpus/none >> list
code=0
megalith-preprocess --input list --input-command 'aws s3 cp {} -' --output-prefix none "$@" > none.log 2>&1 || code=$?
grep -q '404' none.log || { cat none.log; exit 1; }  # what aws says
[ $code = 75 ] || { cat none.log; echo "exit code $code, wanted 75"; exit 1; }
echo "ok: objects of S3 give the bytes of files, whole and in shards; one that is not there is 75"
