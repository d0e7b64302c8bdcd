#!/usr/bin/env python3
"""Goldens of what only Megatron-LM's main branch has: fill-in-the-middle and the step batch size schedule.

    python tools/golden/make_head_goldens.py MEGATRON tests

MEGATRON is a checkout of Megatron-LM at commit d98e8a64 (2026-08-22), of which two files are loaded by themselves. Made with
megatron-core 0.16.1, numpy 2.4.6, torch 2.15.0, transformers and tokenizers as named in fim.json. Writes
  data/goldens/fim/tokenizer.json   a byte-level BPE of 300 merges with the tokens of --fim-*
  data/goldens/fim/fim.json         cases: options, ids of a sample, the draws in their order, ids after the permutation.
                                    A draw is [probability, 0 or 1], or [largest, first, second] of two whole numbers
  config/goldens/batch_schedule.txt SCHEDULE|SEQ_LENGTH or 0|error, or the levels FROM:BATCH ...|batches after 0, 1, 7, 99,
                                    100, 101, 1000, 123456789 samples
"""
import importlib.util, json, os, sys, warnings

os.environ["CUDA_VISIBLE_DEVICES"] = ""
warnings.filterwarnings("ignore")
import numpy
import tokenizers
import transformers

SPECIAL = ["<|endoftext|>", "<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>"]
CORPUS = ["def add(a, b):\n    return a + b\n", "class Käse:\n    preis = '3 €'  # ☃ naïve 日本語\n",
          "for i in range(10):\n    print(i, 'x' * i)\n", "import os, sys\nif __name__ == '__main__':\n    sys.exit(0)\n"]


def load(root, path):
    spec = importlib.util.spec_from_file_location("loaded_" + os.path.basename(path)[:-3], os.path.join(root, path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_tokenizer(path):
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=len(SPECIAL) + 256 + 300, special_tokens=SPECIAL, show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(CORPUS * 8, trainer)
    tokenizer.save(path)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_file=path, eos_token=SPECIAL[0], additional_special_tokens=SPECIAL[1:], clean_up_tokenization_spaces=False)


class MegatronsTokenizer:
    """What GPTFIMDataset calls, as HuggingFaceTokenizer of megatron/core/tokenizers/text/libraries does it."""

    def __init__(self, hf):
        self.hf = hf
        self._tokenizer = self

    def tokens_to_ids(self, tokens):
        return self.hf.convert_tokens_to_ids(tokens)

    def text_to_ids(self, text):
        return self.hf.convert_tokens_to_ids(self.hf.tokenize(text))

    def ids_to_text(self, ids, remove_special_tokens):
        assert remove_special_tokens
        tokens = self.hf.convert_ids_to_tokens([int(i) for i in ids])
        return self.hf.convert_tokens_to_string([t for t in tokens if t not in self.hf.all_special_tokens])


class Recorder:
    """A RandomState that keeps what it drew."""

    def __init__(self, seed):
        self.rng, self.draws = numpy.random.RandomState(seed), []

    def binomial(self, n, p):
        self.draws.append([p, int(self.rng.binomial(n, p))])
        return self.draws[-1][1]

    def randint(self, low, high, size):
        drawn = self.rng.randint(low=low, high=high, size=size)
        self.draws.append([int(high - 1)] + [int(x) for x in drawn])
        return drawn


class OneDocument:
    def __init__(self, ids):
        self.ids = numpy.array(ids)

    def get(self, index, offset, length):
        return self.ids[offset:offset + length]


def run_case(module, tokenizer, ids, seed, options):
    dataset = module.GPTFIMDataset.__new__(module.GPTFIMDataset)
    token = lambda text: tokenizer.tokens_to_ids([text])[0]
    dataset.config = type("Config", (), {"tokenizer": tokenizer})()
    dataset.np_rng = recorder = Recorder(seed)
    dataset.fim_rate, dataset.fim_spm_rate = options.get("rate", 0.5), options.get("spm_rate", 0.5)
    dataset.fragment_fim_rate, dataset.no_fim_prefix = options.get("fragment_rate"), options.get("no_prefix")
    dataset.fim_split_sample = token(options["split_sample"]) if "split_sample" in options else None
    dataset.eod_tok_id, dataset.prefix_tok_id, dataset.middle_tok_id, dataset.suffix_tok_id, dataset.pad_tok_id = map(token, SPECIAL)
    dataset.shuffle_index, dataset.document_index = [0], [0]
    dataset.sample_index, dataset.dataset = [(0, 0), (0, len(ids) - 1)], OneDocument(ids)
    out, _, _ = dataset._query_document_sample_shuffle_indices(0)
    return {"options": options, "ids": ids, "draws": recorder.draws, "permuted": out.tolist()}


def fim_cases(module, tokenizer):
    eod = tokenizer.tokens_to_ids([SPECIAL[0]])
    texts = [tokenizer.text_to_ids(text) for text in CORPUS]
    joined = [i for ids in texts for i in ids + eod]
    samples = [texts[0], texts[1], texts[1][5:-3], joined, joined[3:90], eod + joined[:70] + eod + eod + texts[2], joined[:-1]]
    options = [{}, {"rate": 1.0, "spm_rate": 0.0}, {"rate": 1.0, "spm_rate": 1.0}, {"rate": 1.0, "no_prefix": "def"},
               {"rate": 0.9, "fragment_rate": 0.7, "split_sample": ":"}, {"rate": 1.0, "fragment_rate": 1.0, "split_sample": "i"}]
    return [run_case(module, tokenizer, ids, 100 * i + j, case)
            for i, ids in enumerate(samples) for j, case in enumerate(options)]


SCHEDULES = ["0:768 250B:1536 500B:3072 750B:6144", "0:4, 100:8", "100:8 0:4", "0:4 2.5K:8 1m:1.2k", "0:4 1T:16", "0:32 100:8",
             "5:4", "0:4 3:8 5:16", "0:4 0:8", "0:0", "0:4 100", "", "x:4", "0:4 -5:8"]


def schedule_line(module, schedule, seq_length):
    try:
        calculator = module.StepBatchsizeNumMicroBatchesCalculator(1, 1, False, 1, schedule, seq_length or None)
    except (AssertionError, ValueError):
        return f"{schedule}|{seq_length}|error"
    levels = " ".join(f"{start}:{batch}" for start, batch in calculator.schedule)
    batches = " ".join(str(calculator._get_batch_size_for_samples(n)) for n in (0, 1, 7, 99, 100, 101, 1000, 123456789))
    return f"{schedule}|{seq_length}|{levels}|{batches}"


def main():
    root, tests = sys.argv[1:]
    os.makedirs(os.path.join(tests, "data/goldens/fim"), exist_ok=True)
    os.makedirs(os.path.join(tests, "config/goldens"), exist_ok=True)
    tokenizer = MegatronsTokenizer(make_tokenizer(os.path.join(tests, "data/goldens/fim/tokenizer.json")))
    fim = load(root, "megatron/training/datasets/fim_dataset.py")
    golden = {"made by": "tools/golden/make_head_goldens.py with Megatron-LM d98e8a64, "
                         f"transformers {transformers.__version__}, tokenizers {tokenizers.__version__}, numpy {numpy.__version__}",
              "cases": fim_cases(fim, tokenizer)}
    with open(os.path.join(tests, "data/goldens/fim/fim.json"), "w") as out:
        lines = ",\n".join(json.dumps(case) for case in golden["cases"])
        out.write(f'{{"made by": {json.dumps(golden["made by"])},\n"cases": [\n{lines}\n]}}\n')
    calculator = load(root, "megatron/core/num_microbatches_calculator.py")
    with open(os.path.join(tests, "config/goldens/batch_schedule.txt"), "w") as out:
        print("# made by tools/golden/make_head_goldens.py with Megatron-LM d98e8a64", file=out)
        for schedule in SCHEDULES:
            for seq_length in (0, 4, 4096):
                print(schedule_line(calculator, schedule, seq_length), file=out)


main()
