#!/usr/bin/env python3
"""Goldens of tests/apps/preprocess/preprocess_megatron_test.cpp: what Megatron-LM's own tools/preprocess_data.py writes.

  pip install torch transformers nltk
  tools/golden/make_megatron_preprocess.py MEGATRON_FOLDER tests/apps/fixtures/megatron

MEGATRON_FOLDER is a checkout (made with d98e8a64, 2026-08-22; Python 3.11, transformers 5.23, nltk 3.10.4, the Punkt model and the tokenizer of
tests/text/goldens). The script runs as it is but for three things around it: typing.override is given where Python 3.11 has none, the files of a pattern come by
name and not as the file system lists them, and a second run tokenizes what a first one with --split-sentences has cut.

  a.jsonl, b.jsonl        the inputs
  NAME_KEY_LEVEL.{bin,idx}   of each case in CASES, with the options that the test gives too
"""
import json, os, random, shutil, subprocess, sys, tempfile

GOLDENS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "text", "goldens")
CASES = {  # runs, options
    "plain": (1, ["--input", "a.jsonl", "--json-keys", "text", "title", "--append-eod"]),
    "blocks": (1, ["--input", "[ab].jsonl", "--json-keys", "text", "title", "--partitions", "3", "--keep-sequential-samples", "--append-eod"]),
    "spare": (1, ["--input", "b.jsonl", "--partitions", "7", "--keep-sequential-samples"]),
    "cut": (2, ["--input", "a.jsonl", "--split-sentences", "--append-eod"]),
    "kept": (2, ["--input", "a.jsonl", "--split-sentences", "--keep-newlines", "--lang", "english"]),
    "both": (1, ["--input", "[ab].jsonl", "--json-keys", "text", "title", "--split-sentences", "--partitions", "2", "--keep-sequential-samples", "--append-eod"]),
}
RUNNER = """
import glob, runpy, sys, typing
typing.override = getattr(typing, "override", lambda f: f)
listed = glob.glob
glob.glob = lambda *args, **options: sorted(listed(*args, **options))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def documents(rng, count):
    sentences = ["Dr. Ito crossed the bridge.", "However it rained!", "Who saw it (or not?)", "He said \u201cno.\u201d", "The mill cost 3.5 p.m. a head.", "J. S. Curie wrote vol. 3.", "na\u00efve caf\u00e9 \u4e2d\u6587\u3002 Ende.",
                 "Lines\nbreak.", "e.g. this", "There were ships..."]
    for number in range(count):
        text = "".join(rng.choice(sentences) + rng.choice([" ", "  ", "\n\n", "\n", "\t"]) for _ in range(rng.randrange(7)))
        yield {"id": number, "text": text, "title": rng.choice(["", " ", "A title. Of two.", f"No. {number}"])}


def main():
    megatron, root = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    rng = random.Random(5)
    os.makedirs(root, exist_ok=True)
    for name, count in (("a", 14), ("b", 5)):
        with open(os.path.join(root, name + ".jsonl"), "w", encoding="utf-8") as out:
            out.writelines(json.dumps(document, ensure_ascii=False) + "\n" for document in documents(rng, count))
    with tempfile.TemporaryDirectory() as work:
        shutil.copytree(os.path.join(GOLDENS, "trained"), os.path.join(work, "tokenizer"))
        with open(os.path.join(work, "tokenizer", "tokenizer_config.json"), "w") as out:
            json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"}, out)
        with open(os.path.join(work, "runner.py"), "w") as out:
            out.write(RUNNER)
        shutil.copytree(os.path.join(GOLDENS, "punkt"), os.path.join(work, "home", "nltk_data"))  # with NLTK_DATA set, the script wants a pickle
        environment = {**os.environ, "PYTHONPATH": megatron, "HOME": os.path.join(work, "home"), "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1"}
        environment.pop("NLTK_DATA", None)
        for name, (runs, options) in CASES.items():
            folder = os.path.join(work, name)
            os.makedirs(folder)
            for source in ("a.jsonl", "b.jsonl"):
                shutil.copy(os.path.join(root, source), folder)
            workers = options[options.index("--partitions") + 1] if "--partitions" in options else "2"
            command = [sys.executable, os.path.join(work, "runner.py"), os.path.join(megatron, "tools", "preprocess_data.py"), "--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", os.path.join(work, "tokenizer"),
                       "--output-prefix", name, "--workers", workers, *options]
            for _ in range(runs):
                subprocess.run(command, cwd=folder, env=environment, check=True, stderr=subprocess.DEVNULL)
            print(name, "leaves", sorted(os.listdir(folder)))
            for key in ("text", "title"):
                for level in ("document", "sentence"):
                    for end in ("bin", "idx"):
                        made = f"{name}_{key}_{level}.{end}"
                        if os.path.exists(os.path.join(folder, made)):
                            shutil.copy(os.path.join(folder, made), root)


main()
