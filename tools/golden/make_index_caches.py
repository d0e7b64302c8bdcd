#!/usr/bin/env python3
"""Goldens of tests/data/cache: the files that Megatron's datasets write to their cache, and the words of the jobs.

    cd tests/data/goldens && MEGATRON_LM=DIR ../../../tools/golden/make_index_caches.py ../cache/goldens/caches.txt

Made with megatron-core 0.16.1, and for --megatron-core head with the megatron/core of Megatron-LM d98e8a64 in PYTHONPATH
(with the helpers_cpp library of the wheel); numpy 2.4.6, torch 2.15.0 (CPU), Python 3.11. MEGATRON_LM is a checkout of
Megatron-LM of the same version (core_v0.16.1, d98e8a64); the jobs with --fim-data use its fim_dataset.py. A run writes the lines
of the version that it imports and keeps those of the other one. A line 'case VERSION WORDS' is followed by a line
'file NAME SHA256' for each file. The tokenizer's files are not read: only the class of the tokenizer's library is replaced, not
what makes the names.
"""
import argparse, hashlib, importlib.util, logging, os, pathlib, shlex, sys, tempfile, types, warnings

os.environ["CUDA_VISIBLE_DEVICES"] = ""
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
import megatron.core.tokenizers.text.text_tokenizer as text_tokenizer
import torch
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from megatron.core.datasets.utils import get_blend_from_list
from megatron.core.num_microbatches_calculator import (
    destroy_num_microbatches_calculator, get_current_global_batch_size, init_num_microbatches_calculator, update_num_microbatches)

try:
    from megatron.core.tokenizers.utils.build_tokenizer import build_tokenizer
    VERSION = "head"
except ImportError:
    from megatron.core.tokenizers.text.utils.build_tokenizer import build_tokenizer
    VERSION = "0.16.1"

NULL = "--tokenizer-type NullTokenizer --vocab-size 600"
TEN = " ".join(f"{weight} {prefix}" for weight, prefix in zip(
    (0.1, 0.7, 0.3, 1.1, 0.013, 2.3, 0.9, 1e-5, 0.37, 0.21), ("mixed", "long") * 5))
CASES = [
    f"--data-path mixed --seq-length 16 --split 900,50,50 --train-iters 30 --global-batch-size 8 --eval-iters 2 --eval-interval 10 {NULL}",
    f"--data-path 0.3 mixed 0.5 long 0.2 mixed --seed 11 --seq-length 16 --split 8,1,1 --train-samples 333 --global-batch-size 7 "
    f"--eval-iters 1 --eval-interval 100 {NULL}",
    f"--data-path 1.0 long --seq-length 32 --split 8,1,1 --train-iters 9 --global-batch-size 4 --eval-iters 0 --eval-interval 5 {NULL}",
    f"--data-path mixed long wide --seq-length 16 --split 1,0,1 --train-iters 5 --global-batch-size 8 --eval-iters 1 --eval-interval 5 {NULL}",
    f"--data-path mixed long --seq-length 16 --split 8,1,1 --train-iters 5 --global-batch-size 8 --eval-iters 1 --eval-interval 5 "
    f"--full-validation {NULL}",
    f"--train-data-path 2 mixed 3 long --valid-data-path wide --test-data-path 1 long --seq-length 16 --train-iters 20 "
    f"--global-batch-size 8 --eval-iters 1 --eval-interval 5 {NULL}",
    f"--data-path 0.4 mixed 0.6 long --seq-length 16 --split 8,1,1 --train-iters 20 --global-batch-size 8 --eval-iters 1 --eval-interval 5 "
    f"--fim-data {NULL}",
    f"--train-data-path mixed --valid-data-path wide long --seq-length 16 --train-iters 20 --global-batch-size 8 --eval-iters 1 "
    f"--eval-interval 5 --full-validation --multiple-validation-sets {NULL}",
    f"--train-data-path mixed --valid-data-path wide long --test-data-path mixed --seq-length 16 --train-iters 20 --global-batch-size 8 "
    f"--eval-iters 2 --eval-interval 5 --multiple-validation-sets {NULL}",
    f"--train-data-path mixed --valid-data-path 0.3 wide 0.7 long --seq-length 16 --train-iters 20 --global-batch-size 8 --eval-iters 1 "
    f"--eval-interval 5 --multiple-validation-sets {NULL}",
    f"--data-path mixed --seq-length 16 --split 8,1,1 --train-samples 500 --global-batch-size 16 --rampup-batch-size 4 4 200 "
    f"--eval-iters 2 --eval-interval 7 {NULL}",
    f"--data-path {TEN} --seed 14 --seq-length 16 --split 8,2 --train-iters 50 --global-batch-size 10 --eval-iters 3 --eval-interval 25 "
    f"--mid-level-dataset-surplus 0.25 {NULL}",
] + [f"--data-path mixed --seq-length 64 --split 1,0,0 --train-iters 1 --global-batch-size 1 --eval-iters 0 --eval-interval 1 {words}"
     for words in (
    "--tokenizer-type GPT2BPETokenizer --vocab-file vocab.json --merge-file merges.txt",
    "--tokenizer-type HuggingFaceTokenizer --tokenizer-model \"models/d'été \U0001F600\" --trust-remote-code",
    "--tokenizer-type HuggingFaceTokenizer --tokenizer-model m --tokenizer-special-tokens <a> \"it's\"",
    "--tokenizer-type Llama2Tokenizer --tokenizer-model tokenizer.model",
    "--tokenizer-type GPTSentencePieceTokenizer --tokenizer-model t.model --tokenizer-sentencepiece-legacy",
    "--tokenizer-type TikTokenizer --tokenizer-model t.json --tiktoken-pattern v2 --vocab-size 131072 --tiktoken-num-special-tokens 100",
)] + [f"--data-path mixed --seq-length 64 --split 1,0,0 --train-iters 1 --global-batch-size 1 --eval-iters 0 --eval-interval 1 {words}"
      for words in ((
    "--tokenizer-type HuggingFaceTokenizer --tokenizer-model m --tokenizer-hf-no-use-fast --tokenizer-hf-no-include-special-tokens "
    "--chat-template t",
    "--tokenizer-type NullTokenizer --vocab-size 600 --null-tokenizer-eod-id 5 --null-tokenizer-pad-id 7",
    "--tokenizer-type Llama2Tokenizer --tokenizer-model t.model --no-tokenizer-sentencepiece-ignore-extra-whitespaces",
) if VERSION == "head" else (
    "--tokenizer-type HuggingFaceTokenizer --tokenizer-model m --tokenizer-hf-use-fast --tokenizer-hf-include-special-tokens",
))] + ([
    f"--data-path mixed --seq-length 16 --split 8,1,1 --train-samples 500 --step-batch-size-schedule \"0:4 1K:16\" --eval-iters 2 "
    f"--eval-global-batch-size 6 --eval-interval 7 {NULL}",
    f"--data-path mixed --seq-length 16 --split 8,1,1 --train-iters 30 --global-batch-size 8 --eval-iters 2 --eval-interval 7 "
    f"--start-eval-at-iter 15 {NULL}",
    f"--data-path mixed --seq-length 16 --split 8,1,1 --train-iters 30 --global-batch-size 8 --eval-iters 2 --eval-interval 7 --skip-train "
    f"--eval-global-batch-size 5 {NULL}",
] if VERSION == "head" else [])


def parsed(words):
    """The job's options as Megatron-LM's parser gives them, those of both versions."""
    parser = argparse.ArgumentParser()
    for name in ("data-path", "train-data-path", "valid-data-path", "test-data-path", "tokenizer-special-tokens"):
        parser.add_argument(f"--{name}", nargs="+")
    parser.add_argument("--rampup-batch-size", nargs=3)
    for name in ("seq-length", "train-iters", "train-samples", "global-batch-size", "eval-iters", "eval-interval", "vocab-size",
                 "null-tokenizer-eod-id", "eval-global-batch-size", "start-eval-at-iter"):
        parser.add_argument(f"--{name}", type=int)
    for name, default in (("seed", 1234), ("tiktoken-num-special-tokens", 1000), ("null-tokenizer-pad-id", -1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--mid-level-dataset-surplus", type=float, default=0.005)
    for name in ("split", "tokenizer-type", "tokenizer-model", "vocab-file", "merge-file", "tiktoken-pattern", "chat-template",
                 "step-batch-size-schedule"):
        parser.add_argument(f"--{name}")
    for name in ("full-validation", "multiple-validation-sets", "fim-data", "skip-train", "trust-remote-code", "tokenizer-sentencepiece-legacy", "tokenizer-hf-use-fast",
                 "tokenizer-hf-include-special-tokens", "tokenizer-hf-no-use-fast", "tokenizer-hf-no-include-special-tokens", "use-gigatoken"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--no-tokenizer-sentencepiece-ignore-extra-whitespaces", action="store_false",
                        dest="tokenizer_sentencepiece_ignore_extra_whitespaces")
    args = parser.parse_args(shlex.split(words))
    args.special_tokens = args.tokenizer_special_tokens
    args.tokenizer_metadata = args.metadata_path = None
    args.pad_vocab_size = False
    return args


def dataset_class(args):
    """GPTDataset, or the class of --fim-data, whose tokens are looked up in the tokenizer and are no part of a name."""
    if not args.fim_data:
        return GPTDataset, GPTDatasetConfig, {}
    path = pathlib.Path(os.environ["MEGATRON_LM"]) / "megatron/training/datasets/fim_dataset.py"
    spec = importlib.util.spec_from_file_location("fim_dataset", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tokens = dict.fromkeys(("prefix", "middle", "suffix", "pad", "eod"), "t")
    return module.GPTFIMDataset, module.GPTFIMDatasetConfig, {"fim_rate": 0.5, "fim_spm_rate": 0.5, "fim_extra_tokens": tokens}


def count_steps(args):
    """As update_train_iters() of megatron/training/training.py."""
    if args.train_iters:
        return
    batches = {"step_batch_size_schedule": args.step_batch_size_schedule, "seq_length": args.seq_length} if VERSION == "head" else {}
    init_num_microbatches_calculator(0, args.rampup_batch_size, args.global_batch_size, 1, 1, False, **batches)
    consumed = steps = 0
    if args.step_batch_size_schedule:
        while consumed < args.train_samples:
            update_num_microbatches(consumed, consistency_check=False)
            consumed += get_current_global_batch_size()
            steps += 1
    elif args.rampup_batch_size and VERSION != "head":
        while consumed <= int(args.rampup_batch_size[2]) and consumed <= args.train_samples:
            update_num_microbatches(consumed, consistency_check=False)
            consumed += get_current_global_batch_size()
            steps += 1
        steps += max(0, args.train_samples - consumed) // args.global_batch_size
    else:
        steps = args.train_samples // args.global_batch_size
    destroy_num_microbatches_calculator()
    args.train_iters = steps


def numbers_of_samples(args):
    """As get_train_valid_test_num_samples() of megatron/training/training.py of the head."""
    batch = args.eval_global_batch_size or args.global_batch_size
    points = args.train_iters // args.eval_interval + 1
    if args.start_eval_at_iter is not None:
        points = max(0, points - args.start_eval_at_iter // args.eval_interval)
    evaluation = (1 if args.skip_train else points) * args.eval_iters * batch
    return [args.train_samples or args.train_iters * args.global_batch_size, None if args.full_validation else evaluation,
            args.eval_iters * batch]


def write(args, folder):
    """As pretrain_gpt.py builds its datasets."""
    library = types.SimpleNamespace(vocab_size=600, eod=599, pad_id=-1, eos_id=599, tokens_to_ids=lambda tokens: [0] * len(tokens))
    text_tokenizer.MegatronTokenizerText._restore_model = lambda self, **kwargs: library
    own = [args.train_data_path, args.valid_data_path, args.test_data_path]
    dataset, config_class, more = dataset_class(args)
    config = config_class(
        random_seed=args.seed, sequence_length=args.seq_length, blend=get_blend_from_list(args.data_path),
        blend_per_split=[get_blend_from_list(path) for path in own] if any(own) else None, split=args.split,
        full_validation=args.full_validation, multiple_validation_sets=args.multiple_validation_sets, path_to_cache=folder,
        tokenizer=build_tokenizer(args), reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False,
        create_attention_mask=False, mid_level_dataset_surplus=args.mid_level_dataset_surplus, **more)
    count_steps(args)
    return BlendedMegatronDatasetBuilder(dataset, numbers_of_samples(args), lambda: True, config).build()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as scratch:
        torch.distributed.init_process_group("gloo", init_method=f"file://{scratch}/store", rank=0, world_size=1)
        lines, kept = [], True
        for line in out.read_text().splitlines() if out.exists() else []:
            kept = line.split()[1] != VERSION if line.startswith("case") else kept
            lines += [line] if kept else []
        for number, words in enumerate(CASES):
            folder = pathlib.Path(scratch) / str(number)
            write(parsed(words), str(folder))
            lines.append(f"case {VERSION} {words}")
            lines += [f"file {file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in sorted(folder.iterdir())]
        out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
