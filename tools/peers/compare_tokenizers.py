#!/usr/bin/env python3
"""Holds `megalith-tokenizer encode` and `decode` against Hugging Face tokenizers, sentencepiece and tiktoken (as Megatron-LM uses them), and
against Megatron-LM's own classes with --tokenizer-special-tokens.

    BUILD=build/release python tools/peers/compare_tokenizers.py [--strings N] [--seed S] [--giants N] [--every [--codes FIRST LAST]] [--only NAME ...] [-- TOKENIZER ...]

Texts: N random strings of every script, with emoji sequences, stacked marks, controls, long runs, and the tokenizer's own special tokens anywhere (another
seed: other strings); with --giants texts of so many characters without a word's end (periods, runs, random letters); with --every each Unicode code point (or those of --codes, hexadecimal), first and last in a text and among letters, digits, spaces, apostrophes and ends of lines. Tokenizers: those of tests/text/goldens, and the ones named: a tokenizer.json, a SentencePiece *.model, a list of ranks *.tiktoken.
Ids must be equal, and so must the texts that are decoded from those of the random strings. Prints the differences (at most five for each)
and their number, and exits 1 when there is one.
"""
import argparse, concurrent.futures, glob, json, os, random, subprocess, sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
GOLDENS = os.path.join(ROOT, "tests", "text", "goldens")
TOKENIZER = os.path.abspath(os.path.join(os.environ.get("BUILD", "build/release"), "bin", "megalith-tokenizer"))
BATCH = 20000

SPACES = [*range(0x9, 0xE), 0x20, 0x20, 0x20, 0xA, 0xD, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0x200B, 0x180E, 0xFEFF, 0x1C, 0x1F]
BLOCKS = [(0x21, 0x7E), (0x21, 0x7E), (0x41, 0x5A), (0x61, 0x7A), (0x61, 0x7A), (0x30, 0x39), (0xA1, 0xFF), (0x100, 0x24F), (0x250, 0x2FF), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x52F),
          (0x530, 0x58F), (0x590, 0x5FF), (0x600, 0x6FF), (0x700, 0x7FF), (0x800, 0x8FF), (0x900, 0x97F), (0x980, 0xDFF), (0xE00, 0xEFF), (0xF00, 0xFFF), (0x1000, 0x109F), (0x10A0, 0x10FF),
          (0x1100, 0x11FF), (0x1200, 0x139F), (0x13A0, 0x13FF), (0x1400, 0x167F), (0x1680, 0x17FF), (0x1800, 0x18AF), (0x1900, 0x1CFF), (0x1D00, 0x1DFF), (0x1E00, 0x1FFF), (0x2000, 0x206F),
          (0x2070, 0x218F), (0x2190, 0x2BFF), (0x2C00, 0x2DFF), (0x2E80, 0x303F), (0x3040, 0x30FF), (0x3100, 0x33FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0x9FA0, 0x9FFF), (0xA000, 0xA4CF),
          (0xA4D0, 0xABFF), (0xAC00, 0xD7FF), (0xE000, 0xE0FF), (0xF900, 0xFAFF), (0xFB00, 0xFB4F), (0xFB50, 0xFDFF), (0xFE00, 0xFEFF), (0xFF00, 0xFFEF), (0xFFF0, 0xFFFF), (0x10000, 0x103FF),
          (0x10400, 0x107FF), (0x10800, 0x10FFF), (0x11000, 0x114FF), (0x11500, 0x11FFF), (0x12000, 0x123FF), (0x13000, 0x1342F), (0x16800, 0x16FFF), (0x1B000, 0x1B2FF), (0x1BC00, 0x1BCFF),
          (0x1D000, 0x1D3FF), (0x1D400, 0x1D7FF), (0x1E000, 0x1EEFF), (0x1F000, 0x1FAFF), (0x20000, 0x2A6DF), (0x2F800, 0x2FA1F), (0x30000, 0x3134F), (0xE0000, 0xE01EF), (0x10FF00, 0x10FFFF),
          (0, 0x1F), (0x7F, 0x9F)]
WORDS = ["'s", "'S", "'t", "'re", "'RE", "'ve", "'M", "'ll", "'lL", "'d", "'\u017f", "'", "\u2019s", "\r\n", "\n\n", "  ", "   ", "\t", " \n", "\n ", "1234567", "0", "hello", "World", "THE", " the", " a", "//", "/", "\n/",
         "...", "!?", "$x", "#define", "\u4e2d\u6587", "\u3042\u30a2", "e\u0301", "\u1100\u1161\u11a8", "\uac00\u11a8", "a\u0323\u0307", "\u212b", "\u0958", "\ufb1d", "\U0001f468\u200d\U0001f469", "\U0001f1e9\U0001f1ea",
         "\u2581", "\u2581\u2581", "<s>", "</s>", "<0x41>", "<unk>", "<mask>", " <mask> ", "word", "d\u00e9", "de\u0301", "<x>", "<|endoftext|>", "<|im_start|>", "<|eot_id|>", "<SPECIAL_7>",
         "<\uff5cend\u2581of\u2581sentence\uff5c>", "aB", "iPhone", "McDonald", "ABCdef", "\u01c5", "\u02b0", "\u00aa", "\u05d0", "x\u0301", "\u0301", "\u0301A", "\u0e33",
         "\U0001f469\U0001f3fd\u200d\U0001f52c", "\u2764\ufe0f\u200d\U0001f525", "1\ufe0f\u20e3", "\U0001f3f4\U000e0067\U000e0062\U000e007f", "\u200d", "\u200c", "\ufe0f", "\ufffd", "\ufffe", "\uffff",
         "\U0010ffff", "\x00", "\x00\x00", "\x7f", "\x85", "\u2028", "\r", "\r\r\n", "\n\r", "\xc3\xa9", "\xef\xbf\xbd", "\\ud83d", "%E2%82", "\u0130", "\u0131", "\u1e9e", "\ufb03", "\u0345", "\u0f71\u0f72\u0f74",
         "a\u0301\u0300\u0323\u0327\u0315", "\u0915\u094d\u0937\u093f", "\u0627\u064e\u0651", "\u202e", "\u2066", "\u3000\u3000", "\xa0\xa0 ", " \xa0", "\t\t\t", "\u2009x", "\u0660\u0661\u0662\u0663", "\u0967\u0968", "\xb2\xbd", "\u2167", "\U0001d7d8"]


def stacked(rng):
    """A letter under marks of any order, a word of one script, or one character many times: 10^2 to 10^4, rarely."""
    kind = rng.random()
    if kind < 0.6:
        return chr(rng.choice((0x61, 0x41, 0x915, 0xAC00, 0x1100, 0x3B1))) + "".join(chr(rng.choice(range(0x300, 0x370))) for _ in range(rng.randrange(1, 6)))
    if kind < 0.98:
        first = rng.choice((0x61, 0x430, 0x3B1, 0x4E00, 0x3042, 0x627, 0x905, 0xE01, 0x5D0, 0xAC00))
        return "".join(chr(first + rng.randrange(24)) for _ in range(rng.randrange(1, 30)))
    return rng.choice((" ", "\n", "\t", "a", "A", "1", "!", "'", "\u4e2d", "\u0301", "\u3000", "\u2581", "\xa0", "\U0001f468\u200d", "\r\n", "ab", "\u0660", "\uac00")) * int(10 ** rng.uniform(2, 4))


def random_text(rng, words):
    out = []
    block = rng.choice(BLOCKS)
    for _ in range(rng.choice((1, 2, 3, 5, 8, 13, 21, 40))):
        kind = rng.random()
        if kind < 0.20:
            out.append(chr(rng.choice(SPACES)))
        elif kind < 0.29:
            out.append(rng.choice(words))
        elif kind < 0.30:
            out.append(stacked(rng))
        elif kind < 0.42:
            block = (0, 0x10FFFF) if kind < 0.34 else rng.choice(BLOCKS)
        elif kind < 0.55:
            out.append(chr(rng.randrange(0x21, 0x7F)))
        else:
            c = rng.randint(*block)
            out.append((chr(c) if not 0xD800 <= c < 0xE000 else "?") * rng.choice((1, 1, 1, 1, 2, 3, 4)))
    return "".join(out)


def giants(rng, size):
    """Texts of about `size` characters of which most are one pretoken."""
    for period in ("a", " ", "-", "=", "ab", "aab", "\n", "\u65e5\u672c", "e\u0301", "\u00c3\u00c2", "\U0001f600", "\u2581"):
        yield period * (size // len(period))
    for letters in ("abcdefghijklmnopqrstuvwxyz", "ab", "aeiou", "-=*_#", " \t\n", "\u65e5\u672c\u8a9e\u6587"):
        yield "".join(rng.choices(letters, k=size))
        yield "".join(rng.choice(letters) * rng.randrange(1, 300) for _ in range(size // 150))


def every_code_point(first, last):
    for code in range(first, last + 1):
        if not 0xD800 <= code < 0xE000:
            c = chr(code)
            yield f"{c} a{c}b {c}1{c}{c} ' {c}'{c}s'{c}e'r{c}\n{c}\n \n{c}.{c}A{c}a{c}\u4e2d{c}e\u0301{c}\u0301\u0323 {c}"


class Case:
    """`options` for ours; `encode`: texts to ids, `decode`: ids to texts, of the other library; `special`: texts that are tokens of their own."""

    def __init__(self, name, options, encode, decode, special=()):
        self.name, self.options, self.encode, self.decode, self.special = name, options, encode, decode, list(special)


def hf_case(path):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    return Case(os.path.relpath(path, GOLDENS) if path.startswith(GOLDENS) else path, ["--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", path],
                lambda texts: [e.ids for e in tokenizer.encode_batch(texts)], lambda ids: tokenizer.decode_batch(ids, skip_special_tokens=False),
                [token.content for token in tokenizer.get_added_tokens_decoder().values()])


def transformers_case(folder):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    return Case(os.path.relpath(folder, GOLDENS), ["--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", folder], lambda texts: tokenizer(texts).input_ids, tokenizer.batch_decode,
                [token.content for token in tokenizer.added_tokens_decoder.values()])


def sentencepiece_case(path):
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=path)
    return Case(os.path.relpath(path, GOLDENS) if path.startswith(GOLDENS) else path, ["--tokenizer-type", "Llama2Tokenizer", "--tokenizer-model", path], processor.encode, processor.decode)


def tiktoken_case(path, pattern, special=20):
    import base64, tiktoken

    V1 = r"[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
    V2 = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    if path.endswith(".json"):
        with open(path, encoding="utf-8") as file:
            ranks = {base64.b64decode(t["token_bytes"]): t["rank"] + special for t in json.load(file)}
    else:
        with open(path, encoding="ascii") as file:
            ranks = {base64.b64decode(token): int(rank) + special for token, rank in map(str.split, filter(str.strip, file))}
    first = ["<unk>", "<s>", "</s>", "<mask>", "<pad>", "<cls>", "<sep>"]
    names = first + [f"<SPECIAL_{i}>" for i in range(len(first), special)]
    encoding = tiktoken.Encoding(name="x", pat_str={"v1": V1, "v2": V2}[pattern], mergeable_ranks=ranks, special_tokens={t: i for i, t in enumerate(names)})
    options = ["--tokenizer-type", "TikTokenizer", "--tokenizer-model", path, "--tiktoken-pattern", pattern, "--tiktoken-num-special-tokens", str(special), "--vocab-size", str(len(ranks) + special)]
    return Case(f"{os.path.basename(path)} {pattern}", options, lambda texts: encoding.encode_batch(texts, allowed_special="all"), lambda ids: [encoding.decode(i) for i in ids], names)


SPECIAL = ["<|user|>", "<|user|>!", "<unk>", "</s>", "<s>", "<mask>", "<pad>", "<cls>", "<sep>", "the", "\u4e2d"]


def megatron_tiktoken_case(path, special=20):
    """Megatron-LM's own class, with --tokenizer-special-tokens."""
    from megatron.core.tokenizers.text.libraries.tiktoken_tokenizer import TikTokenTokenizer

    with open(path, encoding="utf-8") as file:
        size = len(json.load(file)) + special
    names = [t for t in SPECIAL if t != "<|user|>!"]  # of two that begin alike tiktoken takes any (by hash), ours the longest
    tokenizer = TikTokenTokenizer(path, special_tokens=names, num_special_tokens=special, vocab_size=size)
    options = ["--tokenizer-type", "TikTokenizer", "--tokenizer-model", path, "--tiktoken-num-special-tokens", str(special), "--vocab-size", str(size), "--tokenizer-special-tokens", *names]
    return Case("megatron-tiktoken", options, lambda texts: [tokenizer.text_to_ids(t) for t in texts], lambda ids: [tokenizer.tokenizer.decode(i) for i in ids], tokenizer.special_tokens)


def megatron_hf_case(folder):
    from megatron.core.tokenizers.text.libraries.huggingface_tokenizer import HuggingFaceTokenizer

    tokenizer = HuggingFaceTokenizer(folder, additional_special_tokens=SPECIAL, use_fast=True, include_special_tokens=True)
    options = ["--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", folder, "--tokenizer-special-tokens", *SPECIAL]
    return Case("megatron-hf", options, lambda texts: [tokenizer.text_to_ids(t) for t in texts], tokenizer.tokenizer.batch_decode, SPECIAL)


def cases(named):
    for path in sorted(glob.glob(os.path.join(GOLDENS, "hf", "*.json"))):
        name = os.path.basename(path)
        if not name.endswith(".ids.json") and name != "ranks.json":
            yield lambda path=path: hf_case(path)
    for path in sorted(glob.glob(os.path.join(GOLDENS, "unigram", "*"))):
        if os.path.basename(path) not in ("texts.json", "ids.json"):
            yield lambda path=path: sentencepiece_case(path) if path.endswith(".model") else hf_case(path)
    yield lambda: hf_case(os.path.join(GOLDENS, "trained", "tokenizer.json"))
    yield lambda: transformers_case(os.path.join(GOLDENS, "hf", "deepseek-v3"))
    yield lambda: megatron_tiktoken_case(os.path.join(GOLDENS, "hf", "ranks.json"))
    yield lambda: megatron_hf_case(os.path.join(GOLDENS, "hf", "deepseek-v3"))
    yield lambda: sentencepiece_case(os.path.join(GOLDENS, "pieces.model"))
    for pattern in ("v1", "v2"):
        for name in ("ranks.json", "ranks.tiktoken"):
            yield lambda name=name, pattern=pattern: tiktoken_case(os.path.join(GOLDENS, "hf", name), pattern)
    for path in named:
        if path.endswith(".model"):
            yield lambda path=path: sentencepiece_case(path)
        elif path.endswith(".tiktoken"):
            yield lambda path=path: tiktoken_case(path, "v2")
        else:
            yield lambda path=path: hf_case(path)


def run(case, command, lines):
    result = subprocess.run([TOKENIZER, command, "--json", *case.options], input=("\n".join(lines) + "\n").encode(), capture_output=True)
    if result.returncode != 0:
        sys.exit(f"{case.name}: {command} ended with {result.returncode}: {result.stderr.decode()[-500:]}")
    return result.stdout.decode().split("\n")[:-1]


def differences(case, texts, decode):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:  # ours runs beside theirs
        ours = pool.submit(run, case, "encode", [json.dumps(t) for t in texts])
        theirs = case.encode(texts)
        found = [list(map(int, line.split())) for line in ours.result()]
    assert len(found) == len(texts), (case.name, len(found), len(texts))
    for text, wanted, ids in zip(texts, theirs, found):
        if ids != list(wanted):
            yield "ids", text, wanted, ids
    if not decode:
        return
    back = run(case, "decode", [" ".join(map(str, ids)) for ids in theirs])
    for text, ids, wanted, line in zip(texts, theirs, case.decode([list(i) for i in theirs]), back):
        if json.loads(line) != wanted:
            yield "decoded", ids, wanted, json.loads(line)


def compare(case, texts, decode=True):
    bad, total, batch = 0, 0, []
    def flush():
        nonlocal bad, total
        for difference in differences(case, batch, decode) if batch else ():
            bad += 1
            if bad <= 5:
                print(f"{case.name}:", *map(ascii, difference))
        total += len(batch)
        batch.clear()
    for text in texts:
        batch.append(text)
        if len(batch) == BATCH:
            flush()
    flush()
    print(f"{case.name}: {total} texts, {bad} differences", flush=True)
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strings", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--giants", type=int, default=0, help="texts of so many characters without a word's end, too")
    parser.add_argument("--every", action="store_true", help="every code point too (minutes for each tokenizer)")
    parser.add_argument("--codes", nargs=2, type=lambda code: int(code, 16), default=[0, 0x10FFFF], help="with --every: the first and the last one")
    parser.add_argument("--only", default=[""], nargs="+", help="tokenizers whose name holds one of these")
    parser.add_argument("tokenizers", nargs="*")
    options = parser.parse_args()
    bad = 0
    for number, make in enumerate(cases(options.tokenizers)):
        case = make()
        if not any(word in case.name for word in options.only):
            continue
        rng = random.Random(options.seed * 1000 + number)
        if options.every:
            bad += compare(case, every_code_point(*options.codes), decode=False)
        if options.giants:
            bad += compare(case, giants(rng, options.giants))
        words = WORDS + case.special[:64] * (1 + len(WORDS) // (2 * len(case.special[:64]) + 1))  # a good third of them special
        bad += compare(case, (random_text(rng, words) for _ in range(options.strings)))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
