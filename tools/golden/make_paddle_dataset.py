#!/usr/bin/env python3
"""Writes tests/train/goldens/paddle/corpus_ids.npy and corpus_idx.npz as PaddleNLP's create_pretraining_data.py
saves a GPT corpus (numpy.save, numpy.savez; needs numpy):  tools/golden/make_paddle_dataset.py"""
import os
import numpy as np

folder = os.path.join(os.path.dirname(__file__), "../../tests/train/goldens/paddle")
documents = [[5, 6, 7], [], [40000, 1], list(range(100, 140))]
np.save(os.path.join(folder, "corpus_ids.npy"), np.array(sum(documents, []), dtype=np.uint16))
np.savez(os.path.join(folder, "corpus_idx.npz"), lens=np.array([len(d) for d in documents], dtype=np.int32))
