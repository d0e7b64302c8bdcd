#pragma once

#include <string>
#include <vector>

#include "libcore/text/bpe/byte_pair_encoder.h"
#include "libcore/text/bpe/train/piece_counts.h"

namespace megalith {

/// A byte-level BPE vocabulary: tokens by id, in GPT-2's byte alphabet, and merges by rank.
struct TrainedBpe {
  std::vector<std::string> special_tokens;  // as plain text; each is one of `tokens`
  std::vector<std::string> tokens;
  std::vector<BytePairEncoder::Merge> merges;
};

/// Learns merges until there are `vocab_size` tokens or no pair is left. Ids and merges, ties included, equal
/// those of Hugging Face's BpeTrainer(vocab_size, min_frequency=0, special_tokens,
/// initial_alphabet=ByteLevel.alphabet()): first the special tokens, then the 256 bytes in the order of their
/// characters, then repeatedly the most frequent pair; of equally frequent pairs, that with the smaller left
/// id, then that with the smaller right id (docs/formats/tokenizer.md). The result does not depend on the
/// order of `pieces`. Throws kUsage if vocab_size has no room for the special tokens and 256 bytes.
TrainedBpe train_bpe(const PieceCounts& pieces, int vocab_size,
                     const std::vector<std::string>& special_tokens);

}  // namespace megalith
