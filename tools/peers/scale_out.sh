#!/usr/bin/env bash
# tools/peers/scale_out.sh: the examples of docs/scale-out.md that need no cluster. Kubernetes' schema knows every field of the job, and
# GNU parallel does seven shards, three of which are killed on the way; the joined bytes are those of one process. tools/setup --peers
# installs both. Environment: BUILD (build/release).
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
PATH=$(realpath "${BUILD:-build/release}")/bin:$PATH
.venv/bin/kubernetes-validate --strict examples/kubernetes_job.yaml

folder=$(mktemp -d)
script=
trap '[ -z "$script" ] || { kill "$script" && wait; } 2> /dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
mkdir corpus
for file in 0 1 2; do
  awk -v f=$file 'BEGIN { for (i = 0; i < 200000; ++i)
    printf "{\"text\": \"Document %d of file %d: the harbour was quiet, and %d boats lay there\"}\n", i, f, i * 7 % 1000 }' > corpus/$file.jsonl
done
tokenizer=$root/tests/text/goldens/trained
megalith-preprocess --input corpus --output-prefix one --tokenizer-model "$tokenizer" --append-eod > one.log
bash "$root/examples/gnu_parallel.sh" 7 "$folder/corpus" "$folder/out/corpus" "$tokenizer" --jobs 2 > parallel.log 2>&1 &
script=$! killed=0 seen=' '
for _ in $(seq 4000); do
  [ $killed -lt 3 ] && kill -0 $script 2> /dev/null || break
  for process in $(pgrep -f "^megalith-preprocess --input $folder/corpus --output-prefix $folder/out" || true); do
    shard=$({ tr '\0' '\n' < "/proc/$process/cmdline" | tail -1; } 2> /dev/null || true)
    [ $killed -lt 3 ] && [ -n "$shard" ] && [[ $seen != *" $shard "* ]] || continue  # each shard only once: parallel tries three times
    kill -9 "$process" 2> /dev/null && killed=$((killed + 1)) seen+="$shard "
  done
  sleep 0.01
done
wait $script || { cat parallel.log; exit 1; }
script=
cmp one_text_document.bin out/corpus_text_document.bin
cmp one_text_document.idx out/corpus_text_document.idx
[ $killed = 3 ] || { echo "$killed shards were killed, wanted 3"; exit 1; }
echo "ok: GNU parallel gives the bytes of one process, with three shards killed on the way"
