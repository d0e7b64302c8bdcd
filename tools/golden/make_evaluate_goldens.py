#!/usr/bin/env python3
"""Makes tests/evaluate/goldens: small task files in the published forms, and what lm-evaluation-harness says of them.

    python tools/golden/make_evaluate_goldens.py tests      (lm_eval 0.4.13, torch 2.15.0, transformers 5.23.0)

The task files are written from the items below. Each task is lm_eval's own definition with its data replaced by ours; our own
form is a definition of the same kind. results.json has, for each model, number of examples and task, the figures with their
standard errors and each item's log-likelihoods. The models are tests/parity/goldens/generate-* with the tokenizer of
tests/text/goldens/trained: llama with 512 positions, gpt2 with 64 (contexts are cut, texts need windows), and llama-bos, whose
tokenizer puts a token before each text.
"""
import importlib.metadata
import json
import os
import shutil
import sys
import tempfile

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ["HF_HUB_OFFLINE"] = os.environ["HF_DATASETS_OFFLINE"] = "1"
import lm_eval
import torch
import transformers
import yaml
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager

END = "<|endoftext|>"


def hellaswag(activity, a, b, endings, label):
    return dict(activity_label=activity, ctx_a=a, ctx_b=b, ctx=f"{a} {b}", endings=endings, label=label)


HELLASWAG = [
    hellaswag("Baking bread", "A baker weighs flour on a scale.", "he then", ["adds water and yeast to the bowl.", "throws the scale out of a window.", "sings to the flour for an hour.", "paints the wall with dough."], 0),
    hellaswag("Rowing", "Two people sit in a boat on a quiet lake.", "the PERSON in front", ["reads the water like a map.", "pulls the oars toward the chest.", "  eats one of the oars.", "stands on the lake."], 1),
    hellaswag("How to plant a tree", "[header] How to plant a tree [title] Choose a place with light. [step] Walk around the garden at noon.", "", ["[step] Dig a hole twice as wide as the roots. [substeps] Loosen the soil.", "[title] Sell the garden. [step] Move to a town.", "Plant the spade. [step] Water it  twice a day.", "[step] Put the tree into the car and drive."], 0),
    hellaswag("How to café", "A waiter carries nine cups.", "élan fills THE ROOM as ΟΔΟΣ", ["he sets the cups down one by one.", "naïve 日本語 cups fly.", "he drops [laughs] all of them.", "the cups carry him."], 2),
    hellaswag("Fixing a bike", "A wheel spins above the bench. The mechanic", "looks closely at it", [" and bends one spoke back.", " and calls the wheel by its name.", " and the bench spins above the wheel.", " and waits for rain."], 0),
    hellaswag("def", "def f(x):", "return x", ["+ 1", "- 1", "* 2", "if x else 0"], 3),
    hellaswag("Skiing", "A skier stops at the edge.", "she", ["looks down and tightens a strap.", "melts the snow with a lamp.", "goes up the lift backwards.", "unfolds a chair."], 0),
]
HELLASWAG_TRAIN = [
    hellaswag("Cooking soup", "Onions are cut into small pieces.", "they", ["go into the hot pot.", "become a violin.", "are glued together.", "leave the kitchen."], 0),
    hellaswag("Chess", "A player moves the rook.", "the other player", ["eats the rook.", "thinks for a long time.", "moves the table.", "is a rook."], 1),
    hellaswag("How to read", "[header] How to read [title] Open a book. [step] Any page will do.", "", ["[step] Close your eyes.", "[title] Sell the book.", "[step] Begin at the top left.", "[title] Wait."], 2),
    hellaswag("Painting", "The brush is wet.", "blue paint", ["drips onto the floor.", "speaks French.", "is red.", "builds a house."], 0),
    hellaswag("Swimming", "The whistle sounds.", "all swimmers", ["go home.", "sleep.", "fly.", "jump into the pool."], 3),
    hellaswag("Gardening", "Weeds grow between the beans.", "a man", ["pulls them out.", "votes for them.", "waters the street.", "grows."], 0),
]


def arc(number, stem, choices, key, labels="ABCDE"):
    return dict(id=f"Q{number}", question=dict(stem=stem, choices=[dict(text=t, label=l) for t, l in zip(choices, labels)]), answerKey=key)


ARC = [
    arc(1, "Which of these is a source of light?", ["the Sun", "a mirror", "a stone", "a window"], "A"),
    arc(2, "What happens to water at 100 degrees Celsius?", ["It freezes.", "It boils.", "Nothing.", "It turns into salt."], "B"),
    arc(3, "A plant needs which gas?", ["helium", "carbon dioxide", "neon"], "2", "123"),
    arc(4, "Which animal lays eggs?", ["dog", "cat", "hen", "cow", "horse"], "C"),
    arc(5, "Warum ist der Himmel blau? ", ["Streuung", "Öl", "Ärger", "Übung"], "A"),
    arc(6, "How many legs does a spider have?", ["6", "8", "10", "12"], "B"),
]
ARC_TRAIN = [
    arc(11, "What do bees make?", ["honey", "glass", "iron", "paper"], "A"),
    arc(12, "What is ice?", ["gas", "solid water", "metal", "wood"], "B"),
    arc(13, "Which is a planet?", ["the Moon", "the Sun", "Mars", "a comet"], "C"),
    arc(14, "What pulls things down?", ["gravity", "sound", "light", "heat"], "A"),
    arc(15, "What do lungs take in?", ["sand", "air", "oil", "food"], "B"),
]
PIQA = [
    (dict(goal="To open a jar that is stuck,", sol1="run hot water over the lid.", sol2="run hot water over the table."), 0),
    (dict(goal="dry wet shoes", sol1="fill them with soup", sol2="fill them with newspaper"), 1),
    (dict(goal="How do you keep soup warm?", sol1="Put a lid on the pot.", sol2="Put the pot on a lid."), 0),
    (dict(goal="Cut an onion without tears", sol1="cut it under running water", sol2="cut it under a running train"), 0),
    (dict(goal="mark a page", sol1="fold the shelf", sol2="put a strip of paper in the book"), 1),
]
PIQA_TRAIN = [dict(goal=g, sol1=a, sol2=b, label=l) for g, a, b, l in [
    ("hang a picture", "hammer a nail into the wall", "hammer a wall into the nail", 0), ("clean a window", "with bread", "with vinegar and paper", 1),
    ("cool tea", "add an ice cube", "add a candle", 0), ("sharpen a pencil", "with a spoon", "with a knife", 1)]]
LAMBADA = [dict(text=t) for t in [
    "She opened the door of the shop, and the bell above the door of the shop began to ring",
    "The function returns the value, and the caller of the function reads the value",
    "He looked at the harbour. Ships came and went, and he wrote the name of each in his book",
    "naïve 日本 naïve 日本 naïve 日本",
    "  two blanks in front of it and two  blanks",
    "word",
    "a doesn't keep what it can't carry, and it doesn't carry what it can't carry, and it",  # as the llama writes
    "The cat sat on the mat, the dog sat on the log, and the frog sat on the log",
]]
OWN = [dict(context=c, choices=x, answer=a) for c, x, a in [
    ("The opposite of hot is", ["cold", "warm", "red"], 0), ("Two and two are", ["three", "four"], 1), ("A context that ends in a blank: ", ["yes", "no"], 0),
    ("def g(x):\n    return", ["x", "x + 1", "None"], 2), ("", ["A text without a context", "x"], 0), ("naïve", ["日本", "ü", "plain words here"], 1)]]
TEXTS = [dict(text=t) for t in [
    "A short text.", "def f(x):\n    return x + 1\n\n\ndef g(y):\n    return f(y) * 2\n" * 8, "naïve 日本 \u00a0 words  and\tblanks\n" * 12, "The "]]

FILES = {"hellaswag.jsonl": HELLASWAG, "hellaswag-train.jsonl": HELLASWAG_TRAIN, "arc.jsonl": ARC, "arc-train.jsonl": ARC_TRAIN,
         "piqa.jsonl": [item for item, _ in PIQA], "piqa-train.jsonl": PIQA_TRAIN, "lambada.jsonl": LAMBADA, "own.jsonl": OWN, "texts.jsonl": TEXTS}


def write_lines(path, items):
    with open(path, "w", encoding="utf-8") as out:
        for item in items:
            out.write(json.dumps(item, ensure_ascii=False) + "\n")


def as_hub(name, items):
    """The same items in the form of the data sets that lm_eval's definitions read."""
    if name.startswith("arc"):
        return [dict(id=i["id"], question=i["question"]["stem"], answerKey=i["answerKey"],
                     choices=dict(text=[c["text"] for c in i["question"]["choices"]], label=[c["label"] for c in i["question"]["choices"]])) for i in items]
    if name == "piqa.jsonl":
        return [dict(item, label=label) for item, label in PIQA]
    if name.startswith("hellaswag"):
        return [dict(item, label=str(item["label"])) for item in items]
    return items


def definitions(folder):
    theirs = os.path.join(os.path.dirname(lm_eval.__file__), "tasks")
    files = {}
    for name, items in FILES.items():
        files[name] = os.path.join(folder, name)
        write_lines(files[name], as_hub(name, items))
    metric = lambda name, **more: dict(metric=name, **more)
    own = dict(output_type="multiple_choice", doc_to_text="{{context}}", doc_to_target="{{answer}}", doc_to_choice="{{choices}}",
               validation_split="validation", metric_list=[metric(m, aggregation="mean", higher_is_better=True) for m in ("acc", "acc_norm")])
    texts = dict(output_type="loglikelihood_rolling", doc_to_text="", doc_to_target="{{text}}", test_split="test",
                 metric_list=[metric(m) for m in ("word_perplexity", "byte_perplexity", "bits_per_byte")])
    tasks = {"hellaswag": dict(include=f"{theirs}/hellaswag/hellaswag.yaml", files=dict(validation="hellaswag.jsonl", train="hellaswag-train.jsonl")),
             "arc_easy": dict(include=f"{theirs}/arc/arc_easy.yaml", files=dict(test="arc.jsonl", train="arc-train.jsonl", validation="arc.jsonl")),
             "piqa": dict(include=f"{theirs}/piqa/piqa.yaml", files=dict(validation="piqa.jsonl", train="piqa-train.jsonl")),
             "lambada": dict(include=f"{theirs}/lambada/lambada_openai.yaml", files=dict(test="lambada.jsonl")),
             "own": dict(own, files=dict(validation="own.jsonl")),
             "texts": dict(texts, files=dict(test="texts.jsonl"))}
    for name, task in tasks.items():
        data = {split: files[file] for split, file in task.pop("files").items()}
        task.update(task="ours_" + name, dataset_path="json", dataset_name=None, dataset_kwargs=dict(data_files=data))
        with open(os.path.join(folder, name + ".yaml"), "w") as out:
            yaml.safe_dump(task, out)
    return list(tasks)


def make_model(root, folder, kind):
    model = os.path.join(folder, kind)
    shutil.copytree(os.path.join(root, "parity/goldens/generate-" + kind.split("-")[0]), model)
    shutil.copy(os.path.join(root, "text/goldens/trained/tokenizer.json"), model)
    if kind != "gpt2":
        path = os.path.join(model, "config.json")
        config = json.load(open(path))
        config["max_position_embeddings"] = 512
        json.dump(config, open(path, "w"))
    if kind.endswith("-bos"):
        path = os.path.join(model, "tokenizer.json")
        parts = json.load(open(path, encoding="utf-8"))
        end = next(token["id"] for token in parts["added_tokens"] if token["content"] == END)
        special = dict(SpecialToken=dict(id=END, type_id=0))
        parts["post_processor"] = dict(type="TemplateProcessing", single=[special, dict(Sequence=dict(id="A", type_id=0))],
                                       pair=[dict(Sequence=dict(id="A", type_id=0)), dict(Sequence=dict(id="B", type_id=1))],
                                       special_tokens={END: dict(id=END, ids=[end], tokens=[END])})
        json.dump(parts, open(path, "w", encoding="utf-8"))
    return HFLM(pretrained=transformers.AutoModelForCausalLM.from_pretrained(model).eval(), batch_size=3, tokenizer=transformers.PreTrainedTokenizerFast(
        tokenizer_file=os.path.join(model, "tokenizer.json"), eos_token=END, bos_token=END if kind.endswith("-bos") else None, clean_up_tokenization_spaces=False))


def figures(results):
    out = {}
    for key, value in results.items():
        if key.endswith(",none") and value != "N/A":
            out[key.removesuffix(",none")] = value
    return out


def items(samples):
    out = []
    for sample in sorted(samples, key=lambda one: one["doc_id"]):
        answers = [answer for (answer,) in sample["resps"]]
        rolling = not isinstance(answers[0], (tuple, list))
        one = dict(context=None if rolling else sample["arguments"][0][0], logs=[float(a if rolling else a[0]) for a in answers])
        if not rolling:
            one["greedy"] = [bool(a[1]) for a in answers]
        for metric in ("acc", "acc_norm"):
            if metric in sample:
                one[metric] = sample[metric]
        out.append(one)
    return out


def main():
    root = sys.argv[1]
    goldens = os.path.join(root, "evaluate/goldens")
    for name, lines in FILES.items():
        write_lines(os.path.join(goldens, name), lines)
    with open(os.path.join(goldens, "piqa-labels.lst"), "w") as out:
        out.writelines(f"{label}\n" for _, label in PIQA)
    results = dict(generator="tools/golden/make_evaluate_goldens.py", made_with={p: importlib.metadata.version(p) for p in ("lm_eval", "torch", "transformers")}, runs=[])
    with tempfile.TemporaryDirectory() as folder:
        tasks = definitions(folder)
        manager = TaskManager(include_path=folder, include_defaults=False)
        for kind, shots in (("llama", 0), ("llama", 2), ("gpt2", 0), ("gpt2", 2), ("llama-bos", 0)):
            model = make_model(root, tempfile.mkdtemp(dir=folder), kind)
            for task in tasks:
                if shots > 0 and task == "texts":
                    continue
                done = lm_eval.simple_evaluate(model=model, tasks=["ours_" + task], num_fewshot=shots, task_manager=manager, log_samples=True, batch_size=3)
                results["runs"].append(dict(model=kind, shots=shots, task=task, figures=figures(done["results"]["ours_" + task]),
                                            items=items(done["samples"]["ours_" + task])))
    with open(os.path.join(goldens, "results.json"), "w", encoding="utf-8") as out:
        json.dump(results, out, ensure_ascii=False, indent=0)
        out.write("\n")


main()
