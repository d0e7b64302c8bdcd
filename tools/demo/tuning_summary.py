#!/usr/bin/env python3
"""tuning_summary.py OUT : what tools/demo/finetune changed. Exits 1 when the loss on held-out answers did not halve."""
import json
import pathlib
import re
import sys

FORM = re.compile(r'[A-Z][a-z0-9 ]*\. Args: [a-z0-9_]+(, [a-z0-9_]+)*\."""')
out = pathlib.Path(sys.argv[1])


def last_loss(name):
    lines = map(json.loads, open(out / name, encoding="utf-8"))
    return [line["loss"] for line in lines if line["type"] == "valid"][-1]


def answers(name):
    """Shares in percent: of the form, and right in the arguments, and right altogether."""
    made = [json.loads(line) for line in open(out / name / "generated_predictions.jsonl", encoding="utf-8")]
    good = [a for a in made if FORM.fullmatch(a["predict"])]
    arguments = [a for a in good if a["predict"].split(" Args: ")[1] == a["label"].split(" Args: ")[1]]
    right = [a for a in good if a["predict"] == a["label"]]
    return [100 * len(some) / len(made) for some in (good, arguments, right)]


before, after = last_loss("before.jsonl"), last_loss("after.jsonl")
print(f"loss on held-out answers: {before:.3f} before, {after:.3f} after")
for what, one, two in zip(("of the form", "of the form and right in the arguments", "right"), answers("before"), answers("lora")):
    print(f"greedy answers {what}: {one:.1f} % before, {two:.1f} % after")
sys.exit(after > before / 2)
