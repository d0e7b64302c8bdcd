#!/usr/bin/env python3
"""What the regular expressions of published tokenizers, and others, match in Hugging Face tokenizers, whose engine is Oniguruma.

  pip install tokenizers
  tools/golden/make_patterns.py tests/text/goldens/patterns

Committed files: tokenizers 0.23.3.
  texts.json    texts of odd characters, blanks, numbers and words
  cuts.json     [pre-tokenizer of a tokenizer.json, digests as in pieces.json]: expressions that the library itself matches, and stages of other kinds
  pieces.json   [expression, [SHA-256 of the pieces of each BLOCK texts], SHA-256 of those of code_point_texts(), or null]; after each piece, and after each text, comes a byte 0x01
"""
import hashlib
import json
import os
import random
import sys

from tokenizers import Regex, Tokenizer, pre_tokenizers

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tokenizer import write_json  # noqa: E402

COUNT, BLOCK = 3000, 500
CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
SIGNS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
BLANKS = r"\s*[\r\n]+|\s+(?!\S)|\s+"
CASED = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+%s|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*%s"
ASIDE = r"[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))*((?=[\p{L}])([^A-Z]))+%s|[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))+((?=[\p{L}])([^A-Z]))*%s"
KIMI = (r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+%s?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*%s?|\p{N}{1,3}|%s|%s") % (CONTRACTIONS, CONTRACTIONS, SIGNS, BLANKS)
PATTERNS = [
    # With scanners of their own: GPT-2, LLaMA-3, Qwen2, Qwen3.5, o200k, tekken, Megatron's v1, DeepSeek-V3.
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "|".join([CONTRACTIONS, WORD, r"\p{N}{1,3}", SIGNS, BLANKS]),
    "|".join([CONTRACTIONS, WORD, r"\p{N}", SIGNS, BLANKS]),
    CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + BLANKS,
    CASED % ((CONTRACTIONS + "?",) * 2) + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + BLANKS,
    CASED % ("", "") + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + BLANKS,
    r"[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
    # Compiled. DeepSeek-V3's others, -LLM's and -Coder's.
    r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", r"\s+$",
    # OLMo 3; cl100k as tiktoken writes it, and with braces; Kimi K2; Bloom; Ling; Seed-Coder; MiniCPM5; EXAONE MoE; Jais 2.
    "|".join([CONTRACTIONS, WORD, r"\p{N}{1,3}", SIGNS, r"\s*[\r\n]|\s+(?!\S)|\s+"]),
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    KIMI,
    " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+",
    "|".join([CONTRACTIONS, WORD, r"\p{N}+", SIGNS, BLANKS]),
    CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
    "|".join([CONTRACTIONS, WORD, r"\p{N}{1,3}", SIGNS, *(r"\s{%d}(?!\S)" % n for n in (512, 256, 128, 64, 32, 16, 8, 4)), r"\s{1,2}(?!\S)", r"\s{1}"]),
    # Chameleon's three; AFMoE's and Laguna's; a Turkish Qwen2; o200k with lookaheads.
    r"<sentinel:[0-9]+>", r"(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )",
    "[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf\u0e40-\u0e7f\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+",
    r"[^\n]+|[\n]+", "|".join([WORD, r"\p{N}", SIGNS, BLANKS]), ASIDE % ((CONTRACTIONS + "?",) * 2) + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + BLANKS,
    # Others: what the syntax has.
    r"\S+", r"\w+|[^\w\s]+", r"\d+\D", r"a*?b", r"(?:a|ab)(?:c|bcd)?", r"a{2,3}?", r"(?:ab){2,}", r"a{,2}b", r"(?i:skip|x)", r"(?i)don|t", r"x(?i)y|z", r".", r".+$", r"[^\W_]+(?=[!.]|$)", r"[a-c[x-z]&&[^b]]+", r"\p{^L}",
    r"\P{Ll}{2}", r"[\p{Nd}\p{Sc}]+", r"[\x41-\x{1F600}]", r"[\u0041-z]+", r"[\]\-a^]+", r"a++b|a", r"\p{greek}+|\p{HIRAGANA}+", r"(?:[0-9]{1,2}){2}", r"x+\z", r"[^a]", r"\s++(?=\n|$)",
    r"\p{N}{1,3}+x?", r"[!-/:-@\[-`{-~]", r"[0-9][0-9][0-9]",
]
# Not compiled: lookbehind, boundaries, longer lookahead, references, empty matches, more states than a table has.
SLOW = [
    r"(?=(\d{3})+(?!\d))", r"\p{N}{1,3}(?=(?:\p{N}{3})*(?:\P{N}|$))", r"\b", r"\B", r"^", r"^\s+|\S+", r"(?<=\p{L})\p{N}+|(?<!\p{N})\p{L}", r"(?<=[a-z])(?=[A-Z])", r"(\p{L})\1",
    r"(?>a+b?)a?b|\s", r"x*", r"(?i:ss|ff|\u017f)", r"\p{Lu}++(?!\p{Ll})|\w+", r"(?<![\w])'(?=\w)", r"[[:alpha:]&&[^a-c]]+", r"\w+(?<!_)|\W(?<=\s)", r"(?:a|b)*a(?:a|b){14}", r"(?i)\p{Lu}(?<=[\w&&\P{Nd}])", r"a\Kb",
    r"(?x) \p{L}+ # [words\n | \d (?<= 1 )", r"(?:\r\n|\R)(?=\S)", r"(?~ab)b",
]
SLOW_CODE_POINTS = [r"\b", r"(?<=\p{L})\p{M}+|(?<=\w)\W", r"[^\W\d_]+(?<!\p{Ll})", r"(?i:\p{Lu}+)(?<=\D)"]


def split_stage(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def sequence(*stages):
    return {"type": "Sequence", "pretokenizers": list(stages)}


def byte_level(prefix, regex):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": regex}


BEHAVIORS = ["Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext"]
WHITESPACE, DIGITS = {"type": "Whitespace"}, {"type": "Digits", "individual_digits": True}
STAGES = [
    *(split_stage(regex, behavior, invert) for regex in (r"\d|(?=z)", r"\s+|'", r"(?<=b)c|b") for behavior in BEHAVIORS for invert in (False, True)),
    *(split_stage("a", behavior, invert, "String") for behavior in BEHAVIORS for invert in (False, True)),
    *({"type": "Punctuation", "behavior": behavior} for behavior in BEHAVIORS),
    WHITESPACE, {"type": "WhitespaceSplit"}, {"type": "BertPreTokenizer"}, {"type": "CharDelimiterSplit", "delimiter": "x"}, {"type": "CharDelimiterSplit", "delimiter": "\u3042"},
    sequence(WHITESPACE, DIGITS), sequence({"type": "WhitespaceSplit"}, byte_level(True, True)), sequence(DIGITS, byte_level(True, False)), sequence(split_stage(r"\b"), byte_level(False, False)),
    sequence(split_stage(r"(?<=\p{L})\s", "MergedWithNext"), split_stage(r"^\s", "Removed"), split_stage(r"\p{L}+")), sequence(byte_level(False, True), split_stage("(?<=\u0120)\\w")), sequence(byte_level(False, False), split_stage(r"(?<=\w)\W|\b", "Removed")),
]

# These are compared in each code point.
EVERY_CODE_POINT = [*PATTERNS[:8], KIMI, r"\w+|[^\w\s]+", r"[\p{Nd}\p{Sc}]+", r"\p{greek}+|\p{HIRAGANA}+"]
PARTS = ["a", "b", "c", "x", "z", "A", "B", "Z", "don", "'s", "'S", "'\u017f", "'ll", "'LL", "'t", "'re", "'d", "s", "k", "\u212a", "\u017fkip", "SKIP", "IMGIMG", "AI", "ABIZ", "<sentinel:1", "<sentinel:22>", " ", " ", "  ", "    ",
         "\n", "\r\n", "\n\n", "\t", "\u00a0", "\u3000", "\u0085", "\u2028", "1", "12", "123", "4567", "\u0661", "\u00bd", "\u2160", "!", ".", "/", "_", "(", ")", "|", "\u2026", "\u3002", "$", "\u20ac", "\u00e9", "e\u0301", "\u0301",
         "\u00c9", "\u01c5", "\u02b0", "\u00aa", "\u65e5\u672c", "\u3005", "\u3042", "\u30ab", "\uac00", "\u0e01", "\u03b1\u03a9", "\u0431\u0416", "\u0915\u094d", "\U0001f600", "\U00020000", "\x00", "\x7f", "\u200d", "\ufeff", "\u0378", "\ue000"]


def texts():
    rng = random.Random(4)
    out = ["", " ", "\n", "a", " " * 700, " " * 260 + "x", "\n" * 300, "1" * 50, "ab" * 40, "aaaaab"]
    while len(out) < COUNT:
        out.append("".join(rng.choice(PARTS) * (rng.randrange(1, 9) if rng.random() < 0.1 else 1) for _ in range(rng.randrange(1, rng.choice([5, 20, 60])))))
    return out


def code_point_texts():
    """Each code point that may be assigned, among others, 256 in each text."""
    codes = [c for c in (*range(0xD800), *range(0xE000, 0x32400), *range(0xE0000, 0xE1000))]
    for at in range(0, len(codes), 256):
        yield "".join(f"a{c}1{c} {c}b{c}\n{c}!" for c in map(chr, codes[at:at + 256]))


def digest(pre_tokenizer, some):
    out = hashlib.sha256()
    for text in some:
        for piece, _ in pre_tokenizer.pre_tokenize_str(text):
            out.update((piece if isinstance(piece, bytes) else piece.encode()) + b"\x01")
        out.update(b"\x01")
    return out.hexdigest()


def cut_row(stage, every, all_texts):
    whole = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": stage, "post_processor": None, "decoder": None,
             "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": {}, "merges": []}}
    made = Tokenizer.from_str(json.dumps(whole)).pre_tokenizer
    if "ByteLevel" in json.dumps(stage):
        made = InBytes(made)
    return [stage, [digest(made, all_texts[at:at + BLOCK]) for at in range(0, COUNT, BLOCK)], digest(made, code_point_texts()) if every else None]


class InBytes:
    """Pieces of a pre-tokenizer with ByteLevel as bytes, not in its alphabet."""

    def __init__(self, made):
        self.made = made
        codes = [*range(33, 127), *range(161, 173), *range(174, 256)]
        codes += [code for code in range(256) if code not in codes]
        self.bytes = {chr(code if code in codes[:188] else 256 + codes.index(code) - 188): code for code in codes}

    def pre_tokenize_str(self, text):
        return [(bytes(self.bytes[c] for c in piece), place) for piece, place in self.made.pre_tokenize_str(text)]


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    all_texts, rows = texts(), []
    for regex in PATTERNS:
        split = pre_tokenizers.Split(Regex(regex), "isolated")
        rows.append([regex, [digest(split, all_texts[at:at + BLOCK]) for at in range(0, COUNT, BLOCK)],
                     digest(split, code_point_texts()) if regex in EVERY_CODE_POINT else None])
    cuts = [cut_row(split_stage(regex), False, all_texts) for regex in SLOW] + [cut_row(split_stage(regex), True, all_texts) for regex in SLOW_CODE_POINTS] + [cut_row(stage, False, all_texts) for stage in STAGES]
    for name, value in (("texts", all_texts), ("pieces", rows), ("cuts", cuts)):
        write_json(os.path.join(folder, name + ".json"), value)


if __name__ == "__main__":
    main()
