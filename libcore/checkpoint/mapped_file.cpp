#include "libcore/checkpoint/mapped_file.h"

#include <algorithm>
#include <set>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

constexpr size_t kMostNamed = 5;  // names in one complaint

// The file's name of a tensor: with the family's prefix, or without it.
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

StoredTensor checked_parts(const TensorFile& file, const MappedTensor& mapped) {
  const StoredTensor& first = file.at(mapped.theirs.front().name);
  for (const TheirTensor& part : mapped.theirs) {
    const StoredTensor& found = file.at(part.name);
    if (found.shape() != part.shape)
      fail(ErrorKind::kData, file.path(), ": tensor ", quote(part.name), " is ", found.shape(),
           ", but the configuration says ", part.shape);
    if (found.dtype != first.dtype)
      fail(ErrorKind::kData, file.path(), ": tensor ", quote(part.name), " is ", found.dtype_name,
           ", its sister ", quote(first.name), " ", first.dtype_name);
  }
  if (!first.dtype)
    fail(ErrorKind::kData, file.path(), ": tensor ", quote(first.name), " is ", first.dtype_name,
         ", which is no parameter's type");
  StoredTensor ours{.name = mapped.ours, .dtype_name = first.dtype_name, .dtype = first.dtype, .extents = {}};
  for (int axis = 0; axis < mapped.shape.rank; ++axis) ours.extents.push_back(mapped.shape[axis]);
  return ours;
}

}  // namespace

MappedTensorFile::MappedTensorFile(std::unique_ptr<TensorFile> theirs, const NameMap& map,
                                   const ModelConfig& config)
    : theirs_(std::move(theirs)), mapped_(mapped_tensors(map, config)) {
  std::sort(mapped_.begin(), mapped_.end(),
            [](const MappedTensor& a, const MappedTensor& b) { return a.ours < b.ours; });
  for (MappedTensor& mapped : mapped_) {
    for (TheirTensor& part : mapped.theirs) part.name = name_in(*theirs_, part.name, map);
    tensors_.push_back(checked_parts(*theirs_, mapped));
  }
  refuse_unmapped(map);
}

void MappedTensorFile::refuse_unmapped(const NameMap& map) const {
  std::set<std::string> known{
      "lm_head.weight"};  // of a tied model: a second copy of the embedding, which transformers ignores too
  for (const MappedTensor& mapped : mapped_)
    for (const TheirTensor& part : mapped.theirs) known.insert(part.name);
  std::vector<std::string> unknown;
  for (const StoredTensor& tensor : theirs_->tensors())
    if (!known.contains(tensor.name) && !ends_with_any(tensor.name, map.skipped))
      unknown.push_back(quote(tensor.name));
  if (unknown.empty()) return;
  const size_t named = std::min(unknown.size(), kMostNamed);
  fail(ErrorKind::kData, path(), ": ", unknown.size(), " tensors have no place in a ", map.architecture,
       " of this configuration: ", join(std::span(unknown).first(named), ", "),
       named < unknown.size() ? ", …" : "");
}

// Our whole tensor from its parts; `ours` in the stored type.
void MappedTensorFile::assemble(const MappedTensor& mapped, View ours) const {
  if (mapped.row->transform == Transform::kCopy)  // the same bytes: no second buffer
    return theirs_->read(Box::whole(mapped.theirs[0].name, mapped.theirs[0].shape),
                         ours.as_shape(mapped.theirs[0].shape));
  std::vector<std::byte> theirs;
  for (size_t part = 0; part < mapped.theirs.size(); ++part) {
    const auto& [name, shape] = mapped.theirs[part];
    theirs.resize(static_cast<size_t>(shape.elements()) * size_of(ours.dtype));
    const View view{theirs.data(), ours.dtype, shape};
    theirs_->read(Box::whole(name, shape), view);
    to_ours(mapped, part, view, ours);
  }
}

void MappedTensorFile::read(const Box& box, View out) const {
  const StoredTensor& tensor = checked(box, out);
  const MappedTensor& mapped = mapped_[static_cast<size_t>(&tensor - tensors_.data())];
  if (out.shape == mapped.shape && out.dtype == tensor.dtype) return assemble(mapped, out);
  std::vector<std::byte> ours(static_cast<size_t>(mapped.shape.elements()) * size_of(*tensor.dtype));
  const View whole{ours.data(), *tensor.dtype, mapped.shape};
  assemble(mapped, whole);
  copy_block(whole, box.offset, out, Box::whole({}, out.shape).offset, out.shape);
}

}  // namespace megalith
