#!/usr/bin/env python3
"""make_text.py OUT [MEGABYTES] : loose JSON ({"content", "path"}, one object a line) from source text on this machine.

Source: the Python standard library's .py files (as the CodeParrot corpus is made of code); where they are not installed, this
repository's own sources. Files go round-robin into OUT/AA/part_00 … part_07. Deterministic for a given set of files.
Only input for the demo: nothing of Megalith needs Python at run time."""
import json
import os
import pathlib
import sys
import sysconfig

PARTS = 8
SKIP = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__", "encodings", "pydoc_data", "lib2to3"}


def files_below(root, suffixes, skip):
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in skip)
        found += [pathlib.Path(folder, name) for name in sorted(names) if name.endswith(suffixes)]
    return found


def read(path):
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def main():
    out = pathlib.Path(sys.argv[1])
    limit = float(sys.argv[2]) * 1e6 if len(sys.argv) > 2 else 12e6
    root = pathlib.Path(sysconfig.get_path("stdlib"))
    files = files_below(root, (".py",), SKIP)
    if sum(path.stat().st_size for path in files) < 2e6:
        root = pathlib.Path(__file__).resolve().parents[2]
        files = files_below(root, (".h", ".cpp", ".cu", ".py", ".md"), SKIP | {"build", ".git", ".venv", "demo-out"})
    (out / "AA").mkdir(parents=True, exist_ok=True)
    parts = [open(out / "AA" / f"part_{i:02d}", "w", encoding="utf-8") for i in range(PARTS)]
    total = documents = 0
    for path in files:
        text = read(path)
        if len(text) < 200:
            continue
        if total + len(text) > limit:
            break
        parts[documents % PARTS].write(json.dumps({"content": text, "path": str(path.relative_to(root))}) + "\n")
        total += len(text)
        documents += 1
    for part in parts:
        part.close()
    print(f"{documents} files, {total / 1e6:.1f} MB of text from {root}", file=sys.stderr)


main()
