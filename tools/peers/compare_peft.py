#!/usr/bin/env python3
"""Loads what megalith-finetune wrote with peft and transformers, and holds their figures against ours.

    BUILD=build/release python tools/peers/compare_peft.py [FAMILY …]

For each family a small random model is kept as a checkpoint of ours and tuned from there on several layouts: LoRA on one
rank, over tensor and pipeline ranks, and rank-stabilised on a few layers; a prefix; all parameters. peft's
PeftModel.from_pretrained() takes each adapter over the folder that megalith-convert --to hf makes of that checkpoint,
transformers takes the folders of whole models. Compared are, in fp32,
  - the log probability of each held-out answer, as megalith-finetune --no-do-train evaluates it: a mean over few tokens of
    log softmax of the logits, within 1e-6 (fp32's rounding over four layers), and other than the base model's,
  - the greedy tokens of megalith-generate --adapter, and of the merged folder, all equal.
Needs torch, transformers and peft.
"""
import json, os, sys, tempfile, warnings

warnings.filterwarnings("ignore")
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", OMP_WAIT_POLICY="passive")
import torch  # noqa: E402
import transformers  # noqa: E402
from peft import PeftModel, __version__ as peft_version  # noqa: E402

import programs  # noqa: E402
from programs import convert, make_model, say  # noqa: E402

transformers.utils.logging.disable_progress_bar()
SIZES = dict(num_hidden_layers=4, hidden_size=32, intermediate_size=64, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
             initializer_range=0.2)
MODELS = {  # transformers' class and its configuration
    "gpt2": ("GPT2", dict(n_layer=4, n_embd=32, n_head=4, n_positions=64, initializer_range=0.2, attn_pdrop=0.0, resid_pdrop=0.0, embd_pdrop=0.0)),
    "llama": ("Llama", dict(SIZES, tie_word_embeddings=False)),
    "qwen2": ("Qwen2", dict(SIZES, tie_word_embeddings=True)),
}
FEW = {"gpt2": "c_attn", "llama": "q_proj,v_proj", "qwen2": "q_proj,v_proj"}
PAIRS = [("a", " 1"), ("def f(x):", " return"), ("the harbour's", " books and the rest"), ("for i in", " range(10)")]
TOLERANCE, NEW = 1e-6, 12


def tune(work, output, *words):
    done = programs.run("megalith-finetune", "--model", f"{work}/ours", "--data", f"{work}/data", "--output-dir", output, "--lr", "2e-2", "--max-steps", 6,
                        "--micro-batch-size", 2, "--global-batch-size", 4, "--threads", 1, "--eval-strategy", "no", *words)
    if done.returncode:
        raise SystemExit(f"megalith-finetune {' '.join(map(str, words))}: {done.stdout}{done.stderr}")


def our_losses(work, model, *adapter):
    """Each held-out answer alone, without training."""
    losses = []
    for i, (prompt, answer) in enumerate(PAIRS):
        with open(f"{work}/one.json", "w") as file:
            file.write(json.dumps(dict(src=prompt, tgt=answer)) + "\n")
        log = f"{work}/log{i}.jsonl"
        if os.path.exists(log):
            os.remove(log)
        done = programs.run("megalith-finetune", "--model", model, "--data", f"{work}/data", "--eval-data", f"{work}/one.json", "--no-do-train",
                            "--output-dir", f"{work}/none", "--overwrite-output-dir", "--threads", 1, "--micro-batch-size", 1, "--log-json", log, *adapter)
        if done.returncode:
            raise SystemExit(f"evaluating {model}: {done.stdout}{done.stderr}")
        losses += [line["loss"] for line in map(json.loads, open(log)) if line["type"] == "valid"][-1:]
    return losses


def their_losses(model, tokenizer, eos):
    losses = []
    for prompt, answer in PAIRS:
        question, reply = tokenizer(prompt)["input_ids"], tokenizer(answer)["input_ids"] + [eos]
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([question + reply])).logits[0].double()
        chosen = torch.log_softmax(logits[len(question) - 1:-1], -1)[range(len(reply)), reply]
        losses.append(-chosen.mean().item())
    return losses


def our_tokens(*model):
    done = programs.run("megalith-generate", "--model", *model, "--max-new-tokens", NEW, "--ignore-eos", "--json", "--threads", 1,
                        *(word for prompt, _ in PAIRS for word in ("--prompt", prompt)))
    if done.returncode:
        raise SystemExit(f"megalith-generate: {done.stderr}")
    return [json.loads(line)["tokens"] for line in done.stdout.splitlines()]


def their_tokens(model, tokenizer):
    out = []
    for prompt, _ in PAIRS:
        ids = tokenizer(prompt)["input_ids"]
        begin = len(ids)
        for _ in range(NEW):
            with torch.no_grad():
                ids = ids + [int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax())]
        out.append(ids[begin:])
    return out


def apart(some, others):
    return max(abs(a - b) / max(1, abs(b)) for a, b in zip(some, others))


def compare(what, model, tokenizer, eos, base, losses, *tokens):
    worst, learned = apart(losses, their_losses(model, tokenizer, eos)), apart(losses, base)
    wanted = their_tokens(model, tokenizer)
    same = all(found == wanted for found in tokens)
    say(worst <= TOLERANCE and same and learned > 1e-2,
        f"{what}: log probabilities differ by {worst:.1e} at most (from the base model's by {learned:.1e}), greedy tokens {'equal' if same else 'differ'}")


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def prepare(family, work):
    """A model as a checkpoint of ours, that as a Hugging Face folder, and records."""
    make_model(MODELS[family], "float32", f"{work}/made", 3)
    convert(f"{work}/made", "--to", "megalith", "--output", f"{work}/ours")
    convert(f"{work}/ours", "--to", "hf", "--output", f"{work}/base")
    os.mkdir(f"{work}/data")
    with open(f"{work}/data/train.json", "w") as file:
        for i in range(24):
            file.write(json.dumps(dict(src="abc"[i % 3] * (1 + i % 4) + " is", tgt=f" {1 + i % 3}")) + "\n")


def check(family, work):
    prepare(family, work)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=f"{work}/base/tokenizer.json")
    eos = tokenizer.convert_tokens_to_ids("<|endoftext|>")
    base = their_losses(load(f"{work}/base"), tokenizer, eos)
    layout = ["--nproc", 4, "--tensor-model-parallel-size", 2, "--pipeline-model-parallel-size", 2]
    methods = {
        "lora": ["--lora", "--lora-rank", 4, "--merge-weights"],
        "lora-tp2-pp2": ["--lora", "--lora-rank", 4, "--merge-weights", *layout],
        "rslora": ["--lora", "--lora-rank", 2, "--use-rslora", "--target-modules", FEW[family], "--merge-weights"],
        "prefix": ["--prefix-tuning", "--num-prefix-tokens", 5],
    }
    for method, words in methods.items():
        adapter = f"{work}/{method}"
        tune(work, adapter, *words)
        model = PeftModel.from_pretrained(load(f"{work}/base"), adapter).eval()
        more = [] if method == "prefix" else [our_tokens(f"{adapter}/merged")]
        how = ["--adapter", adapter] + (["--prefix-tuning", "--num-prefix-tokens", 5] if method == "prefix" else [])
        compare(f"{family} {method}: peft", model, tokenizer, eos, base, our_losses(work, f"{work}/ours", *how), our_tokens(f"{work}/ours", "--adapter", adapter), *more)
        if more:
            compare(f"{family} {method}: transformers, merged", load(f"{adapter}/merged"), tokenizer, eos, base, our_losses(work, f"{adapter}/merged"), *more)
    tune(work, f"{work}/full", *layout)
    compare(f"{family} full: transformers", load(f"{work}/full/hf"), tokenizer, eos, base, our_losses(work, f"{work}/full"), our_tokens(f"{work}/full"))


def main():
    print(f"transformers {transformers.__version__}, peft {peft_version}")
    torch.set_num_threads(1)
    for family in sys.argv[1:] or MODELS:
        with tempfile.TemporaryDirectory() as work:
            check(family, work)
    return programs.finish()


if __name__ == "__main__":
    sys.exit(main())
