#!/usr/bin/env bash
# tools/peers/two_machines.sh: two network namespaces as two machines, each with a rank of one run (docs/distributed.md). Needs
# root (ip netns, package iproute2). Checks: the losses are those of one rank; rank 0 listens on the interface that both share, and on
# no other; when the cable between them is cut, both ranks end within the timeout and five seconds and name each other. Where it is
# not allowed to, it says so and exits 0. Environment: BUILD (build/release).
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=$(realpath "${BUILD:-build/release}")/bin
if ! ip netns list >/dev/null 2>&1 || ! unshare -n true 2>/dev/null; then
  echo "skipped: network namespaces cannot be made here (root; ip and ss of package iproute2)"; exit 0
fi

a=mgl-a-$$ b=mgl-b-$$ folder=$(mktemp -d) failed=0 cable=mgl$$
clean() { ip netns delete "$a" 2>/dev/null; ip netns delete "$b" 2>/dev/null; rm -rf "$folder"; }
trap clean EXIT
check() { if eval "$2"; then echo "ok: $1"; else echo "FAILED: $1"; failed=1; fi; }

ip netns add "$a" && ip netns add "$b"
ip link add "${cable}a" netns "$a" type veth peer name "${cable}b" netns "$b"
ip -n "$a" address add 10.77.0.1/24 dev "${cable}a" && ip -n "$a" link set "${cable}a" up && ip -n "$a" link set lo up
ip -n "$b" address add 10.77.0.2/24 dev "${cable}b" && ip -n "$b" link set "${cable}b" up && ip -n "$b" link set lo up

cd "$folder"
for document in $(seq 40); do echo "{\"text\": \"$(seq -s ' ' "$document" $((document + 59)))\"}"; done > lines.jsonl
"$bin/megalith-preprocess" --input lines.jsonl --tokenizer-type NullTokenizer --vocab-size 100 --output-prefix c >log 2>&1 || { cat log; exit 1; }
model="--num-layers 2 --hidden-size 16 --num-attention-heads 2 --seq-length 12 --max-position-embeddings 12 --micro-batch-size 2
  --global-batch-size 4 --lr 0.01 --lr-decay-style constant --log-interval 1 --eval-iters 0 --split 1,0,0 --threads 1 --vocab-size 101
  --data-path c_text_document"
losses() { grep -oE 'lm loss: [^ ]+' "$1" | cut -d' ' -f3; }
# Ten losses each, no two of which differ by more than 1e-5: sums of two ranks round otherwise than those of one.
same_losses() { paste <(losses "$1") <(losses "$2") | awk '{ n++; d = $1 - $2; if (d * d > 1e-10) bad = 1 } END { exit bad || n != 10 }'; }
# A machine of its own name; for the background, where the program takes the place of the subshell, so that $! is its own id.
on() { exec ip netns exec "$1" unshare --uts sh -c 'hostname "$1"; shift; exec "$@"' sh "$2" "${@:3}"; }
both() {
  on "$a" node-a env RANK=0 WORLD_SIZE=2 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 "$bin/megalith-pretrain" $model "$@" >log.0 2>&1 & p0=$!
  on "$b" node-b env RANK=1 WORLD_SIZE=2 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 "$bin/megalith-pretrain" $model "$@" >log.1 2>&1 & p1=$!
}
until_logged() { for _ in $(seq 400); do grep -q "$1" log.0 && return; sleep 0.05; done; echo "FAILED: rank 0 never logged $1"; exit 1; }

"$bin/megalith-pretrain" $model --train-iters 10 >one 2>&1 || { cat one; exit 1; }
both --train-iters 10
code=0; wait $p0 || code=$?; wait $p1 || code=$?
[ $code = 0 ] || cat log.0 log.1
check "two machines train as one rank does" '[ $code = 0 ] && same_losses one log.0'
check "each has its own name and address" 'grep -q "rank 0: node-a (10.77.0.1)" log.0 && grep -q "rank 1: node-b (10.77.0.2)" log.0'

on "$a" node-a env RANK=0 WORLD_SIZE=2 MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 "$bin/megalith-pretrain" $model --train-iters 10 >log.0 2>&1 & p0=$!
until_logged "waits for 1 more"
bound=$(ip netns exec "$a" ss -Hltn | awk '{print $4}')
kill -KILL $p0; wait $p0 2>/dev/null || true
check "rank 0 listens at 10.77.0.1:29500 alone, not at $bound" '[ "$bound" = 10.77.0.1:29500 ]'

both --train-iters 1000000 --distributed-timeout-seconds-after-init 4
until_logged "iteration       20/"
open=$(ip netns exec "$a" ss -Hltn | awk '{print $4}' | grep -v '^10\.77\.0\.1:' || true)
check "while it trains no other interface is listened on ($open)" '[ -z "$open" ]'
ip -n "$a" link set "${cable}a" down
began=$(date +%s)
code0=0; wait $p0 || code0=$?
code1=0; wait $p1 || code1=$?
took=$(($(date +%s) - began))
check "a cut cable ends both with exit code 75 ($code0, $code1)" '[ $code0 = 75 ] && [ $code1 = 75 ]'
check "within the timeout of 4 s and five seconds ($took s)" '[ $took -le 9 ]'
check "and they name each other" 'grep -q "error: rank 0: .*rank 1 on node-b" log.0 && grep -q "error: rank 1: .*rank 0 on node-a" log.1'
[ $failed = 0 ] || { tail -n 3 log.0 log.1; }
exit $failed
