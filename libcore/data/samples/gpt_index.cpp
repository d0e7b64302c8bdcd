#include "libcore/data/samples/gpt_index.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/machine/huge_pages.h"
#include "libcore/io/streams/stop_signal.h"

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

/// Determines how often the range is repeated, and whether its last repetition is shuffled separately.
void plan_epochs(const IndexedDataset& data, const GptSpec& spec, GptIndexPlan& plan) {
  const int64_t per_epoch = plan.tokens_per_epoch, length = spec.seq_length;
  if (!spec.samples || *spec.samples == 0) return;
  if (per_epoch == 0)
    fail(ErrorKind::kData, place(data, spec), " holds no token, but ", *spec.samples,
         " samples are requested; give --split a larger share for it, or more documents");
  plan.epochs = (*spec.samples * length + plan.extra + per_epoch - 1) / per_epoch;
  if (plan.epochs > kMax32)
    fail(ErrorKind::kData, place(data, spec), " holds ", per_epoch, " tokens; ", *spec.samples,
         " samples of ", length, " would repeat them ", plan.epochs, " times");
  if (plan.epochs == 1) return;
  const int64_t before_last = ((plan.epochs - 1) * per_epoch - plan.extra) / length;
  const int64_t from_last = *spec.samples - before_last, full_epoch = (per_epoch - plan.extra) / length;
  if (from_last < static_cast<int64_t>(0.80 * static_cast<double>(full_epoch))) plan.apart = before_last;
}

/// The number of samples in the row of ids. If an incomplete last sample counts, the number is computed in
/// binary32, as in helpers.cpp.
int64_t count_pieces(const GptIndexPlan& plan, const GptSpec& spec) {
  const int64_t cuttable = std::max<int64_t>(0, plan.epochs * plan.tokens_per_epoch - plan.extra);
  if (spec.drop_last) return cuttable / spec.seq_length;
  return static_cast<int64_t>(std::ceil(static_cast<float>(cuttable) / static_cast<float>(spec.seq_length)));
}

/// An index of fewer entries is made at once: a run may have thousands of datasets.
constexpr size_t kLong = size_t{1} << 20;

/// Numpy's shuffle, which says how far it is and ends at a signal. `what`: the elements.
template <class T>
void shuffle_told(NumpyRandomState& random, std::span<T> elements, const char* what) {
  std::optional<Progress> progress;
  if (elements.size() >= kLong)
    progress.emplace(concat("order of ", what), static_cast<int64_t>(elements.size()), what);
  random.shuffle(elements, [&](size_t done) {
    stop_if_asked();
    if (progress) progress->advance_to(static_cast<int64_t>(done));
  });
}

/// An array of `size` numbers that `fill` writes. A small one is in the heap: thousands of datasets would
/// otherwise have more mappings than a process may have.
template <class T, class Fill>
SharedArray<T> filled(int64_t size, const Fill& fill) {
  const size_t bytes = static_cast<size_t>(size) * sizeof(T);
  if (bytes < HugePages::kLargePage) {
    std::vector<T> values(static_cast<size_t>(size));
    fill(std::span(values));
    return SharedArray(std::move(values));
  }
  auto room = std::make_shared<HugePages>(bytes, HugePages::Backing::kReserved);
  const std::span<T> values = room->as<T>();
  fill(values);
  return {values, std::move(room)};
}

}  // namespace

bool wide_sample_index(int64_t documents, int32_t longest_sequence) {
  return std::max<int64_t>(documents, longest_sequence) > kMax32;
}

bool wide_shuffle_index(int64_t samples) {
  return samples >= int64_t{std::numeric_limits<uint32_t>::max()} - 1;
}

size_t GptIndexPlan::bytes() const {
  const int64_t pair = wide_samples ? 16 : 8, sample = wide_shuffle ? 8 : 4;
  return static_cast<size_t>(4 * documents + pair * (pieces + 1) + sample * pieces);
}

GptIndexPlan plan_gpt_index(const IndexedDataset& data, const GptSpec& spec) {
  check_spec(data, spec);
  GptIndexPlan plan{.tokens_per_epoch = data.tokens_of(spec.range.begin, spec.range.end),
                    .extra = spec.extra_token ? 1 : 0};
  plan_epochs(data, spec, plan);
  plan.documents = (spec.range.end - spec.range.begin) * plan.epochs;
  plan.pieces = count_pieces(plan, spec);
  plan.wide_samples = wide_sample_index(plan.documents, data.longest_sequence());
  plan.wide_shuffle = wide_shuffle_index(plan.pieces);
  return plan;
}

GptIndexMaker::GptIndexMaker(const IndexedDataset& data, const GptSpec& spec)
    : data_(data), spec_(spec), plan_(plan_gpt_index(data, spec)), random_(spec.seed) {}

void GptIndexMaker::documents(std::span<int32_t> out) {
  const int64_t epoch = spec_.range.end - spec_.range.begin;
  if (epoch == 0) return;
  for (size_t i = 0; i < out.size(); i += static_cast<size_t>(epoch)) {
    const std::span<int32_t> one = out.subspan(i, static_cast<size_t>(epoch));
    std::iota(one.begin(), one.end(), static_cast<int32_t>(spec_.range.begin));
  }
  const size_t last = plan_.apart < 0 ? 0 : static_cast<size_t>(epoch);
  shuffle_told(random_, out.first(out.size() - last), "documents");
  shuffle_told(random_, out.last(last), "documents");
}

template <class T>
void GptIndexMaker::samples(std::span<const int32_t> documents, std::span<T> out) {
  constexpr int64_t kRowsWithoutPause = int64_t{1} << 18;
  std::optional<Progress> progress;
  if (out.size() >= kLong) progress.emplace("cutting documents into samples", plan_.pieces, "samples", rows_);
  for (size_t i = 0; i + 1 < out.size(); i += 2) {
    if (rows_ % kRowsWithoutPause == 0) {
      stop_if_asked();
      if (progress) progress->advance_to(rows_);
    }
    if (rows_++ > 0) next_piece(documents);
    out[i] = static_cast<T>(at_);
    out[i + 1] = static_cast<T>(offset_);
  }
  if (rows_ == plan_.pieces + 1 && offset_ < 0)
    fail(ErrorKind::kData, place(data_, spec_),
         ": the order of its sequences ends with an empty one, where the partial last sample cannot end "
         "(Megatron refuses this too); drop the last partial sample, or preprocess without empty sequences");
}

/// Moves to the end of the next piece, as build_sample_idx (helpers.cpp) does. Each piece begins `extra` ids
/// before the end of the previous one, so that the two share these ids.
void GptIndexMaker::next_piece(std::span<const int32_t> documents) {
  constexpr int64_t kAhead = 32;  // lengths that are fetched while earlier ones are added up
  const auto last = static_cast<int64_t>(documents.size()) - 1;
  const auto document = [&](int64_t at) { return documents[static_cast<size_t>(at)]; };
  for (int64_t remaining = spec_.seq_length + plan_.extra;;) {
    const int64_t size = data_.sequence_length(document(at_)), rest = size - offset_;
    if (rest >= remaining) {
      offset_ += remaining - plan_.extra;
      return;
    }
    if (at_ == last) {
      offset_ = size - plan_.extra;
      return;
    }
    remaining -= rest;
    ++at_;
    offset_ = 0;
    if (at_ + kAhead <= last) data_.prefetch_length(document(at_ + kAhead));
  }
}

template <class T>
void GptIndexMaker::shuffle(std::span<T> out) {
  std::iota(out.begin(), out.end(), T{0});
  const size_t first = plan_.apart < 0 ? out.size() : static_cast<size_t>(plan_.apart);
  shuffle_told(random_, out.first(first), "samples");
  shuffle_told(random_, out.subspan(first), "samples");
}

template void GptIndexMaker::samples(std::span<const int32_t>, std::span<int32_t>);
template void GptIndexMaker::samples(std::span<const int32_t>, std::span<int64_t>);
template void GptIndexMaker::shuffle(std::span<uint32_t>);
template void GptIndexMaker::shuffle(std::span<int64_t>);

GptIndex build_gpt_index(const IndexedDataset& data, const GptSpec& spec) {
  GptIndexMaker maker(data, spec);
  const GptIndexPlan& plan = maker.plan();
  GptIndex index;
  index.epochs = plan.epochs;
  index.last_epoch_apart = plan.apart >= 0;
  index.documents = filled<int32_t>(plan.documents, [&](auto out) { maker.documents(out); });
  const auto samples = [&](auto out) { maker.samples(index.documents.span(), out); };
  const auto shuffle = [&](auto out) { maker.shuffle(out); };
  if (plan.wide_samples)
    index.samples = filled<int64_t>(2 * (plan.pieces + 1), samples);
  else
    index.samples = filled<int32_t>(2 * (plan.pieces + 1), samples);
  if (plan.wide_shuffle)
    index.shuffle = filled<int64_t>(plan.pieces, shuffle);
  else
    index.shuffle = filled<uint32_t>(plan.pieces, shuffle);
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

}  // namespace megalith
