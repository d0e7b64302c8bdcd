#!/usr/bin/env python3
"""Times megalith-convert on a model of 1.5B parameters in bf16 (GPT-2 XL's shape, random weights) beside a copy.

    python3 bench/convert.py [--binary build/release/bin/megalith-convert] [--dir /tmp/convert-bench] [--runs 3] [--layers 48] [--only NAME]

Makes DIR/hf (3.1 GB, written in blocks) and from it DIR/megatron. Converts both ways, with the check, in turn with
`cp` and fsync of the same bytes, and prints a JSON line for each way and state: seconds and their ratio (min,
median, max), peak memory of the process (rusage), and the limit of 2 x the largest tensor + 64 MB.

Both start from the same state of the system's memory, made anew before each:
  warm   the input is in memory, and a copy of it was just written, synced and deleted: memory for the output is there
         that the system has touched. The best that cp can have: in a virtual machine whose free memory goes back to its
         host after some seconds, a page that is touched for the first time costs far more than the disk.
  fresh  the input is in memory; four seconds have passed since anything was deleted.
  cold   nothing is in memory (needs root, for /proc/sys/vm/drop_caches); four seconds have passed.
Needs nothing but Python.
"""
import argparse, array, json, os, random, resource, shutil, statistics, struct, subprocess, time

parser = argparse.ArgumentParser()
parser.add_argument("--binary", default="build/release/bin/megalith-convert")
parser.add_argument("--dir", default="/tmp/convert-bench")
parser.add_argument("--runs", type=int, default=3)
parser.add_argument("--layers", type=int, default=48)
parser.add_argument("--only", default="", help="part of the name of a row: 'hf to megatron, warm'")
options = parser.parse_args()
HIDDEN, HEADS, POSITIONS, VOCAB = 1600, 25, 1024, 50257


def tensors():
    yield "transformer.wte.weight", [VOCAB, HIDDEN]
    yield "transformer.wpe.weight", [POSITIONS, HIDDEN]
    for layer in range(options.layers):
        stem = f"transformer.h.{layer}."
        for norm in ("ln_1", "ln_2"):
            yield stem + norm + ".weight", [HIDDEN]
            yield stem + norm + ".bias", [HIDDEN]
        for name, rows, columns in (("attn.c_attn", HIDDEN, 3 * HIDDEN), ("attn.c_proj", HIDDEN, HIDDEN),
                                    ("mlp.c_fc", HIDDEN, 4 * HIDDEN), ("mlp.c_proj", 4 * HIDDEN, HIDDEN)):
            yield stem + name + ".weight", [rows, columns]
            yield stem + name + ".bias", [columns]
    yield "transformer.ln_f.weight", [HIDDEN]
    yield "transformer.ln_f.bias", [HIDDEN]


def elements(shape):
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def random_block(count=1 << 20):
    """`count` bf16 numbers, normal with deviation 0.02."""
    generator = random.Random(1)
    floats = array.array("f", (generator.gauss(0, 0.02) for _ in range(count))).tobytes()
    block = bytearray(2 * count)
    block[0::2], block[1::2] = floats[2::4], floats[3::4]
    return bytes(block)


def make_input(folder):
    os.makedirs(folder)
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in sorted(tensors()):
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + 2 * elements(shape)]}
        at += 2 * elements(shape)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    block = random_block()
    with open(folder + "/model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for start in range(0, at, len(block)):
            file.write(block[:min(len(block), at - start)])
    json.dump({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": options.layers, "n_embd": HIDDEN, "n_head": HEADS,
               "n_positions": POSITIONS, "vocab_size": VOCAB, "dtype": "bfloat16"}, open(folder + "/config.json", "w"))


def timed(command):
    """Seconds and peak memory in bytes."""
    start = time.monotonic()
    child = subprocess.Popen(command, stderr=subprocess.PIPE)
    text = child.stderr.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(text)
    return time.monotonic() - start, usage.ru_maxrss * 1024, text.strip()


def files_of(folder):
    return [os.path.join(where, name) for where, _, names in os.walk(folder) for name in names]


def copy_synced(files, target):
    os.makedirs(target)
    for number, file in enumerate(files):
        copy = f"{target}/{number}"
        subprocess.run(["cp", file, copy], check=True)
        with open(copy, "rb+") as out:
            os.fsync(out.fileno())


def timed_copy(files, target):
    start = time.monotonic()
    copy_synced(files, target)
    return time.monotonic() - start


def remove(*folders):
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    os.sync()


def prepare(state, source, scratch):
    """Makes the state in which something is timed; `scratch` is removed."""
    remove(scratch)
    if state == "cold":
        with open("/proc/sys/vm/drop_caches", "w") as caches:
            caches.write("3")
    for file in files_of(source) if state != "cold" else []:
        subprocess.run(["cat", file], stdout=subprocess.DEVNULL, check=True)
    if state == "warm":
        copy_synced(files_of(source), scratch)
        remove(scratch)
    else:
        time.sleep(4)


def spread(numbers):
    return [round(number, 2) for number in (min(numbers), statistics.median(numbers), max(numbers))]


def main():
    hf, megatron, out = (os.path.join(options.dir, name) for name in ("hf", "megatron", "out"))
    if not os.path.exists(hf):
        make_input(hf)
    if not os.path.exists(megatron):
        timed([options.binary, hf, "--to", "megatron", "--output", megatron, "--no-check"])
    limit = 2 * (2 * VOCAB * HIDDEN) + 64_000_000
    ways = (("megatron to hf", megatron, ["--vocab-size", str(VOCAB), "--to", "hf"]),
            ("hf to megatron", hf, ["--to", "megatron", "--tp", "5", "--pp", "4"]))
    for state in ("warm", "fresh", "cold"):
        for name, source, arguments in ways:
            if options.only not in f"{name}, {state}":
                continue
            ours, theirs, peaks, text = [], [], [], ""
            for _ in range(options.runs):
                prepare(state, source, out)
                theirs.append(timed_copy(files_of(source), out))
                prepare(state, source, out)
                seconds, peak, text = timed([options.binary, source, *arguments, "--output", out])
                ours.append(seconds), peaks.append(peak)
            remove(out)
            print(json.dumps({"conversion": name, "state": state, "runs": options.runs, "seconds": spread(ours), "cp_seconds": spread(theirs),
                              "ratio": spread([a / b for a, b in zip(ours, theirs)]), "peak_bytes": max(peaks), "limit_bytes": limit,
                              "says": text}), flush=True)


main()
