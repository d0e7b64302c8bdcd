#!/bin/bash
# Preprocesses a corpus by N jobs of Slurm, which may run at any time, on any nodes, each as often as needed:
#   sbatch --array=0-$((N - 1)) examples/slurm_array.sh N CORPUS OUT TOKENIZER
# Once more, those that are missing:
#   sbatch --array="$(megalith-data shards --missing OUT)" examples/slurm_array.sh N CORPUS OUT TOKENIZER
# At the end: megalith-merge --shards OUT --output-prefix ALL
#SBATCH --job-name=megalith-preprocess
#SBATCH --cpus-per-task=2
#SBATCH --mem=1G
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@60
shards=$1 corpus=$2 out=$3 tokenizer=$4

megalith-preprocess --input "$corpus" --output-prefix "$out" --tokenizer-model "$tokenizer" --append-eod \
  --shard auto --shards "$shards" --workers "${SLURM_CPUS_PER_TASK:-1}" &
worker=$!
trap 'signalled=1; kill -USR1 $worker' USR1 TERM  # the time is over, or the node is needed: save the state
signalled=1
while [ $signalled = 1 ]; do  # a signal ends the wait before the worker
  signalled=0
  wait $worker
  code=$?
done

# 74 (a full disk) and 75 (stopped) may end well another time; 64, 65 and 66 would end in the same way.
if [ $code = 74 ] || [ $code = 75 ]; then
  [ "${SLURM_RESTART_COUNT:-0}" -ge 20 ] || scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
fi
exit $code
