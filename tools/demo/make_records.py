#!/usr/bin/env python3
"""make_records.py TEXT OUT [TRAIN [DEV]] : records to finetune the demo's model on, OUT/train.json and OUT/dev.json.

TEXT is the demo's folder of loose JSON. A record asks for the docstring of a function that the text defines and has it answered
in one form: "src" is the function's line and the opening quotes, "tgt" its name as words and its arguments:
    def read_text(self, path):
        \"\"\"Read text. Args: path.\"\"\"
No function's name is in both files. Deterministic for a given text. TRAIN (2000) and DEV (200) are the most records."""
import json
import pathlib
import re
import sys
import zlib

DEFINITION = re.compile(r"^ *def ([a-z][a-z0-9_]*)\(([a-z0-9_, ]*)\):$", re.MULTILINE)


def record(name, arguments):
    given = [a for a in arguments.replace(" ", "").split(",") if a and a != "self"]
    if not given or len(given) > 3 or len(name) > 24:
        return None
    words = name.strip("_").replace("_", " ")
    return {"src": f'def {name}({arguments}):\n    """', "tgt": f'{words.capitalize()}. Args: {", ".join(given)}."""'}


def main():
    text, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    most = [int(n) for n in sys.argv[3:5]] + [2000, 200][len(sys.argv) - 3:]
    found = {}
    for path in sorted(p for p in text.rglob("part_*") if p.is_file()):
        for line in path.open(encoding="utf-8"):
            for match in DEFINITION.finditer(json.loads(line)["content"]):
                found.setdefault(match[1], match[2])
    records = [[], []]
    for name in sorted(found, key=lambda n: zlib.crc32(n.encode())):
        made = record(name, found[name])
        if made:
            records[zlib.crc32(name.encode()) % 8 == 0].append(made)
    out.mkdir(parents=True, exist_ok=True)
    for name, some, count in zip(("train", "dev"), records, most):
        if not some:
            sys.exit(f"{text}: defines no function to ask for in {name}.json")
        with open(out / f"{name}.json", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(r) + "\n" for r in some[:count])
    print(f"{min(most[0], len(records[0]))} records to learn, {min(most[1], len(records[1]))} to evaluate on", file=sys.stderr)


main()
