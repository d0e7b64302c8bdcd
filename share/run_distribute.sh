#!/usr/bin/env bash
# bash run_distribute.sh RANK_TABLE_FILE CONFIG DEVICE_RANGE train|finetune|predict [RANK_SIZE] [ARGUMENT...]
#
# MindFormers' script for Megalith: starts the ranks [A,B] of DEVICE_RANGE (B is not among them) of a run on this
# server, and waits for them. train: each is megalith-pretrain --config CONFIG ARGUMENT..., told of its place by RANK_ID,
# RANK_SIZE and RANK_TABLE_FILE. predict: one megalith-generate --config CONFIG, which holds the whole model; the first
# ARGUMENT that is no option is the prompt. What rank N says is in output/log/rank_N/mindformer.log below the working
# directory. The exit code is the first rank's that failed. The programs are found by PATH.
set -u

usage() {
  echo "run_distribute.sh: error: $1" >&2
  echo "usage: bash run_distribute.sh RANK_TABLE_FILE CONFIG [A,B] train|finetune|predict [RANK_SIZE] [ARGUMENT...]" >&2
  exit 64
}

[ $# -ge 4 ] || usage "four arguments are wanted, $# were given"
table=$1 config=$2 range=$3 mode=$4
shift 4
half_open='^\[([0-9]+),([0-9]+)[])]$'
[[ $range =~ $half_open ]] || usage "DEVICE_RANGE \"$range\": wanted [A,B], ranks A to B-1"
first=$((10#${BASH_REMATCH[1]})) end=$((10#${BASH_REMATCH[2]})) # 08 is no octal number
[ "$end" -gt "$first" ] || usage "DEVICE_RANGE \"$range\" holds no rank"
size=$((end - first))
# Without RANK_SIZE the run is this server's, and ranks are counted from its first device.
if [[ ${1-} =~ ^[0-9]+$ ]]; then size=$((10#$1)); shift; rank=$first; else rank=0; fi
last=$((rank + end - first - 1))
[ "$last" -lt "$size" ] || usage "DEVICE_RANGE \"$range\" goes beyond the $size ranks of RANK_SIZE"

for file in "$table" "$config"; do
  [ -f "$file" ] || { echo "run_distribute.sh: error: $file: is not a file" >&2; exit 66; }
done
case $mode in
  train | finetune) program=megalith-pretrain ;;
  predict) program=megalith-generate ;;
  *) usage "\"$mode\" is not a mode; wanted train, finetune or predict" ;;
esac
for needed in "$program" megalith-rank-table; do
  command -v "$needed" >/dev/null || {
    echo "run_distribute.sh: error: $needed: not found in PATH; add the folder of Megalith's programs to it" >&2
    exit 69
  }
done
megalith-rank-table merge "$table" >/dev/null || exit # which names the file and what is wrong with it
ranks=$(grep -o '"rank_id"' "$table" | wc -l)
[ "$ranks" -eq "$size" ] || {
  echo "run_distribute.sh: error: $table: holds $ranks ranks, RANK_SIZE is $size" >&2
  exit 64
}

log_of() { echo "output/log/rank_$1/mindformer.log"; }

if [ "$mode" = predict ]; then
  mkdir -p "$(dirname "$(log_of "$rank")")"
  if [ $# -gt 0 ] && [[ $1 != --* ]]; then set -- --prompt "$@"; fi
  unset RANK_ID RANK_SIZE RANK_TABLE_FILE
  log=$(log_of "$rank")
  : >"$log"
  # The text joins the log at its end: written as it comes, what stderr says would stand in its midst.
  megalith-generate --config "$config" --run-mode predict "$@" 2> >(tee -a "$log" >&2) | tee "$log.text"
  code=${PIPESTATUS[0]}
  cat "$log.text" >>"$log" && rm "$log.text"
  exit "$code"
fi

RANK_TABLE_FILE=$(realpath "$table")
export RANK_TABLE_FILE RANK_SIZE=$size
declare -a processes=()
for ((; rank <= last; rank++)); do
  log=$(log_of "$rank")
  mkdir -p "$(dirname "$log")"
  echo "start training for rank $rank, device $((first + ${#processes[@]})): $log"
  RANK_ID=$rank DEVICE_ID=$((first + ${#processes[@]})) \
    megalith-pretrain --config "$config" --run-mode "$mode" "$@" >"$log" 2>&1 &
  processes+=($!)
done
stop() { kill -TERM "${processes[@]}" 2>/dev/null; }
trap stop INT TERM

code=0
for i in "${!processes[@]}"; do
  while :; do # a signal ends wait, not the rank
    wait "${processes[i]}"
    ended=$?
    kill -0 "${processes[i]}" 2>/dev/null || break
  done
  # 75 is what the others end with when one of them fails.
  if [ $ended -ne 0 ] && { [ $code -eq 0 ] || { [ $code -eq 75 ] && [ $ended -ne 75 ]; }; }; then
    code=$ended
    log=$(log_of $((last - ${#processes[@]} + 1 + i)))
    echo "run_distribute.sh: rank $((last - ${#processes[@]} + 1 + i)) ended with $ended; the end of $log:" >&2
    tail -n 3 "$log" >&2
  fi
done
exit $code
