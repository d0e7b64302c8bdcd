#!/usr/bin/env python3
"""Measures what failures cost a run that `--restarts` starts again: goodput, useful steps over all steps done. Every 200 steps on
average one rank of several, chosen at random, gets kill -9, or may write no more (a full disk, for that rank), or is stopped. The
run saves every 10 steps while it trains. Its last checkpoint is compared with that of the same run left alone, byte by byte.
Markdown, ready for docs/reliability.md; exits with 1 when a figure breaks its promise.

  bench/chaos.py [--bin build/release/bin] [--ranks 2,4] [--servers 1] [--faults 200] [--stops N] [--disks N] [--seed N]
                 [--goodput 0.95 | --lost STEPS] [--folder DIR]"""
import argparse
import json
import os
import pathlib
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time

MODEL = ("--num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 16 --max-position-embeddings 16 "
         "--vocab-size 512 --lr 1e-3 --lr-decay-style cosine --lr-warmup-iters 10 --eval-iters 0 --split 100,0,0 "
         "--micro-batch-size 1 --global-batch-size 4 --threads 1 --use-distributed-optimizer --keep-last 2")
LAYOUTS = {2: "", 4: "--tensor-model-parallel-size 2"}
EVERY, LEAST = 200, 30  # steps between two faults: on average, and at least, so that each one shows before the next
SAVE = 10               # steps between two saves
KEPT = ("args.json", "index.json")  # files that name folders


def make_data(options, folder):
    ids = " ".join(str(i * i * 7919 % 509) for i in range(4096))
    (folder / "text.jsonl").write_text((json.dumps({"text": ids}) + "\n") * 8)
    subprocess.run([f"{options.bin}/megalith-preprocess", "--input", folder / "text.jsonl", "--output-prefix", folder / "data",
                    "--tokenizer-type", "NullTokenizer", "--vocab-size", "511"], check=True, capture_output=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Run:
    """The commands of all servers of a run. The first one's ranks say on stdout which step is done."""

    def __init__(self, options, folder, name, ranks, steps, more):
        each, servers, port = ranks // options.servers, options.servers, free_port()
        base = (f"{options.bin}/megalith-pretrain {MODEL} {LAYOUTS[ranks]} --data-path {folder}/data_text_document --train-iters {steps} "
                f"--save {folder}/{name} --load {folder}/{name} {more}")
        self.processes = []
        for server in range(servers):
            start = f"--gpus {','.join(map(str, range(each)))} --log-dir {folder}/{name}-log-{server}"
            if servers > 1:
                start += f" --nnodes {servers} --node-rank {server} --master-addr 127.0.0.1 --master-port {port}"
            self.processes.append(subprocess.Popen(f"{base} {start}".split(), stderr=subprocess.STDOUT, text=True, bufsize=1,
                                                   stdout=subprocess.PIPE if server == 0 else subprocess.DEVNULL,
                                                   env={**os.environ, "OMP_WAIT_POLICY": "passive"}))

    def lines(self):
        return self.processes[0].stdout

    def rank(self, chance):
        """The process of a rank; None while one of them is not there."""
        try:
            ids = [child for process in self.processes
                   for child in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
        except FileNotFoundError:
            return None
        return int(chance.choice(ids)) if ids else None

    def end(self, tail):
        if any([process.wait() for process in self.processes]):
            sys.exit("".join(tail) or "a command failed")


def strike(run, kind, chance):
    """False if the rank had ended by itself."""
    process = run.rank(chance)
    if process is None:
        return False
    try:
        if kind == "disk":
            resource.prlimit(process, resource.RLIMIT_FSIZE, (0, 0))
        else:
            os.kill(process, signal.SIGKILL if kind == "kill" else signal.SIGSTOP)
    except ProcessLookupError:
        return False
    return True


def follow(run, faults, chance):
    """Steps done, restarts and seconds of a run; `faults`: (step, kind), in order."""
    begun, done, restarts, tail = time.monotonic(), 0, 0, []
    for line in run.lines():
        tail = tail[-30:] + [line]
        restarts += bool(re.search(r"restart \d+ of at most", line))
        step = re.search(r"iteration +(\d+)/", line)
        if not step:
            continue
        done += 1
        if faults and int(step[1]) >= faults[0][0]:
            time.sleep(chance.random() * 0.02)  # anywhere in the next steps
            if strike(run, faults[0][1], chance):
                faults.pop(0)
    run.end(tail)
    return done, restarts, time.monotonic() - begun


def plan(options, chance):
    disks = (options.faults - options.stops) // 2 if options.disks is None else options.disks
    kinds = ["stop"] * options.stops + ["disk"] * disks + ["kill"] * (options.faults - options.stops - disks)
    chance.shuffle(kinds)
    at, faults = 0, []
    for kind in kinds:
        at += LEAST + int(chance.expovariate(1 / (EVERY - LEAST)))
        faults.append((at, kind))
    return faults, at + LEAST


def same(folder, steps):
    calm, chaos = (folder / name / f"iter_{steps:07}" for name in ("calm", "chaos"))
    names = sorted(path.name for path in calm.iterdir() if path.is_file() and path.name not in KEPT)
    return bool(names) and all((calm / name).read_bytes() == (chaos / name).read_bytes() for name in names)


def measure(options, ranks):
    chance = random.Random(options.seed)
    faults, steps = plan(options, chance)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = pathlib.Path(name)
        make_data(options, folder)
        calm = follow(Run(options, folder, "calm", ranks, steps, "--log-interval 100"), [], chance)
        more = f"--log-interval 1 --save-interval {SAVE} --async-save --restarts {2 * options.faults}"
        done, restarts, seconds = follow(Run(options, folder, "chaos", ranks, steps, more), list(faults), chance)
        equal = same(folder, steps)
    kinds = [kind for _, kind in faults]
    goodput = steps / done
    print(f"| {ranks}{f' on {options.servers} servers' if options.servers > 1 else ''} | "
          f"{len(kinds)}: {kinds.count('kill')}, {kinds.count('disk')}, {kinds.count('stop')} | {restarts} | {steps} | {done} | "
          f"{goodput:.3f} | {'yes' if equal else 'no'} | {seconds:.0f} s | {calm[2]:.0f} s |", flush=True)
    cheap = goodput >= options.goodput if options.lost is None else done - steps <= options.lost * len(faults)
    return equal and restarts >= len(faults) and cheap


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--servers", type=int, default=1, help="commands that share the ranks, as --nnodes has it")
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--stops", type=int, help="how many of them are stops, which take 5 s each; default: a third")
    parser.add_argument("--disks", type=int, help="how many are full disks; default: half of the others")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    limit = parser.add_mutually_exclusive_group()
    limit.add_argument("--goodput", type=float, default=0.95, help="the least that is wanted")
    limit.add_argument("--lost", type=float, help="the most steps that a fault may cost on average; for runs of few faults, "
                       "whose goodput depends on the steps between them, and so on chance")
    parser.add_argument("--folder", help="where checkpoints are written, on the disk that is asked for")
    options = parser.parse_args()
    if options.stops is None:
        options.stops = options.faults // 3
    print(f"seed {options.seed}\n\n| ranks | faults: kills, full disks, stops | restarts | useful steps | steps done | goodput "
          "| same checkpoint | time | without faults |\n|---|---|---|---|---|---|---|---|---|")
    kept = [measure(options, int(ranks)) for ranks in options.ranks.split(",")]
    sys.exit(0 if all(kept) else 1)


if __name__ == "__main__":
    main()
