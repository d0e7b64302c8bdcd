#!/usr/bin/env python3
"""Small tokenizer.json files of every kind that libcore/text reads, and what Hugging Face tokenizers makes of texts with them; the same
for tiktoken's ranks as Megatron reads them.

  pip install tokenizers tiktoken transformers sentencepiece megatron-core mistral-common
  tools/golden/make_tokenizers.py tests/text/data/corpus.jsonl tests/text/goldens/hf

Committed files: tokenizers 0.23.3, tiktoken 0.14.0, transformers 5.23.0, sentencepiece 0.2.3, megatron-core 0.16.1, mistral-common 1.13.1.
  NAME.json          a tokenizer.json: pre-tokenizer, normalizer, post-processor and decoder as in the model's own, trained on the corpus
  NAME.ids.json      [text, ids with special tokens, text decoded from them]
  deepseek-v3/       a folder with tokenizer_config.json, whose "add_bos_token" does not count; ids from transformers' AutoTokenizer
  ranks.json, ranks.tiktoken, ranks.ids.json   Megatron's JSON list, tiktoken's own form, and [pattern, text, ids, decoded text]
  shipped-tekken.json, shipped-tekken.ids.json   the same ranks as Mistral's tekken.json has them, and [text, ids]
"""
import base64
import json
import os
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tokenizer import TEXTS, write_json  # noqa: E402

CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CASED = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+%s|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*%s"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" + REST
QWEN2 = CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|" + REST
QWEN35 = CONTRACTION + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K = CASED % ((CONTRACTION + "?",) * 2) + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
TEKKEN = CASED % ("", "") + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
DEEPSEEK3 = ["\\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
             "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]
CJK = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
DEEPSEEK_CODER = ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK]
# The first generation names the letters of Latin, Greek, Cyrillic and a few more by ranges; some of them.
DEEPSEEK_LLM = ["[\r\n]", "\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u0400-\u0481\u1e00-\u1f15\u1f5f-\u1f7d\u212a-\u212d\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f]+",
                "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", "\\s+$", CJK]
MORE = ["DON'T, it'S we'Re I'lL '\u017f x'\u017f", "1234567 12 1", "a\u0323\u0307 \u1e69 \u212b \u0958 \u1100\u1161\u11a8 \uac00\u11a8", "iPhone McDonald ABCdef \u01c5x \u02b0A \u00aaB \u0301A x\u0301y", "//path/to\n/x", "#define $x .a ...b",
        "<s>Hello</s> <unk><0x41> \u2581x \u2581\u2581 y", "<s> a <mask> b  wordy word dé dés <x>", "Stra\u00dfe 12\u5e743\u6708", "\u0e33\u0e01 \u0915\u094d\u0937 \u2170\u2161", "\U000e0041\ue000\u0378", "   lead", "trail   ", "a  \n  b\n\n", "\u2581"]


def sample(texts):
    return [t for t in texts if len(t) < 70]


def split(*patterns):
    return [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]


def byte_level(*stages):
    return pre_tokenizers.Sequence([*stages, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def trained(corpus, pre_tokenizer, special, size=420):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(corpus, trainer)
    tokenizer.add_special_tokens(special)
    return tokenizer


def template(tokenizer, begin):
    return processors.TemplateProcessing(single=f"{begin} $A", pair=f"{begin} $A {begin}:1 $B:1", special_tokens=[(begin, tokenizer.token_to_id(begin))])


def byte_level_tokenizers(corpus):
    tokenizer = trained(corpus, byte_level(*split(LLAMA3)), ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template(tokenizer, "<|begin_of_text|>")])
    form = json.loads(tokenizer.to_str())
    form["model"]["ignore_merges"] = True  # and tokens that no merge reaches
    form["model"]["merges"] = [m for i, m in enumerate(form["model"]["merges"]) if i % 9 != 5]
    yield "llama3", form
    tokenizer = trained(corpus, byte_level(*split(QWEN2)), ["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_tokens([AddedToken("<tool>", normalized=False), AddedToken("word", single_word=True), AddedToken("<mask>", lstrip=True),
                          AddedToken("d\u0065\u0301", single_word=True, normalized=True), AddedToken("<x>", rstrip=True, normalized=False)])
    yield "qwen2", tokenizer
    yield "qwen3.5", trained(corpus, byte_level(*split(QWEN35)), ["<|endoftext|>"])
    yield "o200k", trained(corpus, byte_level(*split(O200K)), ["<|endoftext|>"])
    yield "tekken", trained(corpus, byte_level(pre_tokenizers.Split(Regex(TEKKEN), "removed", invert=True)), ["</s>"])
    yield "deepseek-llm", trained(corpus, byte_level(*split(*DEEPSEEK_LLM), pre_tokenizers.Digits(True)), ["<\uff5cend\u2581of\u2581sentence\uff5c>"])
    yield "deepseek-coder", trained(corpus, byte_level(*split(*DEEPSEEK_CODER), pre_tokenizers.Digits(True)), ["<|endoftext|>"])
    digits = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    yield "digits", trained(corpus, digits, ["<|endoftext|>"])


def without(form, tokens):
    """Without tokens that no merge needs any more, and the merges of these."""
    lacked = set(tokens)
    kept = []
    for left, right in form["model"]["merges"]:
        if left in lacked or right in lacked or left + right in lacked:
            lacked.add(left + right)
        else:
            kept.append([left, right])
    vocab = {t: i for t, i in form["model"]["vocab"].items() if t not in lacked}
    form["model"].update(merges=kept, vocab=dict(zip(vocab, range(len(vocab)))))
    form["added_tokens"] = [dict(t, id=len(vocab) + i) for i, t in enumerate(form["added_tokens"])]
    return form


def stage_tokenizers(corpus):
    """Of bytes, with the stages of other families than the ones above."""
    # Bytes without a token: a sign, the first bytes of characters of two, three and four bytes, a byte within characters, and those that are in no text.
    lacked = ["!", "\u00c3", "\u00e6", "\u00f0", "\u0142", "\u00c0", "\u00c1", *map(chr, range(0xF5, 0x100))]
    form = json.loads(trained(corpus, byte_level(*split(LLAMA3)), ["<|endoftext|>"]).to_str())
    yield "lacks-bytes", without(form, lacked)
    form = json.loads(trained(corpus, byte_level(*split(QWEN2)), ["<|endoftext|>"]).to_str())
    form["model"]["unk_token"] = "&"
    yield "unknown-bytes", without(form, lacked)
    tokenizer = trained(corpus, pre_tokenizers.ByteLevel(add_prefix_space=True), ["<s>", "</s>"])
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", tokenizer.token_to_id("</s>")), ("<s>", tokenizer.token_to_id("<s>")), trim_offsets=True)
    yield "prefix-space", tokenizer
    falcon = [pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False), pre_tokenizers.Digits(False),
              pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")]
    yield "falcon", trained(corpus, pre_tokenizers.Sequence(falcon), ["<|endoftext|>"])
    texts = [pre_tokenizers.Split("-", "isolated"), pre_tokenizers.Split("0", "contiguous"), pre_tokenizers.Split("th", "merged_with_previous"), pre_tokenizers.Split(".", "merged_with_next")]
    yield "texts", trained(corpus, byte_level(*texts, pre_tokenizers.Punctuation(), pre_tokenizers.Digits(True)), ["<|endoftext|>"])


def character_tokenizers(corpus):
    trainer = dict(vocab_size=600, show_progress=False, special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)], limit_alphabet=90)
    def base(**settings):
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", **settings))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
        tokenizer.train_from_iterator(corpus, trainers.BpeTrainer(**trainer))
        form = json.loads(tokenizer.to_str())
        form["added_tokens"] = [t for t in form["added_tokens"] if not t["content"].startswith("<0x")]
        tokenizer = Tokenizer.from_str(json.dumps(form))
        tokenizer.post_processor = template(tokenizer, "<s>")
        return tokenizer
    back = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer = base(byte_fallback=True, fuse_unk=True)
    tokenizer.pre_tokenizer = None
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence(back)
    yield "llama2", tokenizer
    tokenizer = base(byte_fallback=True, fuse_unk=True)
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence(back[:-1])
    yield "gemma", tokenizer
    tokenizer = base(byte_fallback=True, fuse_unk=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence(back)
    yield "metaspace-first", tokenizer
    tokenizer = base(fuse_unk=False)
    tokenizer.decoder = decoders.Metaspace()
    yield "metaspace-always", tokenizer
    tokenizer = base(fuse_unk=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never", split=True)
    yield "metaspace-never", tokenizer


def write(folder, name, form, texts):
    text = json.dumps(form, ensure_ascii=True, separators=(",", ":")) if isinstance(form, dict) else json.dumps(json.loads(form.to_str()), separators=(",", ":"))
    tokenizer = Tokenizer.from_str(text)
    with open(os.path.join(folder, name + ".json"), "w", encoding="ascii") as file:
        file.write(text + "\n")
    ids = [tokenizer.encode(t).ids for t in texts]
    write_json(os.path.join(folder, name + ".ids.json"), [[t, i, tokenizer.decode(i, skip_special_tokens=False)] for t, i in zip(texts, ids)])


def write_deepseek3(folder, corpus, texts):
    from transformers import AutoTokenizer

    folder = os.path.join(folder, "deepseek-v3")
    os.makedirs(folder, exist_ok=True)
    begin, end = "<\uff5cbegin\u2581of\u2581sentence\uff5c>", "<\uff5cend\u2581of\u2581sentence\uff5c>"
    tokenizer = trained(corpus, byte_level(*split(*DEEPSEEK3)), [begin, end])
    tokenizer.normalizer = normalizers.Sequence([])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    write(folder, "tokenizer", tokenizer, [])
    os.remove(os.path.join(folder, "tokenizer.ids.json"))
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="ascii") as file:
        json.dump({"add_bos_token": True, "add_eos_token": False, "bos_token": {"__type": "AddedToken", "content": begin, "lstrip": False, "normalized": True, "rstrip": False, "single_word": False},
                   "eos_token": end, "tokenizer_class": "PreTrainedTokenizerFast"}, file, indent=1)
        file.write("\n")
    auto = AutoTokenizer.from_pretrained(folder)
    write_json(folder + ".ids.json", [[t, i, auto.decode(i)] for t, i in ((t, auto(t).input_ids) for t in texts)])


def write_tiktoken(folder, corpus, texts):
    from megatron.core.tokenizers.text.libraries.tiktoken_tokenizer import TikTokenTokenizer

    vocab = json.loads(trained(corpus, byte_level(*split(TEKKEN)), []).to_str())["model"]["vocab"]
    same = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    byte_of = {chr(b) if b in same else chr(next(others)): b for b in range(256)}
    words = [bytes(byte_of[c] for c in token) for token in vocab]
    tokens = [bytes([b]) for b in range(256)] + [w for w in words if len(w) > 1]
    path = os.path.join(folder, "ranks.json")
    with open(path, "w", encoding="ascii") as file:
        json.dump([{"rank": i, "token_bytes": base64.b64encode(t).decode(), "token_str": t.decode(errors="replace")} for i, t in enumerate(tokens)], file, separators=(",", ":"))
        file.write("\n")
    with open(os.path.join(folder, "ranks.tiktoken"), "w", encoding="ascii") as file:
        file.writelines(f"{base64.b64encode(t).decode()} {i}\n" for i, t in enumerate(tokens))
    rows = []
    for pattern in ("v1", "v2"):
        tokenizer = TikTokenTokenizer(path, num_special_tokens=20, pattern=pattern, vocab_size=len(tokens) + 20)
        rows += [[pattern, t, i, tokenizer.tokenizer.decode(i)] for t, i in ((t, tokenizer.text_to_ids(t)) for t in texts)]
    write_json(os.path.join(folder, "ranks.ids.json"), rows)


def write_tekken(folder, texts):
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    with open(os.path.join(folder, "ranks.json"), encoding="ascii") as file:
        vocab = json.load(file)
    special = [{"rank": i, "token_str": t, "is_control": True} for i, t in enumerate(["<unk>", "<s>", "</s>", "[INST]", "[/INST]"])]
    config = {"pattern": TEKKEN, "num_vocab_tokens": len(vocab), "default_vocab_size": len(vocab) + 4, "default_num_special_tokens": 12, "version": "v7"}
    path = os.path.join(folder, "shipped-tekken.json")
    with open(path, "w", encoding="ascii") as file:
        json.dump({"config": config, "vocab": vocab, "special_tokens": special}, file, separators=(",", ":"))
        file.write("\n")
    tokenizer = Tekkenizer.from_file(path)
    write_json(os.path.join(folder, "shipped-tekken.ids.json"), [[t, tokenizer.encode(t, bos=False, eos=False)] for t in texts])


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        corpus = [json.loads(line)["text"] for line in file]
    folder = sys.argv[2]
    os.makedirs(folder, exist_ok=True)
    texts = sample(TEXTS + MORE)
    for name, form in [*byte_level_tokenizers(corpus), *stage_tokenizers(corpus), *character_tokenizers(corpus)]:
        write(folder, name, form, texts)
    write_deepseek3(folder, corpus, texts)
    write_tiktoken(folder, corpus, texts + ["a<s>b</s><SPECIAL_7> <SPECIAL_19><SPECIAL_20>"])
    write_tekken(folder, texts + ["a<s>b</s>[INST]<SPECIAL_7>"])


if __name__ == "__main__":
    main()
