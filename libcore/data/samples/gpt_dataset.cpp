#include "libcore/data/samples/gpt_dataset.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "libcore/base/error.h"
#include "libcore/base/random.h"
#include "libcore/data/samples/gpt_index_file.h"

namespace megalith {
namespace {

constexpr int64_t kMax32 = std::numeric_limits<int32_t>::max();

std::string place(const IndexedDataset& data, const GptSpec& spec) {
  return concat(data.prefix(), ", split ", spec.name, " (sequences ", spec.range.begin, " to ",
                spec.range.end, " of ", data.sequences(), ")");
}

void check_spec(const IndexedDataset& data, const GptSpec& spec) {
  if (is_floating(data.dtype()))
    fail(ErrorKind::kData, data.prefix(), ": holds ", name_of(data.dtype()), " values, wanted token ids");
  if (data.sequences() > kMax32)
    fail(ErrorKind::kData, data.prefix(), ": ", data.sequences(), " sequences; a sample order has room for ",
         kMax32, ": split the dataset and blend the parts");
  // With these limits, the products below fit in 64 bits, and the remaining length of a sample in 32 bits, as
  // in Megatron's helpers.
  constexpr int64_t kMaxLength = int64_t{1} << 30, kMaxSamples = int64_t{1} << 32;
  if (spec.seq_length < 1 || spec.seq_length > kMaxLength)
    fail(ErrorKind::kUsage, "--seq-length ", spec.seq_length, "; wanted 1 to ", kMaxLength);
  if (spec.samples && (*spec.samples < 0 || *spec.samples > kMaxSamples))
    fail(ErrorKind::kUsage, *spec.samples, " samples requested; wanted 0 to ", kMaxSamples);
}

int64_t tokens_of(const IndexedDataset& data, SequenceRange range) {
  int64_t sum = 0;
  for (int64_t i = range.begin; i < range.end; ++i) sum += data.sequence_length(i);
  return sum;
}

/// The length of the row of ids, and how it is split.
struct Plan {
  int64_t tokens_per_epoch = 0, epochs = 1;
  int64_t extra = 1;
  /// The number of samples before the last epoch, if the last epoch is shuffled separately; otherwise -1. As
  /// in Megatron, it is shuffled separately if less than 80 % of it is needed.
  int64_t apart = -1;

  int64_t cuttable() const { return std::max<int64_t>(0, epochs * tokens_per_epoch - extra); }
};

Plan plan_epochs(const IndexedDataset& data, const GptSpec& spec) {
  Plan plan{.tokens_per_epoch = tokens_of(data, spec.range), .extra = spec.extra_token ? 1 : 0};
  const int64_t per_epoch = plan.tokens_per_epoch, length = spec.seq_length;
  if (!spec.samples || *spec.samples == 0) return plan;
  if (per_epoch == 0)
    fail(ErrorKind::kData, place(data, spec), " holds no token, but ", *spec.samples,
         " samples are requested; give --split a larger share for it, or more documents");
  plan.epochs = (*spec.samples * length + plan.extra + per_epoch - 1) / per_epoch;
  if (plan.epochs > kMax32)
    fail(ErrorKind::kData, place(data, spec), " holds ", per_epoch, " tokens; ", *spec.samples,
         " samples of ", length, " would repeat them ", plan.epochs, " times");
  if (plan.epochs == 1) return plan;
  const int64_t before_last = ((plan.epochs - 1) * per_epoch - plan.extra) / length;
  const int64_t from_last = *spec.samples - before_last, full_epoch = (per_epoch - plan.extra) / length;
  if (from_last < static_cast<int64_t>(0.80 * static_cast<double>(full_epoch))) plan.apart = before_last;
  return plan;
}

std::vector<int32_t> shuffled_documents(SequenceRange range, int64_t epochs, NumpyRandomState& random) {
  const int64_t n = range.end - range.begin;
  std::vector<int32_t> documents(static_cast<size_t>(n * epochs));
  for (auto epoch = documents.begin(); epoch != documents.end(); epoch += n)
    std::iota(epoch, epoch + n, static_cast<int32_t>(range.begin));
  random.shuffle(std::span(documents));
  return documents;
}

std::vector<int32_t> document_index(SequenceRange range, const Plan& plan, NumpyRandomState& random) {
  if (range.end == range.begin) return {};
  if (plan.apart < 0) return shuffled_documents(range, plan.epochs, random);
  std::vector<int32_t> documents = shuffled_documents(range, plan.epochs - 1, random);
  const std::vector<int32_t> last = shuffled_documents(range, 1, random);
  documents.insert(documents.end(), last.begin(), last.end());
  return documents;
}

/// The number of samples in the row of ids. If an incomplete last sample counts, the number is computed in
/// binary32, as in helpers.cpp.
int64_t count_pieces(const Plan& plan, const GptSpec& spec) {
  if (spec.drop_last) return plan.cuttable() / spec.seq_length;
  return static_cast<int64_t>(
      std::ceil(static_cast<float>(plan.cuttable()) / static_cast<float>(spec.seq_length)));
}

/// Computes GptIndex::samples as build_sample_idx (helpers.cpp) does. Each piece begins `extra` ids before
/// the end of the previous one, so that the two share these ids.
template <class T>
SharedArray<T> sample_index(const IndexedDataset& data, const SharedArray<int32_t>& documents, int64_t pieces,
                            const GptSpec& spec, int64_t extra) {
  std::vector<T> rows;
  rows.reserve(2 * static_cast<size_t>(pieces + 1));
  int64_t at = 0, offset = 0;
  rows.insert(rows.end(), {T{0}, T{0}});
  const auto last = static_cast<int64_t>(documents.size()) - 1;
  for (int64_t piece = 0; piece < pieces; ++piece) {
    int64_t remaining = spec.seq_length + extra;
    while (remaining != 0) {
      const int64_t size = data.sequence_length(documents[static_cast<size_t>(at)]);
      const int64_t rest = size - offset;
      if (rest >= remaining) {
        offset += remaining - extra;
        remaining = 0;
      } else if (at == last) {
        offset = size - extra;
        break;
      } else {
        remaining -= rest;
        ++at;
        offset = 0;
      }
    }
    rows.insert(rows.end(), {static_cast<T>(at), static_cast<T>(offset)});
  }
  return SharedArray(std::move(rows));
}

template <class T>
std::vector<T> shuffle_index(int64_t apart, int64_t pieces, NumpyRandomState& random) {
  std::vector<T> order(static_cast<size_t>(pieces));
  std::iota(order.begin(), order.end(), T{0});
  const auto first = static_cast<size_t>(apart < 0 ? pieces : apart);
  random.shuffle(std::span(order).first(first));
  random.shuffle(std::span(order).subspan(first));
  return order;
}

}  // namespace

bool wide_sample_index(int64_t documents, int32_t longest_sequence) {
  return std::max<int64_t>(documents, longest_sequence) > kMax32;
}

bool wide_shuffle_index(int64_t samples) {
  return samples >= int64_t{std::numeric_limits<uint32_t>::max()} - 1;
}

GptIndex build_gpt_index(const IndexedDataset& data, const GptSpec& spec) {
  check_spec(data, spec);
  const Plan plan = plan_epochs(data, spec);
  NumpyRandomState random(spec.seed);
  GptIndex index;
  index.epochs = plan.epochs;
  index.last_epoch_apart = plan.apart >= 0;
  index.documents = SharedArray(document_index(spec.range, plan, random));
  const int64_t pieces = count_pieces(plan, spec);
  if (wide_sample_index(static_cast<int64_t>(index.documents.size()), data.longest_sequence()))
    index.samples = sample_index<int64_t>(data, index.documents, pieces, spec, plan.extra);
  else
    index.samples = sample_index<int32_t>(data, index.documents, pieces, spec, plan.extra);
  if (index.begin_of(pieces).second < 0)
    fail(ErrorKind::kData, place(data, spec),
         ": the order of its sequences ends with an empty one, where the partial last sample cannot end "
         "(Megatron refuses this too); drop the last partial sample, or preprocess without empty sequences");
  if (wide_shuffle_index(pieces))
    index.shuffle = SharedArray(shuffle_index<int64_t>(plan.apart, pieces, random));
  else
    index.shuffle = SharedArray(shuffle_index<uint32_t>(plan.apart, pieces, random));
  return index;
}

int64_t GptIndex::size() const {
  return std::visit([](const auto& v) { return static_cast<int64_t>(v.size()); }, shuffle);
}

int64_t GptIndex::piece(int64_t sample) const {
  return std::visit([&](const auto& v) { return static_cast<int64_t>(v[static_cast<size_t>(sample)]); },
                    shuffle);
}

std::pair<int64_t, int64_t> GptIndex::begin_of(int64_t piece) const {
  const auto at = 2 * static_cast<size_t>(piece);
  return std::visit([&](const auto& v) { return std::pair<int64_t, int64_t>(v[at], v[at + 1]); }, samples);
}

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
