#!/usr/bin/env bash
# Runs examples/slurm_array.sh under a real Slurm of one node, made of Debian's packages without installing them,
# and stops shards on the way: the joined bytes must be those of one process. Then srun starts two ranks, whose losses
# must be those of one. Needs root and apt's lists.
# Environment: BUILD (build/release), the folder of the programs.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$here/build/release}
if [ "$(id -u)" != 0 ] || ! apt-cache show slurmctld >/dev/null 2>&1; then
  echo "slurm.sh: skipped: it needs root, and Debian's packages of Slurm in apt's lists"
  exit 0
fi
work=$(mktemp -d)
root=$work/root plugins=$work/root/usr/lib/x86_64-linux-gnu/slurm-wlm host=$(hostname -s)
pids=()
finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  [ -f "$work/run/munged.pid" ] && kill "$(cat "$work/run/munged.pid")" 2>/dev/null
  rm -rf "$work"
}
trap finish EXIT

# ---- Slurm
mkdir -p "$work"/run/{state,spool} "$root"
(cd "$work" && apt-get download -qq -o APT::Sandbox::User=root slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge \
    libmunge2 liblua5.1-0 libhwloc15 &&
  for package in *.deb; do dpkg -x "$package" root; done)
cat >"$work/slurm.conf" <<CONF
ClusterName=local
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$work/run/munge.socket
PluginDir=$plugins
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
StateSaveLocation=$work/run/state
SlurmdSpoolDir=$work/run/spool
SlurmctldPidFile=$work/run/slurmctld.pid
SlurmdPidFile=$work/run/slurmd.pid
SlurmctldLogFile=$work/run/slurmctld.log
SlurmdLogFile=$work/run/slurmd.log
SlurmctldPort=16817
SlurmdPort=16818
ReturnToService=2
MinJobAge=300
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
head -c 128 /dev/urandom >"$work/run/munge.key"
chmod 600 "$work/run/munge.key"
export LD_LIBRARY_PATH=$plugins:$root/usr/lib/x86_64-linux-gnu SLURM_CONF=$work/slurm.conf PATH=$root/usr/bin:$BUILD/bin:$PATH
"$root/usr/sbin/munged" --force -S "$work/run/munge.socket" --key-file="$work/run/munge.key" \
  --log-file="$work/run/munged.log" --pid-file="$work/run/munged.pid" --seed-file="$work/run/munge.seed"
"$root/usr/sbin/slurmctld-wlm" -D -c >"$work/run/ctld.out" 2>&1 &
pids+=($!)
"$root/usr/sbin/slurmd-wlm" -D -N "$host" -d "$root/usr/sbin/slurmstepd-wlm" >"$work/run/d.out" 2>&1 &
pids+=($!)
cd "$work"
for _ in $(seq 60); do
  sinfo -h -o %t 2>/dev/null | grep -q '^idle' && break
  sleep 1
done
sinfo
sinfo -h -o %t | grep -q '^idle' || { tail -n 5 run/*.out run/*.log; exit 1; }

# ---- a corpus, and what one process makes of it
mkdir corpus
for file in 0 1 2; do
  awk -v f=$file 'BEGIN { for (i = 0; i < 600000; ++i) printf "{\"text\": \"Document %d of file %d: the harbour was quiet, and %d boats lay there\"}\n", i, f, i * 7 % 1000 }' >corpus/$file.jsonl
done
tokenizer=$here/tests/text/goldens/trained
megalith-preprocess --input corpus --output-prefix one --tokenizer-model "$tokenizer" --append-eod >one.log

# ---- seven shards: three are killed; one is told to stop, and puts itself in the queue again
submit() { sbatch --parsable --array="$1" --cpus-per-task=1 --mem=0 --output="$work/job-%a.log" "$here/examples/slurm_array.sh" 7 "$work/corpus" "$work/out/corpus" "$tokenizer"; }
wait_for() { while squeue -h -j "$1" 2>/dev/null | grep -q .; do sleep 1; done; }
index_of() { { tr '\0' '\n' <"/proc/$1/environ" | sed -n 's/^SLURM_ARRAY_TASK_ID=//p'; } 2>/dev/null; }
job=$(submit 0-6)
stopped=0 killed=0 seen=' '
for _ in $(seq 6000); do
  for worker in $(pgrep -f "^megalith-preprocess --input $work/corpus " || true); do
    [[ $seen != *" $worker "* ]] && index=$(index_of "$worker") && [ -n "$index" ] || continue
    seen+="$worker "
    if [ $killed -lt 3 ]; then
      kill -9 "$worker" 2>/dev/null && killed=$((killed + 1))
    elif [ $stopped = 0 ] && kill -STOP "$worker" 2>/dev/null; then  # so that it is not done before Slurm's signal comes
      scancel --signal=USR1 --batch "${job}_$index" && sleep 0.5 && stopped=1
      kill -CONT "$worker"
    fi
  done
  squeue -h -j "$job" 2>/dev/null | grep -q . || break
  sleep 0.02
done
wait_for "$job"
echo "stopped $stopped, killed $killed; missing: $(megalith-data shards --missing out/corpus || true)"
for _ in 1 2 3; do
  missing=$(megalith-data shards --missing out/corpus) && break
  wait_for "$(submit "$missing")"
done
megalith-merge --shards out/corpus --output-prefix all
cmp one_text_document.bin all_text_document.bin
cmp one_text_document.idx all_text_document.idx
grep -q 'stopped by SIGUSR1' job-*.log && [ $stopped = 1 ] && [ $killed = 3 ] ||
  { cat job-*.log; echo "slurm.sh: stopped $stopped, killed $killed, wanted 1 and 3"; exit 1; }
echo "ok: Slurm gives the bytes of one process, with three shards killed and one stopped"

# ---- training: two ranks that srun starts have the losses of one
train="--mock-data --tokenizer-type NullTokenizer --vocab-size 60 --num-layers 2 --hidden-size 32 --num-attention-heads 2 --seq-length 16
  --max-position-embeddings 16 --micro-batch-size 1 --global-batch-size 4 --train-iters 5 --lr 1e-3 --log-interval 1 --eval-iters 0"
losses() { grep -o 'lm loss: [^ ]*' "$1"; }
megalith-pretrain $train >alone.log 2>&1
srun -n 2 --mem=0 megalith-pretrain $train >ranks.log 2>&1 || { cat ranks.log; exit 1; }
grep -q 'using world size: 2,' ranks.log || { cat ranks.log; exit 1; }
[ "$(losses alone.log | wc -l)" = 5 ]
diff <(losses alone.log) <(losses ranks.log)
echo "ok: two ranks that srun starts have the losses of one"
