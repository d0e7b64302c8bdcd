#include "libcore/checkpoint/tensor_file.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/elements.h"

namespace megalith {

Shape StoredTensor::shape() const {
  if (extents.size() > Shape::kMaxRank)
    fail(ErrorKind::kData, "tensor ", quote(name), " has ", extents.size(), " axes; at most ",
         Shape::kMaxRank, " can be read");
  Shape out{1};
  out.rank = std::max(1, static_cast<int>(extents.size()));
  std::copy(extents.begin(), extents.end(), out.dim.begin());
  return out;
}

const StoredTensor* TensorFile::find(std::string_view name) const {
  const auto& all = tensors();
  const auto it =
      std::lower_bound(all.begin(), all.end(), name,
                       [](const StoredTensor& t, std::string_view wanted) { return t.name < wanted; });
  return it == all.end() || it->name != name ? nullptr : &*it;
}

const StoredTensor& TensorFile::at(std::string_view name) const {
  if (const StoredTensor* tensor = find(name)) return *tensor;
  std::vector<std::string> names;
  for (const StoredTensor& tensor : tensors()) names.push_back(tensor.name);
  const auto near = nearest(name, names);
  fail(ErrorKind::kData, path(), ": no tensor ", quote(name),
       near ? "; the nearest name is " + quote(*near) : "");
}

const StoredTensor& TensorFile::checked(const Box& box, ConstView out) const {
  const StoredTensor& tensor = at(box.name);
  if (tensor.shape() != box.global)
    fail(ErrorKind::kData, path(), ": tensor ", quote(box.name), " is ", tensor.shape(), ", wanted ",
         box.global);
  if (!fits(box.global, box.offset, out.shape))
    fail(ErrorKind::kInternal, "block ", out.shape, " at ", box.offset, " of ", quote(box.name), " ",
         box.global);
  if (!tensor.dtype || !convertible(*tensor.dtype, out.dtype))
    fail(ErrorKind::kData, path(), ": tensor ", quote(box.name), " is stored as ", tensor.dtype_name,
         ", which cannot be read as ", name_of(out.dtype));
  return tensor;
}

}  // namespace megalith
