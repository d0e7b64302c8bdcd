#!/usr/bin/env bash
# tools/peers/scale_out.sh: the examples of docs/scale-out.md that need no cluster. Kubernetes' schema knows every field of the job, and
# GNU parallel does seven shards, one of which is killed on the way; the joined bytes are those of one process. tools/setup --peers
# installs both. Environment: BUILD (build/release).
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
PATH=$(realpath "${BUILD:-build/release}")/bin:$PATH
.venv/bin/kubernetes-validate --strict examples/kubernetes_job.yaml

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir corpus
for file in 0 1 2; do
  awk -v f=$file 'BEGIN { for (i = 0; i < 200000; ++i)
    printf "{\"text\": \"Document %d of file %d: the harbour was quiet, and %d boats lay there\"}\n", i, f, i * 7 % 1000 }' > corpus/$file.jsonl
done
tokenizer=$root/tests/text/goldens/trained
megalith-preprocess --input corpus --output-prefix one --tokenizer-model "$tokenizer" --append-eod > one.log
bash "$root/examples/gnu_parallel.sh" 7 "$folder/corpus" "$folder/out/corpus" "$tokenizer" --jobs 2 > parallel.log 2>&1 &
script=$! killed=
for _ in $(seq 4000); do
  [ -n "$killed" ] && break
  for process in $(pgrep -f "megalith-preprocess --input $folder/corpus --output-prefix $folder/out" || true); do
    kill -9 "$process" 2> /dev/null && killed=$process && break
  done
  sleep 0.01
done
wait $script || { cat parallel.log; exit 1; }
cmp one_text_document.bin out/corpus_text_document.bin
cmp one_text_document.idx out/corpus_text_document.idx
[ -n "$killed" ] || { echo "no shard ran long enough to be killed"; exit 1; }
echo "ok: GNU parallel gives the bytes of one process, with a shard killed on the way"
