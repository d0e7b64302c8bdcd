#include "libcore/train/data/mock_data.h"

#include <random>

namespace megalith {
namespace {

constexpr uint32_t kLongest = 4096;  // maximum length of a document, as in Megatron

/// Fills one sample with documents. Its last label is the token that follows its last token.
void fill_sample(const SampleView& out, int64_t ids, int32_t eod, std::mt19937& random) {
  const size_t size = out.tokens.size();
  int32_t token = 0, last = 0;  // position in the document (from 1), and the position of its end
  for (size_t i = 0; i <= size; ++i) {
    if (token == last) {
      token = 0;
      last = static_cast<int32_t>(random() % kLongest + 1);
    }
    ++token;
    const auto id = token == last ? eod : static_cast<int32_t>(1 + (token - 1) % ids);
    if (i < size) out.tokens[i] = id;
    if (i > 0) out.labels[i - 1] = id;
  }
  for (float& weight : out.loss_mask) weight = 1;
}

DataSet part(int64_t vocab_size, int32_t eod, std::array<uint32_t, 2> seed, int64_t samples) {
  // Number of ids other than 0 and the end-of-document id.
  const int64_t ids = vocab_size > 2 ? vocab_size - 2 : 1;
  return {.read =
              [=](int64_t index, const SampleView& out) {
                std::seed_seq place{seed[0], seed[1], static_cast<uint32_t>(index),
                                    static_cast<uint32_t>(static_cast<uint64_t>(index) >> 32)};
                std::mt19937 random(place);
                fill_sample(out, ids, eod, random);
              },
          .size = samples};
}

}  // namespace

DataSets mock_data(int64_t vocab_size, int32_t eod, uint32_t seed, const std::array<int64_t, 3>& samples) {
  return {.train = part(vocab_size, eod, {seed, 0}, samples[0]),
          .valid = part(vocab_size, eod, {seed, 1}, samples[1]),
          .test = part(vocab_size, eod, {seed, 2}, samples[2])};
}

}  // namespace megalith
