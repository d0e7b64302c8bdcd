#include "libcore/convert/output/output.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/elements.h"
#include "libcore/checkpoint/gguf/gguf.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/io/files/file.h"
#include "libcore/io/streams/stop_signal.h"

namespace megalith {

namespace fs = std::filesystem;
namespace {

constexpr int64_t kReadAtOnce = int64_t{8} << 20;  // number of bytes of a tensor that are read at a time

}  // namespace

Storage storage_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return Storage::kF32;
    case DType::kBf16:
      return Storage::kBf16;
    case DType::kF16:
      return Storage::kF16;
    default:
      fail(ErrorKind::kData, "a model cannot have parameters of type ", name_of(dtype));
  }
}

DType plain_type(Storage storage) {
  switch (storage) {
    case Storage::kBf16:
      return DType::kBf16;
    case Storage::kF16:
      return DType::kF16;
    default:
      return DType::kF32;
  }
}

std::string_view name_of(Storage storage) {
  return storage == Storage::kQ8 ? "q8_0" : name_of(plain_type(storage));
}

uint64_t stored_bytes(Storage storage, int64_t elements) {
  if (storage == Storage::kQ8) return gguf_bytes(GgufType::kQ8, elements);
  return static_cast<uint64_t>(elements) * size_of(plain_type(storage));
}

uint64_t bytes_of(const OutputPlan& plan) {
  uint64_t bytes = 0;
  for (const OutputFile& file : plan)
    for (const OutputTensor& tensor : file.tensors) bytes += tensor.bytes();
  return bytes;
}

int64_t elements_of(const OutputPlan& plan) {
  int64_t elements = 0;
  for (const OutputFile& file : plan)
    for (const OutputTensor& tensor : file.tensors) elements += tensor.shape.elements();
  return elements;
}

std::vector<TensorSpec> specs_of(const OutputFile& file) {
  std::vector<TensorSpec> specs;
  for (const OutputTensor& tensor : file.tensors)
    specs.push_back({tensor.name, plain_type(tensor.storage), tensor.shape});
  return specs;
}

void put_in_safetensors_order(OutputFile& file) {
  std::map<std::string, size_t> place;
  const std::vector<TensorSpec> order = in_safetensors_order(specs_of(file));
  for (size_t i = 0; i < order.size(); ++i) place[order[i].name] = i;
  std::sort(file.tensors.begin(), file.tensors.end(), [&](const OutputTensor& a, const OutputTensor& b) {
    return place.at(a.name) < place.at(b.name);
  });
}

std::vector<PlacedFile> create_safetensors(const OutputPlan& plan, const std::string& folder,
                                           PlacedFiles& files) {
  std::vector<PlacedFile> placed;
  for (const OutputFile& file : plan) {
    const SafetensorsLayout layout(specs_of(file));
    const size_t number = files.create(folder + "/" + file.name, layout.size);
    files.put(number, {{0, layout.head}});
    placed.push_back({number, layout.offsets});
  }
  return placed;
}

namespace {

int64_t row_bytes_of(const OutputTensor& tensor) {
  return static_cast<int64_t>(stored_bytes(tensor.storage, tensor.recipe.result_columns()));
}

// The number of rows of a result that are read together. For a transposed result, these are as many as fit,
// since each part of the result needs a part of every row of the source. Values that will be quantized count
// with the size that they have before.
int64_t rows_at_once(const OutputTensor& tensor, size_t max_bytes) {
  const auto limit = static_cast<int64_t>(max_bytes),
             width = static_cast<int64_t>(size_of(plain_type(tensor.storage)));
  return std::max<int64_t>(1, (tensor.recipe.transposed ? limit : std::min(kReadAtOnce, limit)) /
                                  (tensor.recipe.result_columns() * width));
}

void read_stored(const TensorFile& source, const OutputTensor& tensor, int64_t begin, int64_t end,
                 std::byte* out) {
  const Shape shape{end - begin, tensor.recipe.result_columns()};
  if (tensor.storage != Storage::kQ8)
    return read_recipe(source, tensor.recipe, begin, end, {out, plain_type(tensor.storage), shape});
  std::vector<float> plain(static_cast<size_t>(shape.elements()));
  read_recipe(source, tensor.recipe, begin, end, {plain.data(), DType::kF32, shape});
  if (quantize_q8_0(plain.data(), shape.elements(), out)) return;
  const bool finite = std::all_of(plain.begin(), plain.end(), [](float x) { return std::isfinite(x); });
  fail(ErrorKind::kData, source.path(), ": tensor ", quote(tensor.name), " in rows ", begin, " to ", end - 1,
       " holds numbers that are ", finite ? "too large (beyond 8.3e6)" : "not finite",
       ", which q8_0 cannot hold; give another --dtype");
}

// A tensor of a plan, by its indices.
struct TensorRef {
  size_t file, tensor;
};

std::vector<TensorRef> by_depth(const OutputPlan& plan) {
  std::vector<TensorRef> refs;
  for (size_t file = 0; file < plan.size(); ++file)
    for (size_t tensor = 0; tensor < plan[file].tensors.size(); ++tensor) refs.push_back({file, tensor});
  const auto depth = [&](const TensorRef& ref) { return plan[ref.file].tensors[ref.tensor].depth; };
  std::stable_sort(refs.begin(), refs.end(),
                   [&](const TensorRef& a, const TensorRef& b) { return depth(a) < depth(b); });
  return refs;
}

}  // namespace

size_t memory_for(const OutputPlan& plan) {
  constexpr uint64_t kMin = uint64_t{24} << 20, kMax = uint64_t{96} << 20, kBlocks = uint64_t{3} << 13;
  uint64_t largest = 0, row = 0;
  for (const OutputFile& file : plan)
    for (const OutputTensor& tensor : file.tensors) {
      largest = std::max(largest, tensor.bytes());
      row = std::max(row, static_cast<uint64_t>(row_bytes_of(tensor)));
    }
  return std::max(std::clamp(largest / 2, kMin, kMax), 3 * row) + kBlocks;
}

namespace {

/// Finds the numbers of a damaged model that are not finite: how many there are, and the first of them. A
/// number that several ranks hold is counted once. Rows that are repeated as padding are not counted again.
class SickNumbers {
 public:
  /// Examines rows of a tensor as they are written. The rows begin at element `begin` of the tensor.
  void look_at(const OutputTensor& tensor, int64_t begin, std::span<const std::byte> bytes) {
    // Q8_0 cannot hold such numbers; quantizing them has already failed
    if (tensor.storage == Storage::kQ8) return;
    const DType type = plain_type(tensor.storage);
    const auto width = static_cast<int64_t>(size_of(type));
    const Recipe& recipe = tensor.recipe;
    if (begin == 0) counts_ = !recipe.of_rank || known_.insert(region_of(recipe)).second;
    const int64_t padding = recipe.repeated * recipe.columns(), end = tensor.shape.elements() - padding;
    const int64_t own = std::min(static_cast<int64_t>(bytes.size()) / width, end - begin);
    if (!counts_ || own <= 0) return;
    const NotFinite found = find_not_finite(bytes.data(), type, own);
    if (found.count == 0) return;
    float value = 0;
    convert_elements(&value, DType::kF32, bytes.data() + found.first * width, type, 1);
    const int64_t element = begin + found.first;
    take_first(recipe.of_rank ? Place{recipe.source, source_element(recipe, element), value}
                              : Place{tensor.name, element, value});
    count_ += found.count;
  }
  /// Warns of the numbers that were found. They are counted for all formats, even if the models are compared:
  /// the few tokens of that comparison may not use them.
  void warn_of(const std::string& source) const {
    if (count_ == 0) return;
    const std::string which = count_ == 1
                                  ? "the only number that is"
                                  : concat("the first of ", format_count(count_), " numbers that are");
    warn(source, ": tensor ", quote(first_.tensor), " holds ", first_.value, " at element ", first_.element,
         ", ", which,
         " not finite: the model is damaged, its training diverged, or the type that is written is too "
         "narrow for it");
  }

 private:
  struct Place {
    std::string tensor;
    int64_t element = 0;
    float value = 0;
  };

  /// A text that identifies the part of the source that a rank holds.
  static std::string region_of(const Recipe& recipe) {
    std::string region = recipe.source;
    for (const MatrixBlock& block : recipe.blocks)
      region += concat(' ', block.row, ' ', block.rows, ' ', block.column, ' ', block.columns);
    return region;
  }

  // Keeps the place if it is the first one so far. If ranks share the columns of a tensor, they are written
  // one after the other, so a later rank may hold an earlier element.
  void take_first(const Place& place) {
    if (count_ == 0 || (place.tensor == first_.tensor && place.element < first_.element)) first_ = place;
  }

  std::set<std::string> known_;
  bool counts_ = true;  // whether numbers of the tensor that is being written are counted
  int64_t count_ = 0;
  Place first_;
};

}  // namespace

void write_tensors(const TensorFile& source, const OutputPlan& plan, const std::vector<PlacedFile>& placed,
                   PlacedFiles& files, const SeeBytes& see) {
  Progress progress("writing", static_cast<int64_t>(bytes_of(plan)), "B");
  SickNumbers sick;
  int64_t done = 0;
  for (const auto& [file, number] : by_depth(plan)) {
    const OutputTensor& tensor = plan[file].tensors[number];
    const int64_t rows = tensor.recipe.result_rows(), row_bytes = row_bytes_of(tensor);
    if (row_bytes == 0) continue;
    const int64_t step = rows_at_once(tensor, files.max_bytes());
    for (int64_t row = 0; row < rows; row += step) {
      stop_if_asked();
      const int64_t end = std::min(rows, row + step);
      const auto bytes = static_cast<size_t>((end - row) * row_bytes);
      std::byte* const memory = files.begin(
          placed[file].number, placed[file].offsets[number] + static_cast<uint64_t>(row * row_bytes), bytes);
      read_stored(source, tensor, row, end, memory);
      sick.look_at(tensor, row * tensor.recipe.result_columns(), {memory, bytes});
      if (see) see(file, number, {memory, bytes});
      files.end();
      progress.advance_to(done += static_cast<int64_t>(bytes));
    }
  }
  files.finish();
  sick.warn_of(source.path());
}

namespace {

/// Whether a conversion to megalith or megatron, or of an adapter, writes a file or folder of this name.
bool is_converted(const std::string& name) {
  constexpr std::string_view kNames[] = {
      kTrackerFile, "release", kTokenizerFolder, "adapter_config.json", "adapter_model.safetensors",
      "README.md"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace

void refuse_used(const std::string& output, bool overwrite) {
  if (!file_exists(output) || (fs::is_directory(output) && fs::is_empty(output))) return;
  if (!overwrite)
    fail(ErrorKind::kUsage, "--output ", output,
         " exists already; give a new folder, or --overwrite to replace it");
  if (!fs::is_directory(output))
    fail(ErrorKind::kUsage, "--output ", output, " is a file; wanted a folder to write");
  for (const auto& entry : fs::directory_iterator(output))
    if (const std::string name = entry.path().filename().string(); !is_converted(name))
      fail(ErrorKind::kUsage, "--output ", output, " holds ", quote(name),
           ", which no conversion writes; give a new folder");
}

std::string title_of(const std::string& output) {
  const fs::path path = fs::absolute(output).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

}  // namespace megalith
