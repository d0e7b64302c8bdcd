#include "libcore/data/samples/gpt_dataset.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/data/samples/gpt_index_file.h"

namespace megalith {

GptDataset::GptDataset(IndexedDataset data, GptSpec spec, int64_t pad, const std::string& index_folder)
    : data_(std::move(data)),
      spec_(std::move(spec)),
      pad_(pad),
      index_(index_folder.empty() ? build_gpt_index(data_, spec_)
                                  : kept_gpt_index(data_, spec_, index_folder)) {}

/// Copies the ids of a sample; returns the number of sequences that they come from.
template <class Id>
int64_t GptDataset::copy_ids(int64_t sample, std::span<Id> out) const {
  if (sample < 0 || sample >= size())
    fail(ErrorKind::kInternal, data_.prefix(), ", split ", spec_.name, ": sample ", sample, " of ", size(),
         " requested");
  const int64_t piece = index_.piece(sample), extra = spec_.extra_token ? 1 : 0;
  const auto [first, begin] = index_.begin_of(piece);
  const auto [last, end] = index_.begin_of(piece + 1);
  int64_t done = 0;
  for (int64_t at = first; at <= last; ++at) {
    const int32_t sequence = index_.documents[static_cast<size_t>(at)];
    const int64_t from = at == first ? begin : 0;
    const int64_t to = at == last ? end + extra : data_.sequence_length(sequence);
    const TokenSpan ids = data_.sequence(sequence, from, to - from);
    ids.copy_to(out.data() + done);
    const auto copied = out.subspan(static_cast<size_t>(done), static_cast<size_t>(ids.size()));
    if (const auto negative = std::find_if(copied.begin(), copied.end(), [](Id id) { return id < 0; });
        negative != copied.end())  // a negative id would be mistaken for padding
      fail(ErrorKind::kData, data_.prefix(), ": sample ", sample, " of split ", spec_.name, ", sequence ",
           sequence, ", holds the id ", *negative, "; ids are not negative: the .bin is damaged");
    done += ids.size();
  }
  std::fill(out.begin() + done, out.end(), static_cast<Id>(pad_));
  return last - first + 1;
}

std::vector<int64_t> GptDataset::ids(int64_t sample, int64_t* sequences) const {
  std::vector<int64_t> out(static_cast<size_t>(spec_.seq_length + (spec_.extra_token ? 1 : 0)));
  const int64_t n = copy_ids(sample, std::span(out));
  if (sequences) *sequences = n;
  return out;
}

void GptDataset::get(int64_t sample, const SampleView& out) const {
  const auto length = static_cast<size_t>(spec_.seq_length);
  if (out.tokens.size() != length || out.labels.size() != length || out.loss_mask.size() != length)
    fail(ErrorKind::kInternal, "room for ", out.tokens.size(), " tokens given, wanted ", length);
  const auto pad = static_cast<int32_t>(pad_);
  // without the extra token, the last label is unknown and stays `pad`
  std::vector<int32_t> row(length + 1, pad);
  copy_ids(sample, std::span(row).first(length + (spec_.extra_token ? 1 : 0)));
  for (size_t i = 0; i < length; ++i) {
    out.tokens[i] = row[i] == pad ? 0 : row[i];
    out.labels[i] = row[i + 1] == pad ? 0 : row[i + 1];
    out.loss_mask[i] = row[i + 1] == pad ? 0.0f : 1.0f;
  }
}

}  // namespace megalith
