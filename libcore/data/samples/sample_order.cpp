#include "libcore/data/samples/sample_order.h"

#include <algorithm>
#include <type_traits>

#include "libcore/base/text.h"
#include "libcore/data/samples/dataset_builder.h"
#include "libcore/hash/sha256.h"

namespace megalith {
namespace {

/// The number that an argument of --samples gives. Nothing means one epoch.
std::optional<int64_t> sample_count(const std::string& word) {
  if (word == "none" || word == "0") return std::nullopt;
  return parse_int(word);
}

DatasetRequest request_of(const SampleOrderOptions& o) {
  DatasetRequest request{.split = o.split,
                         .seq_length = o.seq_length,
                         .seed = static_cast<uint32_t>(o.seed),
                         .extra_token = !o.no_extra_token,
                         .keep_last_partial_valid = o.keep_last_partial_valid,
                         .pad = usable_pad(o.pad, o.vocab_size - 1)};
  for (size_t i = 0; i < request.samples.size(); ++i) request.samples[i] = sample_count(o.samples[i]);
  return request;
}

template <class T>
constexpr const char* numpy_name() {
  if (std::is_same_v<T, int16_t>) return "<i2";
  if (std::is_same_v<T, int32_t>) return "<i4";
  if (std::is_same_v<T, uint32_t>) return "<u4";
  return "<i8";
}

template <class Values>
std::string hash_of(const Values& values) {
  Sha256 hash;
  hash.update(values.data(), values.size() * sizeof(*values.data()));
  return hash.hex();
}

class Printer {
 public:
  Printer(std::ostream& out, int64_t lines) : out_(out), lines_(lines) {}

  void print(const std::string& name, const TrainingDataset& dataset) {
    std::visit([&](const auto& source) { print_indices(name, source); }, dataset.source());
    for (int64_t i = 0; i < std::min(lines_, dataset.size()); ++i) {
      int64_t sequences = 0;
      const std::vector<int64_t> ids = dataset.ids(i, &sequences);
      out_ << "sample " << name << ' ' << i << ' ' << hash_of(ids) << ' ' << sequences;
      for (size_t j = 0; j < std::min<size_t>(8, ids.size()); ++j) out_ << ' ' << ids[j];
      out_ << '\n';
    }
  }

 private:
  template <class Values>
  void print_index(const std::string& name, const char* kind, const Values& values, size_t columns = 1) {
    using T = std::remove_cvref_t<decltype(values[0])>;
    out_ << "index " << name << ' ' << kind << ' ' << numpy_name<T>() << ' ' << values.size() / columns;
    if (columns > 1) out_ << 'x' << columns;
    out_ << ' ' << hash_of(values) << '\n';
  }

  void print_indices(const std::string& name, const GptDataset& dataset) {
    out_ << "split " << name << " GPTDataset len " << dataset.size() << '\n';
    print_index(name, "document", dataset.index().documents);
    std::visit([&](const auto& v) { print_index(name, "sample", v, 2); }, dataset.index().samples);
    std::visit([&](const auto& v) { print_index(name, "shuffle", v); }, dataset.index().shuffle);
  }

  void print_indices(const std::string& name, const BlendedDataset& blend) {
    for (size_t i = 0; i < blend.datasets().size(); ++i)
      print_indices(concat(name, '.', i), blend.datasets()[i]);
    out_ << "split " << name << " BlendedDataset len " << blend.size() << '\n';
    print_index(name, "dataset", blend.index().dataset);
    print_index(name, "dataset_sample", blend.index().sample);
  }

  std::ostream& out_;
  int64_t lines_;
};

}  // namespace

void SampleOrderOptions::validate(Problems& problems) const {
  if (samples.size() != 3)
    problems.add(Opt{"samples"}, " has ", samples.size(), " values; wanted three, for train, valid and test");
  for (const std::string& word : samples)
    if (word != "none" && parse_int(word).value_or(-1) < 0)
      problems.refuse({"samples"}, quote(word), "a number from 0 on, or \"none\"");
}

void dump_sample_order(const SampleOrderOptions& options, std::ostream& out) {
  const OpenBlend open = open_blend(options.data_path, options.split);
  const TrainingDatasets datasets = build_datasets(open, request_of(options));
  out << "config " << to_json(options).dump() << '\n';
  Printer printer(out, options.lines);
  for (size_t i = 0; i < datasets.size(); ++i) {
    if (datasets[i])
      printer.print(kSplitNames[i], *datasets[i]);
    else
      out << "split " << kSplitNames[i] << " None\n";
  }
}

template std::vector<Field> fields_of<SampleOrderOptions>(SampleOrderOptions&);

}  // namespace megalith
