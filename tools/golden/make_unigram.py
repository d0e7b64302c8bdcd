#!/usr/bin/env python3
"""Unigram models of every option, and what sentencepiece and Hugging Face tokenizers make of texts with them.

  pip install sentencepiece tokenizers protobuf
  tools/golden/make_unigram.py tests/text/data/corpus.jsonl tests/text/goldens/unigram
  tools/golden/make_unigram.py --fuzz build/release/bin/megalith-tokenizer --models 500 --texts 2000 --seed 1

Committed files: sentencepiece 0.2.3, tokenizers 0.23.3.
  NAME.model   SentencePiece models (models())
  NAME.json    tokenizer.json files of the forms that published models have (forms())
  texts.json   TEXTS texts of the models' pieces, parts of them, blanks and odd characters
  ids.json     [file, [for each BLOCK texts the SHA-256 of their ids, written as one line of decimal numbers for each text]]

--fuzz compares random models with random texts instead: the ids of megalith-tokenizer must be those of both libraries. It prints differences and counts, and exits 1 when
there is one.
"""
import hashlib
import io
import itertools
import json
import os
import random
import sys
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as proto
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models as hf_models, normalizers, pre_tokenizers, processors

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from tokenizer import write_json  # noqa: E402
from tokenizer_fuzz import fuzz, parse_options  # noqa: E402

TEXTS, BLOCK = 2000, 100
MARK = "\u2581"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
ODD = ["\uff21", "\u0301", "e\u0301", "\ufb01", "\u00a0", "\u3000", "\u200b", "\t", "\n", "\r\n", "\u00ad", "<s>", "</s>", "<unk>", "<0x41>", "\ufffd", "\u2122", "\u2460", "\u0130",
       "\u03a3", "\uac00", "\u1100\u1161", "\u30ab\u3099", "\uff76\uff9e", "\x7f", "\x01", "A", MARK, " ", "  ", "\u00c5", "\ufb01\u0301", "\u00bd", "``", "''", "\u00c9", "\U0001f600", "\u65e5\u672c", "<mask>"]
LETTERS = ["a", "b", MARK, "\u00e9", "c", "\u65e5", MARK, "\U0001f600", "1", "\n"]
# A small charsmap: full width, a ligature, a composed letter, blanks, and characters that vanish.
RULES = [("\uff21", "A"), ("\ufb01", "fi"), ("e\u0301", "\u00e9"), ("\u00a0", " "), ("\u3000", " "), ("\t", " "), ("\n", " "), ("\r", " "), ("\u200b", ""), ("\u00ad", ""), ("\x01", ""),
         ("\u2122", "TM"), ("\u00bd", "1\u20442"), ("\u30ab\u3099", "\u30ac"), ("\u00c5", "\u00e5"), ("A", "a")]


def load(data):
    model = proto.ModelProto()
    model.ParseFromString(data)
    return model


def trained(corpus, **options):
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(corpus), model_writer=out, **{
        "vocab_size": 560 if options.get("byte_fallback") else 300, "model_type": "unigram", "character_coverage": 0.98, "minloglevel": 2, "hard_vocab_limit": False, "num_threads": 1, **options})
    return load(out.getvalue())


def changed(model, change, rng):
    model = load(model.SerializeToString())
    for piece in model.pieces:
        if piece.type == NORMAL:
            change(piece, rng)
    return model


def without(model, drop):
    model = load(model.SerializeToString())
    kept = [p for p in model.pieces if not drop(p)]
    del model.pieces[:]
    model.pieces.extend(kept)
    return model


def tiny(plain, rng, user_defined):
    """Pieces of few letters, with many ties."""
    model = without(plain, lambda p: p.type == NORMAL)
    for length in range(1, 5):
        for letters in itertools.product("ab" + MARK + "\u00e9", repeat=length):
            if length == 1 or rng.random() < 0.4:
                kind = USER_DEFINED if user_defined and length > 1 and rng.random() < 0.06 else UNUSED if length > 1 and rng.random() < 0.12 else NORMAL
                model.pieces.add(piece="".join(letters), score=rng.choice([-1, -2, -3, -4.5, -5.25, rng.uniform(-9, 0)]), type=kind)
    return model


def set_score(function):
    def change(piece, rng):
        piece.score = function(rng)
    return change


def set_unused(piece, rng):
    if rng.random() < 0.15:
        piece.type = UNUSED


def models(corpus):
    rng = random.Random(1)
    keep = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
    plain = trained(corpus, **keep)
    yield "plain", plain
    yield "bytes", trained(corpus, normalization_rule_name="identity", byte_fallback=True)
    yield "bytes_no_mark", without(trained(corpus, **keep, byte_fallback=True), lambda p: p.piece == MARK)
    yield "user", trained(corpus, normalization_rule_name="identity", user_defined_symbols=["the", "<sep>", "ab", "  ", "\t", "\u2581is", "ing\u2581"], control_symbols=["<ctl>"])
    yield "suffix", trained(corpus, **keep, treat_whitespace_as_suffix=True)
    yield "digits", trained(corpus, **keep, add_dummy_prefix=False, split_digits=True, allow_whitespace_only_pieces=True)
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="ascii") as file:
        file.writelines(" ".join(f"{ord(c):X}" for c in a) + "\t" + " ".join(f"{ord(c):X}" for c in b) + "\n" for a, b in RULES)
        file.flush()
        yield "rules", trained(corpus, normalization_rule_tsv=file.name)
    yield "unused", changed(plain, set_unused, rng)
    yield "ties", changed(plain, set_score(lambda r: -float(r.randrange(6))), rng)
    yield "random", without(changed(plain, set_score(lambda r: r.uniform(-20, 5)), rng), lambda p: p.type == NORMAL and len(p.piece) == 1 and rng.random() < 0.4)
    yield "large", changed(plain, set_score(lambda r: r.uniform(-60000, 20000)), rng)
    unescaped = load(plain.SerializeToString())
    unescaped.normalizer_spec.escape_whitespaces = False
    yield "unescaped", unescaped
    yield "tiny", tiny(plain, rng, False)
    yield "tiny_user", tiny(plain, rng, True)


def random_model(rng, charsmap):
    model = proto.ModelProto()
    model.trainer_spec.model_type = 1
    model.trainer_spec.byte_fallback = rng.random() < 0.5
    model.trainer_spec.treat_whitespace_as_suffix = rng.random() < 0.25
    model.normalizer_spec.precompiled_charsmap = charsmap if rng.random() < 0.3 else b""
    model.normalizer_spec.add_dummy_prefix = rng.random() < 0.75
    model.normalizer_spec.remove_extra_whitespaces = rng.random() < 0.5
    model.normalizer_spec.escape_whitespaces = rng.random() < 0.88
    model.pieces.add(piece="<unk>", type=UNKNOWN)
    model.pieces.add(piece="<s>", type=CONTROL)
    model.pieces.add(piece="</s>", type=CONTROL)
    if model.trainer_spec.byte_fallback:
        for byte in range(256):
            model.pieces.add(piece=f"<0x{byte:02X}>", type=BYTE)
    letters = rng.randrange(1, len(LETTERS) + 1)
    scale = rng.choice([1, 10, 1000, 100000])
    levels = rng.choice([3, 30, 0])
    score = lambda: -float(rng.randrange(levels)) * scale / 10 if levels else rng.uniform(-scale, scale / 20)
    rare, lacks = rng.random() < 0.5, rng.random() < 0.33
    known = set()

    def add(text, length):
        if text not in known:
            known.add(text)
            kind = NORMAL
            if rare and rng.random() < 0.17:
                kind = UNUSED if rng.random() < 0.33 else CONTROL if length == 1 and rng.random() < 0.5 else USER_DEFINED
            model.pieces.add(piece=text, score=score(), type=kind)

    for letter in LETTERS[:letters]:
        if not lacks or rng.random() < 0.75:
            add(letter, 1)
    for _ in range(rng.randrange(120)):
        length = 2 + rng.randrange(7 if rng.random() < 0.1 else 3)
        add("".join(rng.choice(LETTERS[:letters]) for _ in range(length)), length)
    if not any(p.type in (NORMAL, USER_DEFINED, UNUSED) for p in model.pieces):
        model.pieces.add(piece="x", score=-1)
    return model


def random_text(rng, pieces):
    kind = rng.randrange(8)
    many = 60 if rng.random() < 0.25 else 12
    text = ""
    for _ in range(1 + rng.randrange(many)):
        piece = rng.choice(pieces)
        if kind < 2:
            text += piece
        elif kind == 2:
            text += rng.choice(LETTERS)
        elif kind == 3:
            text += piece if rng.random() < 0.67 else " " * rng.randrange(5)
        elif kind == 4:
            text += rng.choice(ODD if rng.random() < 0.5 else LETTERS)
        elif kind == 5:
            text += piece[:rng.randrange(len(piece) + 1)]
        elif kind == 6:
            text += chr(rng.randrange(0x3000) if rng.random() < 0.25 else 32 + rng.randrange(95))
        else:
            text += rng.choice("ab" + MARK) * rng.randrange(1, 40)
    return text.replace(MARK, " ") if rng.random() < 0.5 else text


def scored(model):
    return [(p.piece, p.score) for p in model.pieces]


def around(tokenizer, before, after):
    ids = {t: tokenizer.token_to_id(t) for t in before + after}
    return processors.TemplateProcessing(single=" ".join([*before, "$A", *after]), special_tokens=list(ids.items()))


def forms(by_name):
    """Each with the stages of a published family; the charsmap is that of RULES."""
    charsmap = by_name["rules"].normalizer_spec.precompiled_charsmap
    blanks = lambda to: normalizers.Replace(Regex(" {2,}"), to)
    always = pre_tokenizers.Metaspace(prepend_scheme="always")
    words = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), always])

    def made(name, normalizer, pre_tokenizer, bytes_too=False, special=("<s>", "</s>", "<unk>")):
        tokenizer = Tokenizer(hf_models.Unigram(scored(by_name[name]), unk_id=0, byte_fallback=bytes_too))
        if normalizer is not None:
            tokenizer.normalizer = normalizer
        if pre_tokenizer is not None:
            tokenizer.pre_tokenizer = pre_tokenizer
        tokenizer.add_special_tokens(list(special))
        tokenizer.decoder = decoders.Metaspace()
        return tokenizer

    t5 = made("rules", normalizers.Precompiled(charsmap), always)
    t5.add_special_tokens(["<pad>", "<extra_id_0>", "<extra_id_1>"])
    t5.post_processor = around(t5, [], ["</s>"])
    yield "t5", t5
    xlmr = made("plain", normalizers.Sequence([normalizers.Precompiled(charsmap), blanks(" ")]), words)
    xlmr.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    xlmr.post_processor = around(xlmr, ["<s>"], ["</s>"])
    yield "xlmr", xlmr
    yield "deberta", made("user", normalizers.Sequence([normalizers.Strip(), normalizers.Precompiled(charsmap), blanks(" ")]), always)
    yield "mbart", made("ties", normalizers.Sequence([normalizers.Precompiled(charsmap), normalizers.Strip(left=False), blanks(MARK)]), always)
    yield "albert", made("random", normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Precompiled(charsmap)]), words)
    yield "first", made("bytes", None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False), True)
    yield "never", made("tiny", None, pre_tokenizers.Metaspace(prepend_scheme="never"))
    yield "whole", made("ties", None, None)
    yield "whole_bytes", made("bytes_no_mark", normalizers.Replace(" ", MARK), None, True, [])


def random_form(rng, model):
    """A random model as a tokenizer.json."""
    tokenizer = Tokenizer(hf_models.Unigram(scored(model), unk_id=0, byte_fallback=rng.random() < 0.5))
    schemes = [dict(prepend_scheme=s, split=p) for s in ("always", "first", "never") for p in (True, False)]
    if rng.random() < 0.8:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(**rng.choice(schemes))
    if rng.random() < 0.5:
        tokenizer.add_special_tokens(["</s>"])
    return tokenizer


def encode_all(tokenizer, texts):
    if isinstance(tokenizer, Tokenizer):
        return [e.ids for e in tokenizer.encode_batch(texts)]
    return tokenizer.encode(texts)


def hashes(ids):
    lines = [" ".join(map(str, i)) + "\n" for i in ids]
    return [hashlib.sha256("".join(lines[at:at + BLOCK]).encode()).hexdigest() for at in range(0, len(lines), BLOCK)]


def write_goldens(corpus, folder):
    by_name = dict(models(corpus))
    rng = random.Random(2)
    pieces = sorted({p.piece for m in by_name.values() for p in m.pieces if p.type != BYTE})
    texts = ["", " ", "  ", "a", " a", "a "] + [t for t in corpus if len(t) < 200]
    while len(texts) < TEXTS:
        texts.append(random_text(rng, pieces))
    rows = []
    for name, model in by_name.items():
        data = model.SerializeToString()
        with open(os.path.join(folder, name + ".model"), "wb") as file:
            file.write(data)
        rows.append([name + ".model", hashes(encode_all(sentencepiece.SentencePieceProcessor(model_proto=data), texts))])
    for name, tokenizer in forms(by_name):
        with open(os.path.join(folder, name + ".json"), "w", encoding="ascii") as file:
            file.write(json.dumps(json.loads(tokenizer.to_str()), separators=(",", ":")) + "\n")
        rows.append([name + ".json", hashes(encode_all(tokenizer, texts))])
    for name, value in (("texts", texts), ("ids", rows)):
        write_json(os.path.join(folder, name + ".json"), value)


def fuzz_cases(folder, given):
    golden = os.path.join(HERE, "..", "..", "tests", "text", "goldens", "sentencepiece", "nmt_nfkc_cf.model")
    with open(golden, "rb") as file:
        charsmap = load(file.read()).normalizer_spec.precompiled_charsmap
    rng = random.Random(given.seed)
    for number in range(given.models):
        model = random_model(rng, charsmap)
        if number % 3 == 2:
            path = os.path.join(folder, "tokenizer.json")
            judge = random_form(rng, model)
            judge.save(path)
        else:
            path = os.path.join(folder, "some.model")
            with open(path, "wb") as file:
                file.write(model.SerializeToString())
            judge = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
        pieces = [p.piece for p in model.pieces if p.type != BYTE]
        texts = [random_text(rng, pieces) for _ in range(given.texts)]
        yield path, texts, encode_all(judge, texts)


def main():
    given = parse_options()
    if given.fuzz:
        sys.exit(fuzz("unigram", given, lambda folder: fuzz_cases(folder, given)))
    corpus_file, folder = given.paths
    with open(corpus_file, encoding="utf-8") as file:
        corpus = [json.loads(line)["text"] for line in file]
    os.makedirs(folder, exist_ok=True)
    write_goldens(corpus, folder)


if __name__ == "__main__":
    main()
