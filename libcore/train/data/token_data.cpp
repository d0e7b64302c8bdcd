#include "libcore/train/data/token_data.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/data/samples/documents.h"

namespace megalith {
namespace {

/// The dataset that a sample comes from, and its number there: "corpus: sample 7 of split train".
std::string origin_of(const TrainingDataset& data, int64_t index) {
  const GptDataset* from = std::get_if<GptDataset>(&data.source());
  if (const auto* blend = std::get_if<BlendedDataset>(&data.source())) {
    const auto at = static_cast<size_t>(index);
    from = &blend->datasets()[static_cast<size_t>(blend->index().dataset[at])];
    index = blend->index().sample[at];
  }
  return concat(from->data().prefix(), ": sample ", index, " of split ", from->spec().name);
}

void require_known_ids(const TrainingDataset& data, int64_t index, const SampleView& sample,
                       int64_t vocab_size) {
  for (const std::span<const int32_t> ids : {sample.tokens, sample.labels})
    for (const int32_t id : ids)
      if (id < 0 || id >= vocab_size)
        fail(ErrorKind::kData, origin_of(data, index), " holds the id ", id, ", the vocabulary has ",
             vocab_size, " (0 to ", vocab_size - 1,
             "); the .bin was changed after it was written: compare it with megalith-data verify");
}

/// Permutes a sample of L tokens and the label of the last one. Labels that only fill it are left out of the
/// loss, as are those of an incomplete sample (see GptDataset).
void permute(const SampleView& out, const FimPermutation& fim, FimDraws& draws) {
  std::vector<int32_t> row(out.tokens.begin(), out.tokens.end());
  row.push_back(out.labels.back());
  const size_t kept = fim.permute(row, draws);
  for (size_t i = 0; i < out.tokens.size(); ++i) {
    out.tokens[i] = row[i];
    out.labels[i] = row[i + 1];
    if (i + 1 >= kept) out.loss_mask[i] = 0;
  }
}

/// Samples of one pass over the data; 0 for a blend, whose parts end at different times.
int64_t epoch_of(const TrainingDataset& data) {
  const GptDataset* one = std::get_if<GptDataset>(&data.source());
  return one ? one->size() / one->index().epochs : 0;
}

}  // namespace

DataSet data_set_of(const TrainingDataset& data, const TokenRules& rules, uint32_t part) {
  const auto read = [&data, rules, part](int64_t index, const SampleView& out) {
    data.get(index, out);
    require_known_ids(data, index, out, rules.vocab_size);
    if (!rules.fim) return;
    SampleDraws draws(rules.seed, part, index);
    permute(out, *rules.fim, draws);
  };
  return {.read = read, .size = data.size(), .epoch = epoch_of(data)};
}

void tell_documents(DataSet& set, int32_t eod, bool mask_loss) {
  if (set.size == 0) return;
  set.read.read = [read = set.read.read, eod, mask_loss](int64_t index, const SampleView& out) {
    read(index, out);
    mark_documents(out, eod, mask_loss);
  };
}

namespace {
int64_t count_labels(const SampleReader& read, int64_t index, size_t length) {
  std::vector<int32_t> tokens(length), targets(length), starts(length);
  std::vector<float> mask(length);
  read(index, {.tokens = tokens, .labels = targets, .loss_mask = mask, .starts = starts});
  return std::count_if(mask.begin(), mask.end(), [](float in_loss) { return in_loss > 0; });
}
}  // namespace

// All ranks count the labels of all samples, at every evaluation; so a sample is read for this at most once.
size_t read_as_a_whole(DataSet& set, int64_t labels, LabelsInLoss in_loss) {
  set.whole = true;
  if (in_loss == LabelsInLoss::kAll) {
    set.read.counted = [labels](int64_t) { return labels; };
    return 0;
  }
  // One more than the labels of a sample; 0: not counted yet.
  const auto known = std::make_shared<std::vector<std::atomic<int64_t>>>(static_cast<size_t>(set.size));
  set.read.counted = [read = set.read.read, length = static_cast<size_t>(labels), known](int64_t index) {
    std::atomic<int64_t>& one_more = (*known)[static_cast<size_t>(index)];
    if (one_more == 0) one_more = 1 + count_labels(read, index, length);
    return one_more - 1;
  };
  return known->size() * sizeof known->front();
}

}  // namespace megalith
