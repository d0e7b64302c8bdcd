#!/usr/bin/env python3
"""Fixture of tests/apps/preprocess/preprocess_test.cpp: a small tree as wikiextractor --json writes it, a tiny GPT-2 tokenizer,
and the datasets that Megatron's way of preprocessing makes of the tree.

  tools/golden/make_preprocess.py tests/apps/fixtures/wiki

The reference is Megatron-LM's tools/preprocess_data.py: json.loads per line, each string tokenized alone, one eod after a document
that has tokens, files written by megatron-core's own IndexedDatasetBuilder. Tokens come from Hugging Face tokenizers set
up as GPT2Tokenizer is. Made with Python 3.11, megatron-core 0.16.1, tokenizers 0.22.
"""
import json, os, sys, warnings

os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
warnings.filterwarnings('ignore')
from megatron.core.datasets import indexed_dataset
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, trainers

ARTICLES = {
    'AA/wiki_00': [
        {'title': 'Bridge', 'text': 'Bridge\n\nA bridge carries a road over a river. The oldest bridges were fallen trees; later ones were built of stone.\n'},
        {'title': 'Ünïcode', 'text': 'Ünïcode — "naïve" café, Ωmega, Привет, 中文字符, 日本語, 한국어, 😀 and e\u0301.\tTab,\u00a0no-break space, zero\u200bwidth.'},
        {'title': 'Empty', 'text': ''},
        {'title': 'Code', 'text': 'def area(width, height):\n    if width < 0:\n        raise ValueError("it\'s negative")\n    return width * height  # 12345 67\n\n\n'},
    ],
    'AA/wiki_01': [
        {'title': 'End', 'text': 'The literal text <|endoftext|> ends nothing.<|endoftext|>'},
        {'title': 'Parts', 'text': ['A first sentence.', '', ' A second sentence, after an empty one.']},
        {'title': 'No parts', 'text': []},
        {'title': 'Blanks', 'text': '   \n \n  leading and trailing   '},
    ],
    'AB/wiki_02': [{'title': 'River %d' % i, 'text': 'River %d\n\nThe river number %d is %d km long, and %d bridges cross it.\n' % (i, i, i * 17 % 97, i % 5)} for i in range(40)],
}


def lines(articles, ascii_only):
    for number, article in enumerate(articles):
        yield json.dumps({'id': str(number), 'revid': '7', 'url': 'https://wiki.example/?curid=%d' % number, **article}, ensure_ascii=ascii_only)


def train(texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=420, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=['<|endoftext|>'], show_progress=False))
    return tokenizer


def main(root):
    texts = [t for articles in ARTICLES.values() for a in articles for t in ([a['text']] if isinstance(a['text'], str) else a['text'])]
    os.makedirs(root, exist_ok=True)
    train(texts).model.save(root)
    tokenizer = Tokenizer(models.BPE.from_file(root + '/vocab.json', root + '/merges.txt'))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens([AddedToken('<|endoftext|>', special=True, normalized=True)])
    eod, dtype = tokenizer.token_to_id('<|endoftext|>'), indexed_dataset.DType.optimal_dtype(tokenizer.get_vocab_size())
    for name, articles in ARTICLES.items():
        source, prefix = '%s/text/%s' % (root, name), '%s/goldens/text/%s_text_document' % (root, name)
        os.makedirs(os.path.dirname(source), exist_ok=True)
        os.makedirs(os.path.dirname(prefix), exist_ok=True)
        with open(source, 'w', encoding='utf-8') as out:
            out.writelines(line + '\n' for line in lines(articles, ascii_only=name.startswith('AA')))
        builder = indexed_dataset.IndexedDatasetBuilder(prefix + '.bin', dtype=dtype)
        for line in open(source, encoding='utf-8'):
            text, ids, lengths = json.loads(line)['text'], [], []
            for sentence in text if isinstance(text, list) else [text]:
                sentence_ids = tokenizer.encode(sentence).ids
                if sentence_ids:
                    ids.extend(sentence_ids)
                    lengths.append(len(sentence_ids))
            if ids:
                ids.append(eod)
                lengths[-1] += 1
            builder.add_document(ids, lengths)
        builder.finalize(prefix + '.idx')


main(sys.argv[1])
