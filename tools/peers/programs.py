"""What the comparisons of this folder share that run Megalith's programs on models: where these are (BUILD), what they
are given, and how many checks failed."""
import json, os, shutil, subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
TOKENIZER = os.path.join(HERE, "..", "..", "tests", "text", "goldens", "trained", "tokenizer.json")
BIN = os.path.abspath(os.path.join(os.environ.get("BUILD", "build/release"), "bin"))
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
failed = 0


def say(ok, what):
    global failed
    failed += not ok
    print("ok  " if ok else "FAIL", what, flush=True)


def run(program, *words, cwd=None):
    return subprocess.run([os.path.join(BIN, program), *map(str, words)], capture_output=True, text=True, cwd=cwd)


def convert(*words):
    done = run("megalith-convert", *words)
    if done.returncode:
        raise SystemExit(f"megalith-convert {' '.join(map(str, words))}: {done.stderr}")


def make_model(model, dtype, folder, seed):
    """A random model, with a tokenizer, in `folder`; `model`: transformers' class and its configuration."""
    import torch
    import transformers
    family, settings = model
    vocabulary = len(json.load(open(TOKENIZER))["model"]["vocab"])
    torch.manual_seed(seed)
    config = getattr(transformers, family + "Config")(vocab_size=vocabulary, bos_token_id=None, eos_token_id=None, **settings)
    made = getattr(transformers, family + ("LMHeadModel" if family == "GPT2" else "ForCausalLM"))(config)
    with torch.no_grad():  # biases and norms too must be found in their places
        for parameter in made.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    made.to(getattr(torch, dtype)).save_pretrained(folder)
    shutil.copy(TOKENIZER, folder)


def finish():
    """The exit status, after printing how many checks failed."""
    print(f"{failed} failed")
    return failed > 0
