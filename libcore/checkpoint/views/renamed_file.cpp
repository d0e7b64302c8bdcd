#include "libcore/checkpoint/views/renamed_file.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/views/weights_folder.h"

namespace megalith {
namespace {

constexpr size_t kMaxNamed = 5;                        // number of tensor names in one message
constexpr int64_t kComparedAtOnce = int64_t{1} << 20;  // elements

// The name that a tensor has in the file, which may omit the family's prefix.
std::string name_in(const TensorFile& file, const std::string& name, const NameMap& map) {
  const std::string_view prefix = map.prefix;
  if (file.find(name) || !name.starts_with(prefix) ||
      !file.find(std::string_view(name).substr(prefix.size())))
    return name;
  return name.substr(prefix.size());
}

bool ends_with_any(const std::string& name, const std::vector<const char*>& endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](const char* ending) { return name.ends_with(ending); });
}

/// If the tensors come from a folder, the message names both files that contradict each other: config.json
/// and the weights file.
[[noreturn]] void refuse_shape(const TensorFile& file, const StoredTensor& found, const Shape& wanted) {
  const auto* const folder = dynamic_cast<const WeightsFolder*>(&file);
  fail(ErrorKind::kData, folder ? folder->file_of(found.name) : file.path(), ": tensor ", quote(found.name),
       " is ", found.shape(), ", but the configuration says ", wanted,
       folder ? concat(" (", folder->path(), "/config.json)") : "");
}

StoredTensor checked_parts(const TensorFile& file, const RenamedTensor& renamed) {
  const StoredTensor& first = file.at(renamed.theirs.front().name);
  for (const TheirTensor& part : renamed.theirs) {
    const StoredTensor& found = file.at(part.name);
    if (found.shape() != part.shape) refuse_shape(file, found, part.shape);
    if (found.dtype != first.dtype)
      fail(ErrorKind::kData, file.path(), ": tensor ", quote(part.name), " is ", found.dtype_name,
           ", its sister ", quote(first.name), " ", first.dtype_name);
  }
  if (!first.dtype)
    fail(ErrorKind::kData, file.path(), ": tensor ", quote(first.name), " is ", first.dtype_name,
         ", which is not a type of parameters");
  StoredTensor ours{
      .name = renamed.ours, .dtype_name = first.dtype_name, .dtype = first.dtype, .extents = {}};
  for (int axis = 0; axis < renamed.shape.rank; ++axis) ours.extents.push_back(renamed.shape[axis]);
  return ours;
}

}  // namespace

RenamedTensorFile::RenamedTensorFile(std::unique_ptr<TensorFile> theirs, const NameMap& map,
                                     const ModelConfig& config)
    : theirs_(std::move(theirs)), renamed_(renamed_tensors(map, config)) {
  std::sort(renamed_.begin(), renamed_.end(),
            [](const RenamedTensor& a, const RenamedTensor& b) { return a.ours < b.ours; });
  for (RenamedTensor& renamed : renamed_) {
    for (TheirTensor& part : renamed.theirs) part.name = name_in(*theirs_, part.name, map);
    tensors_.push_back(checked_parts(*theirs_, renamed));
  }
  refuse_unmapped(map);
  refuse_another_head(map);
}

void RenamedTensorFile::refuse_unmapped(const NameMap& map) const {
  // The file of a tied model may also hold the head, as a second copy of the embedding.
  std::set<std::string> known{head_name(map)};
  for (const RenamedTensor& renamed : renamed_)
    for (const TheirTensor& part : renamed.theirs) known.insert(part.name);
  std::vector<std::string> unknown;
  for (const StoredTensor& tensor : theirs_->tensors())
    if (!known.contains(tensor.name) && !ends_with_any(tensor.name, map.skipped))
      unknown.push_back(quote(tensor.name));
  if (unknown.empty()) return;
  const size_t named = std::min(unknown.size(), kMaxNamed);
  fail(ErrorKind::kData, path(), ": ", unknown.size(), " tensors have no place in a ", map.architecture,
       " of this configuration: ", join(std::span(unknown).first(named), ", "),
       named < unknown.size() ? ", …" : "");
}

// transformers 4 computes such a model with the embedding, transformers 5 with the head.
void RenamedTensorFile::refuse_another_head(const NameMap& map) const {
  const char* const name = head_name(map);
  const StoredTensor* const head = theirs_->find(name);
  const auto embedding = std::find_if(renamed_.begin(), renamed_.end(), [](const RenamedTensor& renamed) {
    return renamed.ours == "embedding.word_embeddings.weight";
  });
  const auto is_head = [&](const RenamedTensor& renamed) { return renamed.theirs.front().name == name; };
  if (!head || embedding == renamed_.end() || std::any_of(renamed_.begin(), renamed_.end(), is_head)) return;
  const TheirTensor& words = embedding->theirs.front();
  if (head->shape() != words.shape) refuse_shape(*theirs_, *head, words.shape);
  const int64_t rows = words.shape[0], columns = words.shape[1];
  const int64_t step = std::max<int64_t>(kComparedAtOnce / columns, 1);
  const auto values_of = [&](const std::string& tensor, int64_t row) {
    const Shape shape{std::min(step, rows - row), columns};
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    theirs_->read({tensor, words.shape, {row, 0}}, {values.data(), DType::kF32, shape});
    return values;
  };
  for (int64_t row = 0; row < rows; row += step) {
    const std::vector<float> of_head = values_of(name, row), of_words = values_of(words.name, row);
    if (std::memcmp(of_head.data(), of_words.data(), of_head.size() * sizeof(float)) != 0)
      fail(ErrorKind::kData, path(), ": tensor ", quote(name), " is not equal to ", quote(words.name),
           ", but the configuration ties them; ", map.to_untie, ", or remove one of them");
  }
}

// The columns of the transposed tensor are our rows. All runs are read in one pass over its rows, together
// with the columns between the runs. A head has few columns, so reading each head separately would read
// nearly the whole tensor each time.
void RenamedTensorFile::read_transposed(const TheirTensor& part, std::span<const RowRun> wanted,
                                        MatrixBlock block, View out) const {
  int64_t first = INT64_MAX, end = 0;
  for (const RowRun& run : wanted) {
    first = std::min(first, run.theirs);
    end = std::max(end, run.theirs + run.rows);
  }
  const int64_t columns = end - first;
  const int64_t step = transposed_at_once(columns * static_cast<int64_t>(size_of(out.dtype)));
  std::vector<std::byte> buffer(static_cast<size_t>(std::min(step, block.columns) * columns) *
                                size_of(out.dtype));
  for (int64_t done = 0; done < block.columns; done += step) {
    const View slice{buffer.data(), out.dtype, {std::min(step, block.columns - done), columns}};
    theirs_->read({part.name, part.shape, {block.column + done, first}}, slice);
    for (const RowRun& run : wanted)
      transpose_rows(slice, out.rows(run.ours, run.ours + run.rows), done, run.theirs - first);
  }
}

// Reads consecutive rows of our tensor from the parts that hold them.
void RenamedTensorFile::read_rows(const RenamedTensor& renamed, MatrixBlock block, View out) const {
  const View rows = out.as_shape({block.rows, block.columns});
  for (size_t part = 0; part < renamed.theirs.size(); ++part) {
    const PartRows layout = part_rows(renamed, part);
    const TheirTensor& theirs = renamed.theirs[part];
    std::vector<RowRun> wanted;
    for (const RowRun& run : layout.runs) {
      const int64_t begin = std::max(run.ours, block.row),
                    end = std::min(run.ours + run.rows, block.row + block.rows);
      if (begin < end) wanted.push_back({begin - block.row, run.theirs + begin - run.ours, end - begin});
    }
    if (layout.transposed && !wanted.empty()) {
      read_transposed(theirs, wanted, block, rows);
      continue;
    }
    for (const RowRun& run : wanted) {
      const View to = rows.rows(run.ours, run.ours + run.rows);
      if (theirs.shape.rank == 1)
        theirs_->read({theirs.name, theirs.shape, {run.theirs}}, to.as_shape({run.rows}));
      else
        theirs_->read({theirs.name, theirs.shape, {run.theirs, block.column}}, to);
    }
  }
}

void RenamedTensorFile::read(const Box& box, View out) const {
  const RenamedTensor& renamed = renamed_[static_cast<size_t>(&checked(box, out) - tensors_.data())];
  const MatrixForm form{renamed.shape, part_rows(renamed, 0).columns == 1};
  const int last = renamed.shape.rank - 1;
  const int64_t column = form.vector ? 0 : box.offset[last], columns = form.vector ? 1 : out.shape[last];
  const View rows = out.as_shape({out.elements() / columns, columns});
  for_each_row_run(form, box.offset, out.shape, [&](int64_t row, int64_t n, int64_t at) {
    read_rows(renamed, {row, n, column, columns}, rows.rows(at, at + n));
  });
}

ConstView RenamedTensorFile::mapped(const Box& box) const {
  const StoredTensor& tensor = at(box.name);
  const RenamedTensor& renamed = renamed_[static_cast<size_t>(&tensor - tensors_.data())];
  if (renamed.row->transform != Transform::kCopy || renamed.shape != box.global) return {};
  const TheirTensor& theirs = renamed.theirs.front();
  if (theirs.shape.elements() != renamed.shape.elements()) return {};
  const ConstView there = theirs_->mapped(Box::whole(theirs.name, theirs.shape));
  return there ? there.as_shape(renamed.shape) : ConstView{};
}

}  // namespace megalith
