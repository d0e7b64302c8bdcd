#!/usr/bin/env python3
"""Holds `megalith-pretrain --dump-sample-order` against megatron-core on random datasets, splits and blends.

    BUILD=build/release python tools/peers/compare_sample_order.py [CASES] [SEED]

Every line must be equal; where megatron-core refuses, ours must refuse too. (A split without tokens, where
megatron-core never returns, is left out.)
"""
import io, os, random, shutil, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
import make_dataset_goldens as megatron  # noqa: E402  (sets up a quiet, CPU-only megatron-core)
import numpy  # noqa: E402

PRETRAIN = os.path.abspath(os.path.join(os.environ.get("BUILD", "build/release"), "bin", "megalith-pretrain"))


def random_dataset(rng, prefix):
    longest = rng.choice((3, 40, 40, 700))
    wide = rng.random() < 0.2
    ids = lambda: [rng.randrange(200000 if wide else 600) for _ in range(rng.choice((0, 1, rng.randint(0, longest), rng.randint(1, longest))))]
    documents = [[ids() for _ in range(rng.choice((0, 1, 1, 1, 1, 3)))] for _ in range(rng.choice((1, 4, 30, 200)))]
    if not any(map(any, documents)): documents.append([[1, 2, 3]])   # megatron-core cannot open an empty .bin
    megatron.build(prefix, numpy.int32 if wide else numpy.uint16, documents)


def random_case(rng):
    names = rng.sample(["a", "b", "c", "d"], rng.choice((1, 1, 1, 2, 3)))
    weighted = rng.random() < 0.5 and (len(names) > 1 or rng.random() < 0.3)
    path = " ".join(f"{rng.choice((0.1, 0.37, 1, 2.5, 30)) } {n}" if weighted else n for n in names)
    count = lambda: rng.choice((1, rng.randint(1, 30), rng.randint(1, 900))) if weighted or rng.random() < 0.6 else 0
    words = ["--data-path", path, "--seed", rng.choice((0, 1234, 2**32 - 1)), "--seq-length", rng.choice((2, 3, 8, 64, 300)),
             "--split", rng.choice(("969,30,1", "99,1", "1,1,1", "100,0,0", "0.5,0.25,0.25", "8,1,1", "0,1,0")),
             "--samples", count(), count(), count(), "--n", 5]
    if rng.random() < 0.2: words.append("--no-extra-token")
    if rng.random() < 0.4: words.append("--keep-last-partial-valid")
    return " ".join(map(str, words))


def theirs(case):
    out = io.StringIO()
    try:
        megatron.run_case(case, out, items=False)
        return out.getvalue().splitlines()[1:]
    except Exception as error:  # its assertions, IndexError of an oversampled blend
        return f"refused: {type(error).__name__}: {error}"[:200]


def ours(case):
    run = subprocess.run([PRETRAIN, "--dump-sample-order", *case.split()], capture_output=True, text=True)
    if run.returncode in (64, 65): return "refused: " + run.stderr.strip()
    assert run.returncode == 0, (run.returncode, run.stderr)
    return [line for line in run.stdout.splitlines() if not line.startswith("config ")]


def main():
    cases, seed = (int(x) for x in (sys.argv[1:] + ["150", "1"][len(sys.argv) - 1:])[:2])
    rng, equal, refused = random.Random(seed), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(cases):
            os.chdir(folder)
            for name in "abcd": shutil.rmtree(name, ignore_errors=True)   # megatron-core's index cache, whose key
            if number % 10 == 0:                                          # misses the data and some options
                for name in "abcd": random_dataset(rng, name)
            case = random_case(rng)
            b = ours(case)
            if "holds no token" in b:   # there megatron-core never returns, from a thread if it is a blend
                refused += 1
                continue
            a = theirs(case)
            if isinstance(a, str) and isinstance(b, str):
                refused += 1
                continue
            if a != b:
                print("differs:", case)
                print(" megatron-core:", a if isinstance(a, str) else "\n".join(x for x in a if x not in b))
                print(" megalith:", b if isinstance(b, str) else "\n".join(x for x in b if x not in a))
                return 1
            equal += 1
    print(f"sample order: {equal} random cases equal megatron-core line by line, {refused} refused by both")
    return 0


if __name__ == "__main__":
    sys.exit(main())
