#include "libcore/finetune/tuning_data.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <span>

#include "libcore/base/error.h"
#include "libcore/base/random.h"

namespace megalith {
namespace {

std::vector<int32_t> ascending(int64_t n) {
  std::vector<int32_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// Writes an example to the rows from `row` on. Returns the number of rows that it fills.
size_t put_example(const Examples::Example& example, const SampleView& out, size_t row) {
  const auto rows = static_cast<size_t>(example.rows());
  const auto begin = static_cast<std::ptrdiff_t>(row);
  std::copy_n(example.ids.begin(), rows, out.tokens.begin() + begin);
  std::copy_n(example.ids.begin() + 1, rows, out.labels.begin() + begin);
  std::copy_n(example.counts.begin() + 1, rows, out.loss_mask.begin() + begin);
  return rows;
}

}  // namespace

SampleSource in_order(const Examples& train, const Examples* dev) {
  const auto at = [&train, dev](int64_t i) -> std::optional<Examples::Example> {
    if (i < train.size()) return train[i];
    const int64_t rest = i - train.size();
    if (dev && rest < dev->size()) return (*dev)[rest];
    return std::nullopt;
  };
  SampleSource out = [at](int64_t sample, const SampleView& view) {
    if (const auto example = at(sample)) put_example(*example, view, 0);
  };
  out.length = [at](int64_t sample) {
    const auto example = at(sample);
    return example ? example->rows() : int64_t{0};
  };
  return out;
}

Packs one_by_one(const Examples& examples) {
  Packs packs;
  for (int32_t i = 0; i < examples.size(); ++i) packs.push_back({i});
  return packs;
}

Packs pack(const Examples& examples, int64_t rows) {
  std::vector<int32_t> order = ascending(examples.size());
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return examples[a].rows() > examples[b].rows(); });
  Packs packs;
  std::set<std::pair<int64_t, size_t>> room;  // (rows left, index of the pack) of each pack that is not full
  for (const int32_t i : order) {
    const int64_t wanted = examples[i].rows();
    if (wanted > rows)
      fail(ErrorKind::kInternal, "an example of ", wanted, " rows does not fit in a pack of ", rows);
    const auto found = room.lower_bound({wanted, 0});
    size_t at = packs.size();
    int64_t left = rows;
    if (found == room.end()) {
      packs.emplace_back();
    } else {
      std::tie(left, at) = *found;
      room.erase(found);
    }
    packs[at].push_back(i);
    if (left > wanted) room.insert({left - wanted, at});
  }
  return packs;
}

/// The orders of the epochs that are being read: the current one and, for a thread that reads ahead, the next
/// one.
struct TuningData::Orders {
  static constexpr size_t kMost = 3;  // epochs at a time
  std::mutex mutex;
  std::map<int64_t, std::vector<int32_t>> epochs;
};

TuningData::TuningData(const Examples& examples, Packs packs, const OrderOptions& options)
    : examples_(examples),
      packs_(std::move(packs)),
      options_(options),
      epoch_((static_cast<int64_t>(packs_.size()) + options.step - 1) / options.step * options.step),
      orders_(std::make_unique<Orders>()) {
  for (const std::vector<int32_t>& one : packs_) {
    int64_t rows = 0, counted = 0;
    for (const int32_t i : one) {
      rows += examples[i].rows();
      counted += examples[i].counted();
    }
    rows_.push_back(rows);
    counted_.push_back(counted);
  }
}

TuningData::~TuningData() = default;

double TuningData::fill(int64_t rows) const {
  const int64_t all = std::accumulate(rows_.begin(), rows_.end(), int64_t{0});
  return static_cast<double>(all) / static_cast<double>(std::max<int64_t>(1, rows * packs()));
}

size_t TuningData::bytes() const {
  // what the allocator takes for a small array: at least 32 bytes, in steps of 16, and 8 of its own
  const auto allocated = [](size_t n) { return std::max<size_t>(32, (n + 8 + 15) / 16 * 16); };
  size_t bytes = packs_.capacity() * sizeof(std::vector<int32_t>) + rows_.capacity() * sizeof rows_[0] +
                 counted_.capacity() * sizeof counted_[0] + Orders::kMost * packs_.size() * sizeof(int32_t);
  for (const std::vector<int32_t>& one : packs_) bytes += allocated(one.capacity() * sizeof one[0]);
  return bytes;
}

std::vector<int32_t> TuningData::make_order(int64_t epoch) const {
  const int64_t size = options_.group;
  std::vector<int32_t> order = ascending(packs() / size);  // order of the groups
  if (options_.shuffle)
    NumpyRandomState(options_.seed + static_cast<uint32_t>(epoch)).shuffle(std::span<int32_t>(order));
  const auto longest = [&](int32_t group) {
    const auto begin = rows_.begin() + group * size;
    return *std::max_element(begin, begin + size);
  };
  const auto longer = [&](int32_t a, int32_t b) { return longest(a) > longest(b); };
  const std::ptrdiff_t stretch = options_.sorted / size;
  for (auto begin = order.begin(); stretch > 0 && begin != order.end();) {
    const auto end = begin + std::min<std::ptrdiff_t>(stretch, order.end() - begin);
    std::stable_sort(begin, end, longer);
    begin = end;
  }
  std::vector<int32_t> each;
  each.reserve(order.size() * static_cast<size_t>(size));
  for (const int32_t group : order)
    for (int64_t i = 0; i < size; ++i) each.push_back(static_cast<int32_t>(group * size + i));
  return each;
}

const std::vector<int32_t>* TuningData::pack_of(int64_t sample) const {
  const int64_t epoch = sample / epoch_, place = sample % epoch_;
  if (place >= packs()) return nullptr;
  const std::lock_guard lock(orders_->mutex);
  auto found = orders_->epochs.find(epoch);
  if (found == orders_->epochs.end()) {
    if (orders_->epochs.size() >= Orders::kMost) orders_->epochs.erase(orders_->epochs.begin());
    found = orders_->epochs.emplace(epoch, make_order(epoch)).first;
  }
  return &packs_[static_cast<size_t>(found->second[static_cast<size_t>(place)])];
}

void TuningData::read(int64_t sample, const SampleView& out) const {
  size_t row = 0;
  if (const std::vector<int32_t>* const one = pack_of(sample))
    for (const int32_t i : *one) {
      const size_t rows = put_example(examples_[i], out, row);
      if (!out.starts.empty()) std::ranges::fill(out.starts.subspan(row, rows), static_cast<int32_t>(row));
      row += rows;
    }
  // The remaining rows are padding, which counts as a separate document.
  if (!out.starts.empty() && row < out.starts.size())
    std::ranges::fill(out.starts.subspan(row), static_cast<int32_t>(row));
}

SampleSource TuningData::source() const {
  const auto of_pack = [this](const std::vector<int64_t>& values, int64_t sample) {
    const std::vector<int32_t>* const one = pack_of(sample);
    return one == nullptr ? int64_t{0} : values[static_cast<size_t>(one - packs_.data())];
  };
  SampleSource out = [this](int64_t sample, const SampleView& view) { read(sample, view); };
  out.length = [this, of_pack](int64_t sample) { return of_pack(rows_, sample); };
  out.counted = [this, of_pack](int64_t sample) { return of_pack(counted_, sample); };
  out.example = [this](int64_t sample) {
    const std::vector<int32_t>* const one = pack_of(sample);
    return one == nullptr ? int64_t{-1} : int64_t{one->front()};
  };
  return out;
}

}  // namespace megalith
