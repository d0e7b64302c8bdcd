#!/usr/bin/env python3
"""Measures what sharing a run over ranks costs: GPT-2 of 124 million parameters in bf16, 4 samples of 1024 tokens a
rank and step, layouts in turns with the one-rank run beside them. A figure is the median over the turns of the ratio
of tokens per second to that of the run just before it; the first steps of a run are left out. Processor time counts
the whole run, its start too: on a busy machine it tells more than the clock. Markdown, ready for
docs/benchmarks.md. Ranks are threads of one process, but where a layout says that they are processes: these are started
with a plain environment (RANK, WORLD_SIZE, ...) and connect over the loopback interface with Gloo.

  bench/ranks.py [--bin build/release/bin] [--turns 5] [--steps 4] [--only "NAME;NAME"]"""
import argparse
import json
import os
import pathlib
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile

MODEL = ("--num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length 1024 --max-position-embeddings 1024 "
         "--vocab-size 50257 --bf16 --lr 1e-4 --eval-iters 0 --split 100,0,0 --attention-dropout 0 --hidden-dropout 0 "
         "--log-interval 1")
# name: (ranks, threads a rank, micro-batch, global batch, further options)
LAYOUTS = {
    "1 rank x 2 threads": (1, 2, 4, 4, ""),
    "DP 2": (2, 1, 4, 8, ""),
    "DP 2, ZeRO-1": (2, 1, 4, 8, "--use-distributed-optimizer"),
    "DP 2, ZeRO-2": (2, 1, 4, 8, "--sharding stage2"),
    "DP 2, processes": (2, 1, 4, 8, ""),
    "DP 2, ZeRO-1, processes": (2, 1, 4, 8, "--use-distributed-optimizer"),
    "CP 2": (2, 1, 4, 4, "--context-parallel-size 2"),
    "TP 2": (2, 1, 4, 4, "--tensor-model-parallel-size 2"),
    "TP 2, SP": (2, 1, 4, 4, "--tensor-model-parallel-size 2 --sequence-parallel"),
    # The head costs as much as six layers.
    "PP 2, 8 microbatches": (2, 1, 1, 8, "--pipeline-model-parallel-size 2 --pipeline-layers 9,3"),
    "DP 8, ZeRO-1": (8, 1, 1, 8, "--use-distributed-optimizer"),
}
REFERENCE = "1 rank x 2 threads"


def make_data(folder):
    """An indexed dataset of random ids (docs/formats/indexed.md): their values cost the same as text's."""
    ids = [str(i * 7919 % 50257) for i in range(1024)]
    lines = "".join(json.dumps({"text": " ".join(ids)}) + "\n" for _ in range(64))
    (folder / "text.jsonl").write_text(lines)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(command, environment):
    return subprocess.Popen(command.split(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env={**os.environ, "OMP_WAIT_POLICY": "passive", **environment})


def run(binary, folder, name, steps):
    """Tokens per second of the steps after the first two, processor milliseconds a token of all steps, and the memory
    known before the run, in GiB."""
    ranks, threads, micro, batch, more = LAYOUTS[name]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    log = folder / "log.jsonl"
    log.unlink(missing_ok=True)
    command = (f"{binary}/megalith-pretrain {MODEL} {more} --threads {threads} --micro-batch-size {micro} "
               f"--global-batch-size {batch} --train-iters {steps + 2} --data-path {folder}/data_text_document "
               f"--log-json {log}")
    if name.endswith("processes"):
        port = str(free_port())
        processes = [start(command, {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
                                     "MASTER_PORT": port}) for rank in range(ranks)]
    else:
        processes = [start(f"{command} --nproc {ranks}", {})]
    logs = [process.communicate()[0] for process in processes]
    for process, text in zip(processes, logs):
        if process.returncode != 0:
            sys.exit(f"{command}\n{text[-2000:]}")
    rates = [line["tokens_per_s"] for line in map(json.loads, log.open()) if line["type"] == "train"][2:]
    known = re.search(r"memory known before the run: ((?:rank|weights).*)", logs[0]).group(1)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (statistics.median(rates), 1e3 * processor / (batch * 1024 * (steps + 2)),
            re.search(r"([\d.]+ \w+)$", known).group(1))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--bin", default="build/release/bin", type=pathlib.Path)
    options.add_argument("--turns", type=int, default=5)
    options.add_argument("--steps", type=int, default=4)
    options.add_argument("--only", default="")
    args = options.parse_args()
    names = [name for name in LAYOUTS if name != REFERENCE and (not args.only or name in args.only.split(";"))]
    ratios, rates, memory = {name: [] for name in names}, {name: [] for name in LAYOUTS}, {}
    processor = {name: [] for name in LAYOUTS}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        make_data(folder)
        subprocess.run([args.bin / "megalith-preprocess", "--input", folder / "text.jsonl", "--output-prefix",
                        folder / "data", "--json-keys", "text", "--tokenizer-type", "NullTokenizer", "--vocab-size",
                        "50256"], check=True, capture_output=True)
        for _ in range(args.turns):
            for name in names:
                base, base_processor, memory[REFERENCE] = run(args.bin, folder, REFERENCE, args.steps)
                rate, own_processor, memory[name] = run(args.bin, folder, name, args.steps)
                processor[REFERENCE].append(base_processor)
                processor[name].append(own_processor)
                rates[REFERENCE].append(base)
                rates[name].append(rate)
                ratios[name].append(rate / base)
    print("| layout | tokens/s: median (min - max) | times 1 rank x 2 threads | processor ms a token | memory of all ranks |")
    print("|---|---|---|---|---|")
    for name in [REFERENCE, *names]:
        ratio = f"{statistics.median(ratios[name]):.3f}" if name in ratios else "1"
        print(f"| {name} | {statistics.median(rates[name]):.0f} ({min(rates[name]):.0f} - {max(rates[name]):.0f}) | {ratio} "
              f"| {statistics.median(processor[name]):.2f} | {memory[name]} |")


if __name__ == "__main__":
    main()
