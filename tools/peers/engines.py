#!/usr/bin/env python3
"""engines.py [ENGINE ...]: runs the examples of docs/scale-out.md under Ray, Dask, Spark and datatrove, or those that are named, with seven
shards, and kills three of the shards, and a worker, while they run: the joined bytes must be those of one process. Each engine is installed
into an environment of its own below build/engines. Spark is skipped if there is no Java.  Environment: BUILD (build/release)."""
import filecmp
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("BUILD", ROOT / "build/release")).resolve() / "bin"
TOKENIZER = ROOT / "tests/text/goldens/trained"
SHARDS, KILLS, LINES = "7", 3, 400_000
ENGINES = {  # the example, what pip installs, and whether a worker that dies is replaced
    "ray": ("ray_tasks.py", "ray==2.60.0", True),
    "dask": ("dask_tasks.py", "distributed==2026.8.0", True),
    "spark": ("spark_partitions.py", "pyspark==4.3.0", True),
    "datatrove": ("datatrove_step.py", "datatrove==0.10.1", False),
}


def python_of(engine, package):
    """An environment's Python with the package, made if it is not there."""
    folder = ROOT / "build/engines" / engine
    python = folder / "bin/python"
    name, version = package.split("==")
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    found = subprocess.run([python, "-c", f"import importlib.metadata as m; print(m.version('{name}'))"],
                           capture_output=True, text=True, check=False).stdout.strip()
    if found != version:
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", package], check=True)
    return python


def make_corpus(folder):
    folder.mkdir()
    for part in range(3):
        with open(folder / f"{part}.jsonl", "w", encoding="utf-8") as file:
            for i in range(LINES):
                file.write(f'{{"text": "Document {i} of file {part}: the harbour was quiet, and {i * 7 % 1000} boats lay there"}}\n')


def shard_processes(folder):
    """The shards that run on this folder: process number and that of the worker that started it."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().decode().split("\0")
            environment = (entry / "environ").read_bytes().decode(errors="replace")
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        if words[0].endswith("megalith-preprocess") and f"ENGINES_CHECK={folder}" in environment.split("\0"):
            found.append((int(entry.name), parent))
    return sorted(found)


def kill_some(run, folder, workers):
    """Kills shards while the example runs: of the first that it finds also the worker, if another takes its place."""
    killed = []
    while run.poll() is None and len(killed) < KILLS:
        for shard, worker in shard_processes(folder):
            if shard in killed:
                continue
            victims = [worker, shard] if workers and not killed and worker != run.pid else [shard]
            for victim in victims:
                try:
                    os.kill(victim, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            killed.append(shard)
            time.sleep(1)
            break
        time.sleep(0.02)
    return len(killed)


def check(engine, folder):
    example, package, workers = ENGINES[engine]
    python = python_of(engine, package)
    out = folder / engine / "all"
    corpus = f"{folder}/corpus/*.jsonl" if engine == "spark" else f"{folder}/corpus"
    out.parent.mkdir()
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "ENGINES_CHECK": str(folder), "RAY_USAGE_STATS_ENABLED": "0",
                   "PYSPARK_PYTHON": str(python), "HOME": str(folder),
                   "PYSPARK_SUBMIT_ARGS": "--master local[2,20] pyspark-shell"}  # 20 attempts at a task; local[2] has one, clusters four
    killed = 0
    for attempt in range(1, 1 + 2 * KILLS):
        with open(folder / f"{engine}.log", "ab") as log:
            run = subprocess.Popen([python, ROOT / "examples" / example, SHARDS, corpus, out, TOKENIZER], env=environment, cwd=folder,
                                   stdout=log, stderr=log)
            killed += kill_some(run, folder, workers) if killed < KILLS else 0
        if run.wait() == 0:
            break
        if workers:  # it should have replaced them
            break
    equal = all(filecmp.cmp(f"{folder}/one_text_document{end}", f"{out}_text_document{end}", shallow=False) for end in (".bin", ".idx")) \
        if run.returncode == 0 else False
    if not equal or killed < KILLS:
        print((folder / f"{engine}.log").read_text(errors="replace")[-4000:])
        print(f"FAIL {engine}: exit code {run.returncode}, {killed} shards killed, bytes {'equal' if equal else 'not equal'}")
        return False
    print(f"ok   {package}: {SHARDS} shards, {killed} killed{' and a worker' if workers else ''}, {attempt} run{'s' if attempt > 1 else ''}: "
          "the bytes of one process", flush=True)
    return True


def main():
    engines = sys.argv[1:] or list(ENGINES)
    if "spark" in engines and not shutil.which("java"):
        print("spark: skipped: there is no Java")
        engines.remove("spark")
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        make_corpus(folder / "corpus")
        subprocess.run([BIN / "megalith-preprocess", "--input", folder / "corpus", "--output-prefix", folder / "one", "--tokenizer-model",
                        TOKENIZER, "--append-eod"], check=True, capture_output=True)
        good = [check(engine, folder) for engine in engines]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
