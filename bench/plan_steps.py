#!/usr/bin/env python3
"""Measures how far plans for this machine's processor are from its runs: the time of a step of megalith-pretrain,
beside what megalith-autoplan says of the same layout with a profile that was taken in the same minutes, and without.
In each round a profile is taken for each number of processors, then every configuration trains before and after its
two predictions. A figure is the median over the rounds. The mean load of the rounds stands below: where anything else
runs, the table says little. Markdown, ready for docs/planner.md.

  bench/plan_steps.py [--bin build/release/bin] [--rounds 3] [--steps 10] [--seconds 60] [--only "NAME;NAME"]"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

FIRST = 3  # steps of a run that are not counted
SMALL = ("--num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 256 --max-position-embeddings 256 "
         "--vocab-size 8192 --global-batch-size 8 --attention-dropout 0 --hidden-dropout 0")
WIDE = ("--num-layers 2 --hidden-size 768 --num-attention-heads 12 --seq-length 512 --max-position-embeddings 512 "
        "--vocab-size 16384 --global-batch-size 2 --attention-dropout 0 --hidden-dropout 0")


def layout(micro_batch, tensor=1):
    return (f"--tensor-model-parallel-size {tensor} --pipeline-model-parallel-size 1 --no-sequence-parallel --sharding none "
            f"--micro-batch-size {micro_batch}")


# name: (processors, ranks, options of the model, options of the layout)
CONFIGURATIONS = {
    "small, 1 thread": (1, 1, SMALL, layout(8)),
    "small, 2 threads": (2, 1, SMALL, layout(8)),
    "wide, 1 thread": (1, 1, WIDE, layout(2)),
    "wide, 2 threads": (2, 1, WIDE, layout(2)),
    "small, data 2": (2, 2, SMALL, layout(4)),
    "small, tensor 2": (2, 2, SMALL, layout(8, tensor=2)),
    "small, data 4": (2, 4, SMALL, layout(2)),
    "small, tensor 2, data 2": (2, 4, SMALL, layout(4, tensor=2)),
}


def output_of(processors, command):
    """The standard output of a command on the first `processors` processors that this script may use."""
    mine = ",".join(map(str, sorted(os.sched_getaffinity(0))[:processors]))
    run = subprocess.run(["taskset", "-c", mine, *map(str, command)], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{run.stderr[-2000:]}")
    return run.stdout


def measured(args, folder, name):
    """Seconds of each step after the first ones."""
    processors, ranks, model, divided = CONFIGURATIONS[name]
    log = folder / "log.jsonl"
    log.unlink(missing_ok=True)
    output_of(processors, [args.bin / "megalith-pretrain", *model.split(), *divided.split(), "--nproc", ranks, "--threads",
                           max(1, processors // ranks), "--mock-data", "--train-iters", args.steps + FIRST, "--lr",
                           "1e-4", "--eval-iters", "0", "--log-interval", "1", "--log-json", log])
    return [line["ms"] / 1e3 for line in map(json.loads, log.open()) if line["type"] == "train"][FIRST:]


def predicted(args, name, profile):
    processors, ranks, model, divided = CONFIGURATIONS[name]
    answer = output_of(processors, [args.bin / "megalith-autoplan", "--gpu", "local", *model.split(), *divided.split(),
                                    "--world-size", ranks, "--threads", processors, "--recompute-granularity", "none",
                                    "--top", "1", "--json", *(["--calibrate", profile] if profile else [])])
    return json.loads(answer)["plans"][0]["step_seconds"]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--bin", default="build/release/bin", type=pathlib.Path)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--steps", type=int, default=10)
    options.add_argument("--seconds", type=float, default=60, help="of each profile at most")
    options.add_argument("--only", default="")
    args = options.parse_args()
    names = args.only.split(";") if args.only else list(CONFIGURATIONS)
    if unknown := [name for name in names if name not in CONFIGURATIONS]:
        sys.exit(f"--only: no configuration {unknown}; there are {list(CONFIGURATIONS)}")
    columns = {name: ([], [], []) for name in names}
    loads = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for _ in range(args.rounds):
            profiles = {}
            for processors in sorted({CONFIGURATIONS[name][0] for name in names}):
                profiles[processors] = folder / f"profile{processors}.json"
                output_of(processors, [args.bin / "megalith-autoplan", "profile", "--quiet", "--threads", processors, "--seconds",
                                       args.seconds, "--output", profiles[processors]])
            for name in names:
                before = measured(args, folder, name)
                without, with_profile = (predicted(args, name, profile) for profile in (None, profiles[CONFIGURATIONS[name][0]]))
                columns[name][0].append(statistics.median(before + measured(args, folder, name)))
                columns[name][1].append(without)
                columns[name][2].append(with_profile)
                loads.append(os.getloadavg()[0])
    print("| configuration | processors, ranks | measured | predicted without | with a profile |\n|---|--:|--:|--:|--:|")
    for name in names:
        seconds, *guesses = map(statistics.median, columns[name])
        cells = " | ".join(f"{1e3 * guess:.0f} ms, {100 * (guess / seconds - 1):+.0f} %" for guess in guesses)
        print(f"| {name} | {CONFIGURATIONS[name][0]}, {CONFIGURATIONS[name][1]} | {1e3 * seconds:.0f} ms | {cells} |")
    print(f"\nload: {statistics.mean(loads):.1f} (mean)")


if __name__ == "__main__":
    main()
