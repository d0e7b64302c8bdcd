#!/usr/bin/env python3
"""Compares `megalith-tokenizer encode` with the reference on the vocabularies of llama.cpp's tests and on the expressions of many families,
and prints for each whether all ids are equal. Fails if some are not.

  tools/peers/compare_vocabularies.py [--package FILE] [--strings N] [--seed S] [--only NAME ...]      (in .venv; BUILD names the build folder)

Vocabularies: vendor/llama.cpp/models/ggml-vocab-*.gguf of llama-cpp-python's source package, which pip downloads, or of FILE. Each is written
as the tokenizer.json, or the SentencePiece model, that it was made from. Patterns: GPT-2's vocabulary with each expression of
tools/golden/make_patterns.py. The texts are llama.cpp's own and N random ones; the judges are Hugging Face tokenizers and sentencepiece.
"as llama.cpp" counts llama.cpp's own lists of ids that are those of the judge.
"""
import argparse
import base64
import glob
import json
import os
import random
import struct
import subprocess
import sys
import tarfile
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tools", "golden"), os.path.join(ROOT, "tools", "peers")]
import compare_tokenizers as random_texts  # noqa: E402
import make_patterns  # noqa: E402
import make_tokenizers as forms  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

OURS = os.path.abspath(os.path.join(os.environ.get("BUILD", "build/release"), "bin", "megalith-tokenizer"))
FOLDER = "/vendor/llama.cpp/models/"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # of GGUF and of SentencePiece


def fetch(package, folder):
    """Unpacks the vocabularies, their texts and ids into the folder."""
    if not package:
        from compare_templates import PACKAGE
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", folder, PACKAGE], check=True)
        package = glob.glob(os.path.join(folder, "*.tar.gz"))[0]
    with tarfile.open(package) as archive:
        for member in archive:
            name = os.path.basename(member.name)
            if FOLDER in member.name and name.startswith("ggml-vocab-"):
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(archive.extractfile(member).read())


class Gguf:
    """The key/value pairs of a GGUF file that are about its tokenizer, without "tokenizer.ggml."."""

    NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes, self.at = file.read(), 4
        _version, _tensors, pairs = self.number("I"), self.number("Q"), self.number("Q")
        self.values = {}
        for _ in range(pairs):
            key = self.text()
            self.values[key.removeprefix("tokenizer.ggml.")] = self.value(self.number("I"))

    def number(self, kind):
        (value,) = struct.unpack_from("<" + kind, self.bytes, self.at)
        self.at += struct.calcsize("<" + kind)
        return value

    def text(self):
        size = self.number("Q")
        self.at += size
        return self.bytes[self.at - size:self.at].decode("utf-8", "surrogateescape")

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            of, count = self.number("I"), self.number("Q")
            return [self.value(of) for _ in range(count)]
        return self.number(self.NUMBERS[kind])

    def __getitem__(self, key):
        return self.values[key]


def added(vocabulary):
    return [{"id": i, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": kind == CONTROL}
            for i, (text, kind) in enumerate(zip(vocabulary["tokens"], vocabulary["token_type"])) if kind in (CONTROL, USER_DEFINED)]


def tokenizer_json(vocabulary, model, **stages):
    root = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added(vocabulary), "normalizer": None, "pre_tokenizer": None, "post_processor": None,
            "decoder": None, "model": model}
    return {**root, **stages}


def ids_of(vocabulary):
    return {text: i for i, text in enumerate(vocabulary["tokens"])}


def bpe(vocabulary, **settings):
    merges = [list(merge.partition(" ")[::2]) if not merge.startswith(" ") else [" ", merge[2:]] for merge in vocabulary["merges"]]
    return {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
            "ignore_merges": False, "vocab": ids_of(vocabulary), "merges": merges, **settings}


def byte_level(use_regex):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def splits(*expressions):
    return [make_patterns.split_stage(expression) for expression in expressions]


DIGITS = {"type": "Digits", "individual_digits": True}
BYTES = {  # the pre-tokenizers of byte-level vocabularies, by the name of their file
    "aquila": [byte_level(True)], "gpt-2": [byte_level(True)], "gpt-neox": [byte_level(True)], "mpt": [byte_level(True)],
    "starcoder": [DIGITS, byte_level(True)], "refact": [DIGITS, byte_level(True)], "command-r": [DIGITS, byte_level(True)],
    "falcon": [{"type": "Punctuation", "behavior": "Contiguous"}, byte_level(True), {"type": "Digits", "individual_digits": False}, *splits("[0-9][0-9][0-9]")],
    "llama-bpe": [*splits(forms.LLAMA3), byte_level(False)], "qwen2": [*splits(forms.QWEN2), byte_level(False)], "qwen35": [*splits(forms.QWEN35), byte_level(False)],
    "deepseek-llm": [*splits(*forms.DEEPSEEK_LLM), DIGITS, byte_level(False)], "deepseek-coder": [*splits(*forms.DEEPSEEK_CODER), DIGITS, byte_level(False)],
}
NFC = {"gpt-neox", "mpt", "command-r", "qwen2", "qwen35"}


def bytes_json(name, vocabulary):
    return tokenizer_json(vocabulary, bpe(vocabulary, ignore_merges=name == "llama-bpe"), normalizer={"type": "NFC"} if name in NFC else None,
                          pre_tokenizer=make_patterns.sequence(*BYTES[name]), decoder=byte_level(True))


def gemma_json(_name, vocabulary):
    return tokenizer_json(vocabulary, bpe(vocabulary, unk_token="<unk>", fuse_unk=True, byte_fallback=True),
                          normalizer={"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
                          pre_tokenizer=make_patterns.split_stage(" ", "MergedWithPrevious", kind="String"))


def bert_json(_name, vocabulary):
    """GGUF has a mark before the tokens that begin a word, in place of one before the others."""
    def text(token, kind):
        return token if kind == CONTROL else token[1:] if token.startswith("\u2581") else "##" + token
    vocabulary.values["tokens"] = [text(*pair) for pair in zip(vocabulary["tokens"], vocabulary["token_type"])]
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": ids_of(vocabulary)}
    return tokenizer_json(vocabulary, model, pre_tokenizer={"type": "BertPreTokenizer"},
                          normalizer={"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True})


def sentencepiece_model(vocabulary):
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto()
    unknown = vocabulary["token_type"].index(UNKNOWN)
    for i, (text, score, kind) in enumerate(zip(vocabulary["tokens"], vocabulary["scores"], vocabulary["token_type"])):
        kind = UNUSED if kind == UNKNOWN and i != unknown else kind  # phi-3 calls its unused tokens unknown
        model.pieces.add(piece=text, score=score, type=kind)
    is_unigram = vocabulary["model"] == "t5"
    model.trainer_spec.model_type = 1 if is_unigram else 2
    model.trainer_spec.byte_fallback = BYTE in vocabulary["token_type"]
    model.trainer_spec.unk_id = unknown
    rules = model.normalizer_spec
    rules.add_dummy_prefix, rules.escape_whitespaces = True, True
    rules.remove_extra_whitespaces = is_unigram and bool(vocabulary.values.get("remove_extra_whitespaces"))
    rules.precompiled_charsmap = bytes(b & 0xFF for b in vocabulary.values.get("precompiled_charsmap", []))
    return model.SerializeToString()


def encode(kind, path, texts):
    """Our ids of the texts, or what we say."""
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    run = subprocess.run([OURS, "encode", "--json", "--tokenizer-type", kind, "--tokenizer-model", path], input=lines, capture_output=True, text=True)
    if run.returncode:
        return run.stderr.strip()
    return [[int(id) for id in line.split()] for line in run.stdout.split("\n")[:-1]]


def vocabulary_case(path, folder):
    """The texts of llama.cpp with its ids, and the files and judge of a vocabulary."""
    name = os.path.basename(path)[len("ggml-vocab-"):-len(".gguf")]
    vocabulary = Gguf(path)
    texts, wanted = [], []
    if os.path.exists(path + ".inp"):
        with open(path + ".inp", encoding="utf-8", newline="") as file:
            texts = file.read().split("\n__ggml_vocab_test__\n")
        with open(path + ".out", encoding="utf-8") as file:
            wanted = [[int(id) for id in line.split()] for line in file.read().split("\n")][:len(texts)]
    if vocabulary["model"] in ("llama", "t5"):
        made = os.path.join(folder, name + ".model")
        with open(made, "wb") as file:
            file.write(sentencepiece_model(vocabulary))
        import sentencepiece

        return name, "Llama2Tokenizer", made, sentencepiece.SentencePieceProcessor(model_file=made).encode, texts, wanted
    make = {"gpt2": bytes_json, "gemma4": gemma_json, "bert": bert_json}[vocabulary["model"]]
    return name, *json_case(os.path.join(folder, name), make(name, vocabulary)), texts, wanted


def json_case(folder, root):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "tokenizer.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(root, file, ensure_ascii=False)
    tokenizer = Tokenizer.from_file(path)
    return "HuggingFaceTokenizer", path, lambda texts: [found.ids for found in tokenizer.encode_batch(texts, add_special_tokens=False)]


def pattern_cases(folder):
    vocabulary = Gguf(os.path.join(folder, "ggml-vocab-gpt-2.gguf"))
    expressions = dict.fromkeys(make_patterns.PATTERNS + make_patterns.SLOW + make_patterns.SLOW_CODE_POINTS)  # one is in two lists
    for number, expression in enumerate(expressions):
        root = tokenizer_json(vocabulary, bpe(vocabulary), pre_tokenizer=make_patterns.sequence(*splits(expression), byte_level(False)), decoder=byte_level(True))
        yield f"pattern {number + 1}: {expression[:60]!r}", *json_case(os.path.join(folder, "pattern"), root), [], []


def compare(case, strings, seed):
    """Prints the row of a case, and returns whether all ids are equal."""
    name, kind, path, judge, texts, wanted = case
    rng = random.Random(seed)
    texts = texts + [random_texts.random_text(rng, random_texts.WORDS) for _ in range(strings)]
    theirs, ours = judge(texts), encode(kind, path, texts)
    as_llama = f", {sum(a == b for a, b in zip(theirs, wanted))} of {len(wanted)} as llama.cpp" if wanted else ""
    if isinstance(ours, str):
        print(f"{name}: REFUSED: {ours}", flush=True)
        return False
    different = [i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b]
    print(f"{name}: {len(texts)} texts, {f'{len(different)} DIFFER' if different else 'equal'}{as_llama}", flush=True)
    for i in different[:3]:
        print(f"  {texts[i]!r}: {ours[i][:20]}, wanted {theirs[i][:20]}")
    return not different and len(ours) == len(theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package")
    parser.add_argument("--strings", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fetch(options.package, folder)
        paths = sorted(glob.glob(os.path.join(folder, "ggml-vocab-*.gguf")))
        if len(paths) < 18:
            sys.exit(f"the package has {len(paths)} vocabularies, wanted 18 or more")
        def wanted(name):
            return not options.only or any(part in name for part in options.only)
        cases = [vocabulary_case(path, folder) for path in paths if wanted(path)]
        equal = [compare(case, options.strings, options.seed) for case in cases]
        equal += [compare(case, options.strings, options.seed) for case in pattern_cases(folder) if wanted(case[0])]
    print(f"{sum(equal)} of {len(equal)} equal")
    sys.exit(0 if all(equal) and equal else 1)


if __name__ == "__main__":
    main()
