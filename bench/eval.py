#!/usr/bin/env python3
"""bench/eval.py: megalith-eval beside lm-evaluation-harness, on a random model of GPT-2 124M's shape.

    bench/eval.py [--bin build/release/bin] [--threads 2] [--tasks hellaswag,arc_easy] [--shots 0,5] [--items 48] [--rounds 3]
                  [--dtype fp32] [--batches 1,2,4,8,16] [--work DIR]

Needs lm_eval, torch and transformers. Items are made of random words, as long as those of the published files. Each round runs
both programs, one after the other; the table has medians, and the median of the rounds' ratios. Of lm_eval only the time of
loglikelihood() counts (tokenizing and running), at the fastest of --batches; of megalith-eval the whole process, with loading.
"same" is the largest difference of log-likelihoods.
"""
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

from generate import model_folder, parser_of

SIZES = dict(hellaswag=dict(context=36, choices=4, choice=22), arc_easy=dict(context=20, choices=4, choice=4),
             piqa=dict(context=8, choices=2, choice=18))  # words


def make_words(count):
    draw = random.Random(0)
    return ["".join(draw.choice("bcdfglmnprst") + draw.choice("aeiou") for _ in range(draw.randint(1, 4))) for _ in range(count)]


def make_items(task, count, seed):
    size, words, draw = SIZES[task], make_words(4000), random.Random(seed)
    text = lambda n: " ".join(words[int(len(words) * draw.random() ** 3)] for _ in range(max(1, round(n * draw.uniform(0.6, 1.4)))))
    items = []
    for _ in range(count):
        context, choices = text(size["context"]), [text(size["choice"]) for _ in range(size["choices"])]
        answer = draw.randrange(len(choices))
        if task == "hellaswag":
            items.append(dict(activity_label=text(2), ctx_a=context, ctx_b="", endings=choices, label=str(answer)))
        elif task == "piqa":
            items.append(dict(goal=context, sol1=choices[0], sol2=choices[1], label=answer))
        else:
            labels = ["A", "B", "C", "D"]
            items.append(dict(question=context, choices=dict(text=choices, label=labels), answerKey=labels[answer]))
    return items


def word_tokenizer():
    """A byte-level tokenizer that knows most of the words."""
    import tokenizers
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=6000, special_tokens=["<|endoftext|>"], show_progress=False,
                                             initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([" ".join(make_words(4000)), "Question: Answer:"], trainer)
    return tokenizer


def write_lines(path, items):
    with open(path, "w") as out:
        out.writelines(json.dumps(item) + "\n" for item in items)


class Theirs:
    def __init__(self, args, folder, dtype):
        import lm_eval
        import torch
        import transformers
        from lm_eval.models.huggingface import HFLM
        torch.set_num_threads(args.threads)
        self.evaluate, self.folder = lm_eval.simple_evaluate, folder
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=os.path.join(folder, "tokenizer.json"), eos_token="<|endoftext|>",
                                                         clean_up_tokenization_spaces=False)
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16 if dtype == "bf16" else torch.float32)
        self.lm = HFLM(pretrained=model.eval(), tokenizer=tokenizer, batch_size=1, device="cpu")
        inner = self.lm.loglikelihood

        def timed(requests, **more):
            start = time.perf_counter()
            answers = inner(requests, **more)
            self.seconds = time.perf_counter() - start
            return answers

        self.lm.loglikelihood = timed
        self.theirs = os.path.join(os.path.dirname(lm_eval.__file__), "tasks")

    def run(self, task, files, shots, batch, limit=None):
        import yaml
        from lm_eval.tasks import TaskManager
        include = dict(hellaswag="hellaswag/hellaswag.yaml", arc_easy="arc/arc_easy.yaml", piqa="piqa/piqa.yaml")[task]
        with tempfile.TemporaryDirectory() as folder:
            data = dict(train=files["train"], validation=files["test"], test=files["test"])
            with open(os.path.join(folder, "task.yaml"), "w") as out:
                yaml.safe_dump(dict(include=os.path.join(self.theirs, include), task="ours_" + task, dataset_path="json", dataset_name=None,
                                    dataset_kwargs=dict(data_files=data)), out)
            self.lm.batch_size_per_gpu = batch
            done = self.evaluate(model=self.lm, tasks=["ours_" + task], num_fewshot=shots, limit=limit, bootstrap_iters=0, log_samples=True,
                                 task_manager=TaskManager(include_path=folder, include_defaults=False))
        samples = sorted(done["samples"]["ours_" + task], key=lambda one: one["doc_id"])
        return self.seconds, [float(answer[0][0]) for sample in samples for answer in sample["resps"]]


def ours(args, folder, task, files, shots, dtype):
    out = files["test"] + ".samples"
    command = [os.path.join(args.bin, "megalith-eval"), "--model", folder, "--tasks", f"{task}={files['test']}", "--num-fewshot", str(shots),
               "--threads", str(args.threads), "--samples", out, *(["--bf16"] if dtype == "bf16" else [])]
    if shots:
        command += ["--fewshot-data", f"{task}={files['train']}"]
    start = time.perf_counter()
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if run.returncode:
        sys.exit(run.stderr)
    with open(out) as lines:
        return seconds, [log for line in lines for log in json.loads(line)["loglikelihoods"]]


def compare(args, theirs, folder, task, shots, dtype):
    files = {split: os.path.join(args.work, f"{task}-{split}.jsonl") for split in ("train", "test")}
    quarter = max(4, args.items // 4)
    count, few = (args.items, quarter) if shots == 0 else (quarter, 2)
    write_lines(files["train"], make_items(task, 200, 1))
    write_lines(files["test"], make_items(task, count, 2))
    batch = min((int(b) for b in args.batches.split(",")), key=lambda b: theirs.run(task, files, shots, b, few)[0])
    times = []
    for _ in range(args.rounds):
        their_seconds, wanted = theirs.run(task, files, shots, batch)
        our_seconds, got = ours(args, folder, task, files, shots, dtype)
        times.append((their_seconds, our_seconds))
    worst = max(abs(a - b) for a, b in zip(wanted, got))
    their_median, our_median = (statistics.median(column) for column in zip(*times))
    ratios = [t / o for t, o in times]
    print(f"| {task} | {shots} | {dtype} | {count} | {batch} | {their_median:.2f} | {our_median:.2f} "
          f"| {statistics.median(ratios):.2f} ({min(ratios):.2f} – {max(ratios):.2f}) | {worst:.1e} |", flush=True)


def main():
    parser = parser_of("eval", __doc__)
    parser.add_argument("--tasks", default="hellaswag,arc_easy,piqa")
    parser.add_argument("--shots", default="0,5")
    parser.add_argument("--items", type=int, default=48, help="of a task without examples; a quarter of it with examples")
    parser.add_argument("--dtype", default="fp32")
    parser.add_argument("--batches", default="1,2,4,8,16")
    args = parser.parse_args()
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    print(f"{args.threads} threads, {args.rounds} rounds\n")
    print("| task | examples | type | items | their batch | lm_eval s | megalith s | ratio (min – max) | same |\n|---|--:|---|--:|--:|--:|--:|--:|--:|")
    for dtype in args.dtype.split(","):
        folder = model_folder(args, dtype, word_tokenizer, 1.0)
        theirs = Theirs(args, folder, dtype)
        for task in args.tasks.split(","):
            for shots in map(int, args.shots.split(",")):
                compare(args, theirs, folder, task, shots, dtype)


if __name__ == "__main__":
    main()
