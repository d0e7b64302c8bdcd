#!/usr/bin/env bash
# plan_questions.sh [PROGRAM]: answers the questions of docs/planner.md ("Published runs") with megalith-autoplan, one line each.
set -euo pipefail
program=${1:-build/release/bin/megalith-autoplan}
mixtures=$(dirname "$0")/../docs/mixtures.json

llama="--swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear --untie-embeddings-and-output-weights"
llama+=" --attention-dropout 0 --hidden-dropout 0"
of_7b="--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 11008 --vocab-size 32000 $llama"
of_8b="--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --group-query-attention --num-query-groups 8"
of_8b+=" --ffn-hidden-size 14336 $llama"
of_13b="--num-layers 40 --hidden-size 5120 --num-attention-heads 40"
of_70b="--num-layers 80 --hidden-size 8192 --num-attention-heads 64 --group-query-attention --num-query-groups 8"
of_70b+=" --ffn-hidden-size 28672 --vocab-size 128256 $llama"
of_405b="--num-layers 126 --hidden-size 16384 --num-attention-heads 128 --group-query-attention --num-query-groups 8"
of_405b+=" --ffn-hidden-size 53248 --vocab-size 128256 $llama"
of_340b="--num-layers 96 --hidden-size 18432 --num-attention-heads 96 --group-query-attention --num-query-groups 8"
of_340b+=" --ffn-hidden-size 73728 --vocab-size 256000 --squared-relu --position-embedding-type rope --disable-bias-linear"
of_340b+=" --untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0"
of_gpt3="--num-layers 96 --hidden-size 12288 --num-attention-heads 96 --vocab-size 51200"

folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
python3 -c 'import json, sys; print(json.dumps(json.load(open(sys.argv[1]))["models"]["DeepSeek-V3"]["config"]))' \
  "$mixtures" > "$folder/config.json"

# ask NAME OPTIONS: the options are words without blanks. The script ends where one is refused.
ask() {
  # shellcheck disable=SC2086
  "$program" $2 2> "$folder/log" > "$folder/answer" || { cat "$folder/log" >&2; return 1; }
  echo "$1: $(sed -n 's/^layout  //p' "$folder/answer") | $(sed -n 's/^time    //p' "$folder/answer")"
}

ask "7B, 8 A100" "$of_7b --seq-length 4096 --gpu a100-80 --world-size 8 --global-batch-size 64"
ask "13B, 16 A100-40" "$of_13b --ffn-hidden-size 13824 --vocab-size 32000 $llama --seq-length 2048 --gpu a100-40 --world-size 16 \
  --global-batch-size 128"
ask "70B, 64 H100" "$of_70b --seq-length 8192 --gpu h100 --world-size 64 --global-batch-size 256 --software bridge --fp8-format hybrid"
ask "405B, 16384 H100" "$of_405b --seq-length 8192 --gpu h100 --world-size 16384 --global-batch-size 2048"
ask "7B at 128k, 32 H100" "$of_7b --seq-length 131072 --gpu h100 --world-size 32 --global-batch-size 32"
ask "1.3B, 8 V100" "--num-layers 24 --hidden-size 2048 --num-attention-heads 16 --vocab-size 50257 --seq-length 1024 --gpu v100 \
  --world-size 8 --global-batch-size 64"
ask "Mixtral, 64 H100" "$of_8b --vocab-size 32000 --seq-length 4096 --num-experts 8 --moe-router-topk 2 --moe-router-force-load-balancing \
  --gpu h100 --world-size 64 --global-batch-size 256"
ask "DeepSeek-V3, 2048 H800" "--hf $folder --seq-length 4096 --gpu h800 --world-size 2048 --global-batch-size 15360 --fp8-format e4m3 \
  --moe-token-dispatcher-type flex --mtp-num-layers 1 --software-features dualpipe fp8_dispatch"
ask "7B, 8 910B" "$of_7b --seq-length 4096 --gpu 910b --world-size 8 --global-batch-size 64"
ask "7B, 8 RTX 4090" "$of_7b --seq-length 4096 --gpu rtx4090-24gb --world-size 8 --global-batch-size 64"
ask "22B, 64 A100" "--num-layers 48 --hidden-size 6144 --num-attention-heads 64 --vocab-size 51200 --seq-length 2048 --gpu a100-80 \
  --world-size 64 --global-batch-size 256 --software megatron-2022"
ask "13B GPT, 8 910B" "$of_13b --vocab-size 50257 --seq-length 2048 --gpu 910b --world-size 8 --global-batch-size 64"
ask "LoRA 8B, one RTX 4090" "$of_8b --vocab-size 128256 --seq-length 2048 --gpu rtx4090-24gb --world-size 1 --global-batch-size 2 \
  --lora-rank 8"
ask "340B, 6144 H100" "$of_340b --seq-length 4096 --gpu h100 --world-size 6144 --global-batch-size 2304"
ask "GPT-3, 10752 H100" "$of_gpt3 --seq-length 2048 --gpu h100 --world-size 10752 --global-batch-size 2688 --fp8-format hybrid \
  --software nemo --software-features cuda_graphs"
