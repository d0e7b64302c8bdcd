#!/usr/bin/env python3
"""Compares megalith-generate's prompts with transformers' apply_chat_template(), for the chat templates of published models.

  tools/peers/compare_templates.py [--templates DIR]      (in .venv; BUILD names the build folder)

The templates are those of llama-cpp-python's source package (vendor/llama.cpp/models/templates), which pip downloads, or the
files of DIR. tools/peers/templates.sha256 has their digests: a file with another one is named. Each renders the four chats of
tests/text/goldens/template_constructs.json, without and with tools. What transformers refuses, we must refuse. Prints the
templates that differ, and why if that is known. Fails if one differs that is not in KNOWN, or if the package lacks one.
"""
import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

import tokenizers
import transformers

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGE = "llama-cpp-python==0.3.36"
FOLDER = "/vendor/llama.cpp/models/templates/"
KNOWN = {"ByteDance-Seed-OSS.jinja": "a mapping whose keys are numbers, which we refuse",
         "llama-cpp-deepseek-r1.jinja": "tojson of what map gives, a generator, which transformers refuses",
         "meetkai-functionary-medium-v3.1.jinja": "jinja2 escapes texts that are added to a text marked as safe"}


def fetch(folder):
    """Unpacks the templates of the package into the folder."""
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", folder, PACKAGE], check=True)
    package = next(name for name in os.listdir(folder) if name.endswith(".tar.gz"))
    out = os.path.join(folder, "templates")
    os.mkdir(out)
    with tarfile.open(os.path.join(folder, package)) as archive:
        for member in archive:
            if FOLDER in member.name and member.name.endswith(".jinja"):
                with open(os.path.join(out, os.path.basename(member.name)), "wb") as file:
                    file.write(archive.extractfile(member).read())
    return out


def digests():
    with open(os.path.join(ROOT, "tools/peers/templates.sha256"), encoding="utf-8") as file:
        return dict(reversed(line.split()) for line in file)


def make_model(folder):
    """A tiny model that reads long prompts, for megalith-generate."""
    shutil.copytree(os.path.join(ROOT, "tests/parity/goldens/generate-llama"), folder)
    shutil.copy(os.path.join(ROOT, "tests/text/goldens/trained/tokenizer.json"), folder)
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    config["max_position_embeddings"] = 65536
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as file:
        json.dump({"bos_token": "<s>", "eos_token": "</s>"}, file)


def theirs(tokenizer, template, messages, tools):
    try:
        return tokenizer.apply_chat_template(messages, tools=tools, chat_template=template, tokenize=False, add_generation_prompt=True)
    except Exception as error:  # what the template raises, or what jinja2 refuses
        return error


def ours(folder, messages, tools):
    chat = os.path.join(folder, "chat.json")
    with open(chat, "w", encoding="utf-8") as file:
        json.dump({"messages": messages, "tools": tools} if tools else messages, file, ensure_ascii=False)
    program = os.path.join(os.environ.get("BUILD", os.path.join(ROOT, "build/release")), "bin/megalith-generate")
    run = subprocess.run([program, "--model", folder, "--chat", chat, "--json", "--max-new-tokens", "1", "--threads", "1"],
                         capture_output=True, text=True, check=False)
    return json.loads(run.stdout)["prompt"] if run.returncode == 0 else ValueError(run.stderr.strip().split("\n")[-1])


def compare(tokenizer, model, path, goldens):
    """The differences of a template: what was rendered, and both results."""
    with open(path, encoding="utf-8") as file:
        template = file.read()
    with open(os.path.join(model, "chat_template.jinja"), "w", encoding="utf-8") as file:
        file.write(template)
    different = []
    for number, messages in enumerate(goldens["chats"]):
        for tools in (None, goldens["tools"]):
            wanted, got = theirs(tokenizer, template, messages, tools), ours(model, messages, tools)
            if isinstance(wanted, Exception) != isinstance(got, Exception) or (isinstance(wanted, str) and wanted != got):
                different.append((number, tools is not None, wanted, got))
    return different


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--templates")
    parser.add_argument("--show", action="store_true", help="print both results of what differs")
    args = parser.parse_args()
    with open(os.path.join(ROOT, "tests/text/goldens/template_constructs.json"), encoding="utf-8") as file:
        goldens = json.load(file)
    vocabulary = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<s>": 0, "</s>": 1}, unk_token="<s>"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=vocabulary, bos_token="<s>", eos_token="</s>")
    failed, known = [], digests()
    with tempfile.TemporaryDirectory() as folder:
        templates = args.templates or fetch(folder)
        model = os.path.join(folder, "model")
        make_model(model)
        names = sorted(name for name in os.listdir(templates) if name.endswith(".jinja"))
        missing = [] if args.templates else sorted(set(known) - set(names))
        for name in missing:
            print(f"{name}: is not in {PACKAGE}")
        for name in names:
            path = os.path.join(templates, name)
            with open(path, "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()
            if known.get(name) != digest:
                print(f"{name}: has another digest than in tools/peers/templates.sha256")
            different = compare(tokenizer, model, path, goldens)
            if different:
                failed.append(name)
                for number, tools, wanted, got in different if args.show else different[:1]:
                    print(f"{name}: chat {number}{' with tools' if tools else ''}: wanted {wanted!r}, got {got!r}" if args.show
                          else f"{name}: {len(different)} of 8 differ ({KNOWN.get(name, 'unknown why')}): {got!r:.300}")
    print(f"{len(names) - len(failed)} of {len(names)} templates render as in transformers {transformers.__version__}")
    sys.exit(bool(missing or set(failed) - set(KNOWN)))


if __name__ == "__main__":
    main()
