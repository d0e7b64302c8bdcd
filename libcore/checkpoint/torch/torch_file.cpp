#include "libcore/checkpoint/torch/torch_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <set>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/elements.h"
#include "libcore/checkpoint/torch/zip_archive.h"
#include "libcore/hash/crc32.h"

namespace megalith {
namespace {

using Kind = PickleValue::Kind;
constexpr uint64_t kCheckedAtOnce = uint64_t{1} << 18;
constexpr uint64_t kGreatestExpansion = 4;  // greatest ratio of the bytes of all tensors to those of the file
// The first bytes of a file that torch.save wrote before version 1.6: a pickle that holds one long.
constexpr std::string_view kLegacyMagic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
constexpr int64_t kLegacyProtocol = 1001;
constexpr size_t kGreatestName = 1024;  // length of a tensor's name, which is all its keys joined

// The place of a storage, in bytes from the beginning of the torch file.
struct StorageBytes {
  uint64_t begin, end;
  std::optional<uint32_t> crc = {};
};

// A torch file: the whole mapped file or a part of it.
struct Part {
  std::string_view bytes;
  std::string where;
};

// Says what kind of file this is if it is not a torch file, as far as its bytes show it. The text ends a
// message.
std::string kind_of_stranger(std::string_view bytes) {
  if (bytes.empty()) return "is empty";
  if (bytes.starts_with("version https://git-lfs"))
    return "is a git-lfs pointer, not the file itself; fetch it with: git lfs pull";
  if (bytes.size() > 262 && bytes.substr(257, 5) == "ustar")
    return "is a tar archive, as torch before 0.4 wrote it; load it with torch and save it again";
  if (bytes.starts_with("GGUF")) return "is a GGUF file, not one of torch.save";
  if (bytes.starts_with("\x1f\x8b")) return "is compressed with gzip; unpack it first";
  if (bytes.size() > 8 && bytes[8] == '{') return "looks like a safetensors file, not one of torch.save";
  return "is not a file of torch.save (neither a zip archive nor its older stream)";
}

// The name of the folder within the archive: "archive" if the archive holds "archive/data.pkl".
std::string root_of(const ZipArchive& zip, const std::string& where) {
  constexpr std::string_view kPickle = "/data.pkl";
  std::vector<std::string> roots;
  for (const ZipArchive::Member& member : zip.members())
    if (member.name.ends_with(kPickle) && std::count(member.name.begin(), member.name.end(), '/') == 1)
      roots.emplace_back(member.name.substr(0, member.name.size() - kPickle.size()));
  if (roots.size() != 1)
    fail(ErrorKind::kData, where, ": the zip archive holds ", roots.size(),
         " files data.pkl, wanted one; is it a file of torch.save?");
  if (zip.find(roots[0] + "/constants.pkl"))
    fail(ErrorKind::kData, where,
         ": is a TorchScript archive, which holds code; save the state_dict instead");
  return roots[0];
}

void check_byte_order(const ZipArchive& zip, const std::string& root, const std::string& where) {
  const ZipArchive::Member* member = zip.find(root + "/byteorder");
  if (!member) return;  // written by torch before 2.1, which is little endian
  if (const std::string_view order = zip.checked_bytes_of(*member); order != "little")
    fail(ErrorKind::kData, where, ": its byte order is ", quote(shortened(order, 16)),
         "; only little can be read");
}

void check_size(const PickleStorage& storage, uint64_t found, const std::string& where) {
  uint64_t wanted = 0;
  if (__builtin_mul_overflow(storage.elements, storage.type->bytes, &wanted) || wanted != found)
    fail(ErrorKind::kData, where, ": storage ", quote(storage.key), " has ", found, " bytes, but ",
         storage.elements, " elements of ", storage.type->name, " are declared");
}

bool is_plain_key(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  });
}

struct Loaded {
  PickleTree tree;
  std::vector<StorageBytes> storages;  // parallel to tree.storages()
};

Loaded load_zip(const Part& part, CrcCheck check) {
  const ZipArchive zip(part.bytes, part.where);
  const std::string root = root_of(zip, part.where);
  check_byte_order(zip, root, part.where);
  const ZipArchive::Member& pickle = *zip.find(root + "/data.pkl");
  Loaded loaded{
      parse_pickle(check == CrcCheck::kYes ? zip.checked_bytes_of(pickle) : zip.bytes_of(pickle), part.where),
      {}};
  for (const PickleStorage& storage : loaded.tree.storages()) {
    const ZipArchive::Member* member =
        is_plain_key(storage.key) ? zip.find(concat(root, "/data/", storage.key)) : nullptr;
    if (!member) fail(ErrorKind::kData, part.where, ": has no storage ", quote(shortened(storage.key, 64)));
    check_size(storage, member->end - member->begin, part.where);
    loaded.storages.push_back({member->begin, member->end, member->crc});
  }
  return loaded;
}

// The stream before torch 1.6: four pickles (magic number, protocol, system, object), a pickled list of
// storage keys, then for each key an int64 count of elements and their bytes.
class LegacyStream {
 public:
  explicit LegacyStream(const Part& part) : part_(part), at_(kLegacyMagic.size()) {}

  Loaded load() {
    check_system();
    Loaded loaded{next_pickle(), {}};
    const PickleTree keys = next_pickle();
    std::map<std::string_view, StorageBytes> found;
    const auto elements = declared(loaded.tree);
    for (const PickleRef key : keys_of(keys)) {
      const std::string_view name = keys[key].text();
      const auto it = elements.find(name);
      if (it == elements.end()) refuse("storage ", quote(shortened(name, 64)), " belongs to no tensor");
      found[name] = next_storage(*it->second);
    }
    for (const PickleStorage& storage : loaded.tree.storages()) {
      const auto it = found.find(storage.key);
      if (it == found.end()) refuse("has no storage ", quote(shortened(storage.key, 64)));
      check_size(storage, it->second.end - it->second.begin, part_.where);
      loaded.storages.push_back(it->second);
    }
    return loaded;
  }

 private:
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(ErrorKind::kData, part_.where, ": ", parts...);
  }
  PickleTree next_pickle() {
    size_t used = 0;
    PickleTree tree = parse_pickle(part_.bytes.substr(at_), part_.where, used);
    at_ += used;
    return tree;
  }
  void check_system() {
    const PickleTree protocol = next_pickle();
    if (const PickleValue& v = protocol[protocol.root()];
        v.kind != Kind::kInt || v.whole() != kLegacyProtocol)
      refuse("is of an unknown version of torch's older format");
    const PickleTree system = next_pickle();
    const PickleValue* little = system.find(system.root(), "little_endian");
    if (!little || little->kind != Kind::kBool || little->whole() == 0)
      refuse("was not written on a little-endian machine; only such files can be read");
  }
  static std::map<std::string_view, const PickleStorage*> declared(const PickleTree& tree) {
    std::map<std::string_view, const PickleStorage*> out;
    for (const PickleStorage& storage : tree.storages()) out.emplace(storage.key, &storage);
    return out;
  }
  const std::vector<PickleRef>& keys_of(const PickleTree& keys) const {
    const PickleValue& list = keys[keys.root()];
    const bool texts =
        list.kind == Kind::kList && std::all_of(list.items().begin(), list.items().end(),
                                                [&](PickleRef key) { return keys[key].kind == Kind::kText; });
    if (!texts) refuse("its list of storages is not a list");
    return list.items();
  }
  StorageBytes next_storage(const PickleStorage& storage) {
    int64_t elements = 0;
    if (part_.bytes.size() - at_ < sizeof elements)
      refuse("ends within its storages; it was probably truncated");
    std::memcpy(&elements, part_.bytes.data() + at_, sizeof elements);
    at_ += sizeof elements;
    uint64_t bytes = 0;
    if (elements < 0 ||
        __builtin_mul_overflow(static_cast<uint64_t>(elements), storage.type->bytes, &bytes) ||
        bytes > part_.bytes.size() - at_)
      refuse("storage ", quote(storage.key), " of ", elements, " elements runs past the end of the file");
    const StorageBytes out{at_, at_ + bytes};
    at_ += bytes;
    return out;
  }

  const Part& part_;
  uint64_t at_;
};

std::vector<TorchTensor> tensors_of(const Loaded& loaded, const std::shared_ptr<TorchBytes>& bytes,
                                    uint64_t begin) {
  std::vector<TorchTensor> out;
  for (const PickleTensor& tensor : loaded.tree.tensors()) {
    const StorageBytes& at = loaded.storages[tensor.storage];
    const TorchType* type = loaded.tree.storages()[tensor.storage].type;
    out.push_back({.bytes = bytes,
                   .type = type,
                   .extents = tensor.extents,
                   .strides = tensor.strides,
                   .first = begin + at.begin + static_cast<uint64_t>(tensor.offset) * type->bytes,
                   .begin = begin + at.begin,
                   .end = begin + at.end,
                   .crc = at.crc});
  }
  return out;
}

// Throws kData if the tensors are much larger than the file: with a stride of 0, a few stored bytes give a
// huge tensor.
void check_expansion(const std::vector<TorchTensor>& tensors, const Part& part) {
  const uint64_t max_bytes = kGreatestExpansion * part.bytes.size();
  uint64_t sum = 0;
  for (const TorchTensor& tensor : tensors) {
    uint64_t bytes = tensor.type->bytes;
    // parsing has already checked the product of the extents
    for (const int64_t extent : tensor.extents)
      if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(extent), &bytes)) bytes = UINT64_MAX;
    if (__builtin_add_overflow(sum, bytes, &sum) || sum > max_bytes)
      fail(ErrorKind::kData, part.where, ": its tensors take more than ", kGreatestExpansion,
           " times the bytes of the file; the file is refused");
  }
}

void check_storage(const TorchTensor& tensor) {
  TorchBytes& bytes = *tensor.bytes;
  if (bytes.check == CrcCheck::kNo || !tensor.crc) return;
  const std::scoped_lock lock(bytes.checking);
  if (bytes.sound.contains(tensor.begin)) return;
  uint32_t crc = 0;
  std::vector<std::byte> buffer(std::min(kCheckedAtOnce, tensor.end - tensor.begin));
  for (uint64_t at = tensor.begin; at < tensor.end; at += kCheckedAtOnce) {
    const uint64_t n = std::min(kCheckedAtOnce, tensor.end - at);
    bytes.bytes.read_at(at, buffer.data(), n);
    crc = crc32(crc, buffer.data(), n);
  }
  if (crc != *tensor.crc)
    fail(ErrorKind::kData, bytes.file.path(), ": bytes ", tensor.begin, " to ", tensor.end,
         " do not match their CRC; the file is damaged (--no-crc reads it anyway)");
  bytes.sound[tensor.begin] = true;
}

bool is_dense(const TorchTensor& tensor) {
  int64_t step = 1;
  for (size_t axis = tensor.extents.size(); axis-- > 0;) {
    if (tensor.extents[axis] != 1 && tensor.strides[axis] != step) return false;
    step *= tensor.extents[axis];
  }
  return true;
}

// Moves `at` to the next row of the block, over all axes but the last. Returns false after the last row.
bool next_row(Shape& at, const Shape& extent) {
  for (int axis = extent.rank - 2; axis >= 0; --axis) {
    if (++at[axis] < extent[axis]) return true;
    at[axis] = 0;
  }
  return false;
}

// Copies a block of a tensor that is not dense: row by row, with the elements of a row gathered one by one.
void copy_strided(const TorchTensor& tensor, const Shape& from_at, View to, const Shape& to_at,
                  const Shape& extent) {
  const DType dtype = *tensor.type->dtype;
  const size_t size = size_of(dtype);
  const auto stride = [&](int axis) {
    return tensor.extents.empty() ? 1 : tensor.strides[static_cast<size_t>(axis)];
  };
  std::vector<std::byte> row(static_cast<size_t>(extent.back()) * size);
  Shape at = extent, row_extent = extent, zero = extent;
  for (int axis = 0; axis < at.rank; ++axis) at[axis] = zero[axis] = 0;
  for (int axis = 0; axis < at.rank - 1; ++axis) row_extent[axis] = 1;
  do {
    int64_t first = 0;
    Shape place = to_at;
    for (int axis = 0; axis < at.rank; ++axis) {
      first += (from_at[axis] + at[axis]) * stride(axis);
      place[axis] += at[axis];
    }
    for (int64_t i = 0; i < extent.back(); ++i)
      std::memcpy(row.data() + static_cast<size_t>(i) * size,
                  tensor.bytes->file.data() + tensor.first +
                      static_cast<uint64_t>(first + i * stride(at.rank - 1)) * size,
                  size);
    copy_block({row.data(), dtype, row_extent}, zero, to, place, row_extent);
  } while (next_row(at, extent));
}

}  // namespace

Shape TorchTensor::shape() const {
  return StoredTensor{.name = bytes->file.path(), .dtype_name = {}, .dtype = {}, .extents = extents}.shape();
}

void copy_tensor(const TorchTensor& tensor, const Shape& from_at, View to, const Shape& to_at,
                 const Shape& extent) {
  if (extent.elements() == 0) return;
  check_storage(tensor);
  if (!is_dense(tensor)) {
    copy_strided(tensor, from_at, to, to_at, extent);
    return tensor.bytes->file.forget(tensor.begin, tensor.end - tensor.begin);
  }
  read_block({tensor.bytes->bytes, tensor.first, *tensor.type->dtype, tensor.shape()}, from_at, to, to_at,
             extent);
}

TorchFile open_torch(const std::shared_ptr<TorchBytes>& bytes, uint64_t begin, uint64_t end) {
  const MappedFile& file = bytes->file;
  const bool whole = begin == 0 && end == file.size();
  const Part part{file.text().substr(begin, end - begin),
                  whole ? file.path() : concat(file.path(), " (bytes ", begin, " to ", end, ")")};
  Loaded loaded;
  if (ZipArchive::is_zip(part.bytes))
    loaded = load_zip(part, bytes->check);
  else if (part.bytes.starts_with(kLegacyMagic))
    loaded = LegacyStream(part).load();
  else
    fail(ErrorKind::kData, part.where, ": ", kind_of_stranger(part.bytes));
  TorchFile out{bytes, {}, tensors_of(loaded, bytes, begin)};
  check_expansion(out.tensors, part);
  out.tree = std::move(loaded.tree);
  file.forget(begin, end - begin);  // releases the pages that were mapped in while the members were examined
  return out;
}

TorchFile open_torch(const std::string& path, CrcCheck check, PendingFiles* writing) {
  auto bytes = std::make_shared<TorchBytes>(path, check, writing);
  const uint64_t size = bytes->file.size();
  return open_torch(bytes, 0, size);
}

namespace {

std::string key_text(const PickleValue& key, const std::string& where) {
  if (key.kind == Kind::kText) return std::string(key.text());
  if (key.kind == Kind::kInt) return std::to_string(key.whole());
  fail(ErrorKind::kData, where, ": a key of a dict is neither text nor an integer");
}

}  // namespace

std::vector<TorchLeaf> leaves_of(const PickleTree& tree, PickleRef ref, const std::string& where) {
  std::vector<TorchLeaf> out, open{{"", ref}};
  std::set<std::string> names;
  const size_t max_values = 2 * tree.size() + 1000;  // a shared value counts each time it appears
  size_t spent = 0;
  while (!open.empty()) {
    const TorchLeaf at = open.back();
    open.pop_back();
    const PickleValue& value = tree[at.value];
    const bool inner = value.kind == Kind::kDict || value.kind == Kind::kList || value.kind == Kind::kTuple;
    if (!inner) {
      if (!names.insert(at.name).second) fail(ErrorKind::kData, where, ": holds ", quote(at.name), " twice");
      out.push_back(at);
      continue;
    }
    spent += value.items().size();
    if (spent > max_values || at.name.size() > kGreatestName)
      fail(ErrorKind::kData, where,
           ": the same values appear in too many places, or under names that are too long");
    const std::string prefix = at.name.empty() ? "" : at.name + ".";
    const size_t step = value.kind == Kind::kDict ? 2 : 1;
    for (size_t i = value.items().size(); i >= step; i -= step) {
      const PickleRef item = value.items()[i - 1];
      open.push_back(
          {prefix + (step == 2 ? key_text(tree[value.items()[i - 2]], where) : std::to_string(i - 1)), item});
    }
  }
  return out;
}

namespace {

std::vector<std::pair<std::string, TorchTensor>> named_tensors(const TorchFile& file) {
  std::vector<std::pair<std::string, TorchTensor>> out;
  for (TorchLeaf& leaf : leaves_of(file.tree, file.tree.root(), file.path()))
    if (file.tree[leaf.value].kind == Kind::kTensor)
      out.emplace_back(std::move(leaf.name), file.tensor(leaf.value));
  return out;
}

}  // namespace

TorchTensorFile::TorchTensorFile(const TorchFile& file) : TorchTensorFile(file.path(), named_tensors(file)) {}

TorchTensorFile::TorchTensorFile(std::string path, std::vector<std::pair<std::string, TorchTensor>> tensors)
    : path_(std::move(path)) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [name, tensor] : tensors) {
    stored_.push_back({.name = name,
                       .dtype_name = std::string(tensor.type->name),
                       .dtype = tensor.type->dtype,
                       .extents = tensor.extents});
    tensors_.push_back(std::move(tensor));
  }
}

void TorchTensorFile::verify() const {
  for (const TorchTensor& tensor : tensors_) check_storage(tensor);
}

void TorchTensorFile::read(const Box& box, View out) const {
  const auto at = static_cast<size_t>(&checked(box, out) - stored_.data());
  copy_tensor(tensors_[at], box.offset, out, Box::whole({}, out.shape).offset, out.shape);
}

}  // namespace megalith
