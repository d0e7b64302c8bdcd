#include "libcore/checkpoint/torch/torch_layout.h"

#include <algorithm>
#include <utility>

#include "libcore/hash/crc32.h"

namespace megalith {
namespace {

constexpr uint64_t kAlignment = 64;       // of the beginning of each storage
constexpr uint32_t kFull32 = 0xFFFFFFFF;  // this value means that the number is in the zip64 record
constexpr uint16_t kFull16 = 0xFFFF;
constexpr uint16_t kPaddingId = 0x4246;  // id of the extra field with which torch pads
constexpr uint16_t kZip64Id = 1;
constexpr uint16_t kUtf8Names = 0x0800;

// Little-endian records.
class Record {
 public:
  Record& u16(uint64_t value) { return put(value, 2); }
  Record& u32(uint64_t value) { return put(value, 4); }
  Record& u64(uint64_t value) { return put(value, 8); }
  Record& text(std::string_view text) {
    bytes_ += text;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Record& put(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i));
    return *this;
  }
  std::string bytes_;
};

uint64_t at_most_32(uint64_t value) {
  return std::min<uint64_t>(value, kFull32);
}

// Writes the fields that a local header has in common with a directory entry, from the version on.
Record& shared_fields(Record& record, uint64_t bytes, uint32_t crc, uint16_t version) {
  record.u16(version).u16(kUtf8Names).u16(0).u16(0).u16(0).u32(crc);
  return record.u32(at_most_32(bytes)).u32(at_most_32(bytes));
}

uint16_t version_for(bool zip64) {
  return zip64 ? 45 : 20;
}

const char* storage_class(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "FloatStorage";
    case DType::kBf16:
      return "BFloat16Storage";
    case DType::kF16:
      return "HalfStorage";
    case DType::kF64:
      return "DoubleStorage";
    case DType::kI32:
      return "IntStorage";
    case DType::kI64:
      return "LongStorage";
    case DType::kU8:
      return "ByteStorage";
    case DType::kI8:
      return "CharStorage";
  }
  return "";
}

const char* torch_dtype(DType dtype) {
  switch (dtype) {
    case DType::kBf16:
      return "bfloat16";
    case DType::kF16:
      return "float16";
    case DType::kF64:
      return "float64";
    default:
      return "float32";
  }
}

void pickle_extents(PickleWriter& pickle, const Shape& shape, bool strides) {
  pickle.begin_tuple();
  int64_t stride = shape.elements();
  for (int axis = 0; axis < shape.rank; ++axis) {
    stride /= std::max<int64_t>(shape[axis], 1);
    pickle.integer(strides ? stride : shape[axis]);
  }
  pickle.end_tuple();
}

}  // namespace

void pickle_tensor(PickleWriter& pickle, const TensorSpec& spec, size_t key) {
  pickle.global("torch._utils", "_rebuild_tensor_v2");
  pickle.begin_tuple();
  pickle.begin_tuple();
  pickle.text("storage");
  pickle.global("torch", storage_class(spec.dtype));
  pickle.text(std::to_string(key));
  pickle.text("cpu");
  pickle.integer(spec.shape.elements());
  pickle.end_tuple();
  pickle.persistent();
  pickle.integer(0);  // the offset
  pickle_extents(pickle, spec.shape, false);
  pickle_extents(pickle, spec.shape, true);
  pickle.boolean(false);                        // requires_grad
  pickle.global("collections", "OrderedDict");  // hooks
  pickle.empty_tuple();
  pickle.call();
  pickle.end_tuple();
  pickle.call();
}

void pickle_dtype(PickleWriter& pickle, DType dtype) {
  pickle.global("torch", torch_dtype(dtype));
}

TorchLayout::TorchLayout(std::string root, const std::string& pickle, const std::vector<uint64_t>& storages)
    : root_(std::move(root)), size_(0) {
  add("data.pkl", pickle.size(), pickle);
  add("byteorder", 6, "little");
  for (size_t i = 0; i < storages.size(); ++i) add("data/" + std::to_string(i), storages[i], {});
  add("version", 2, "3\n");
  directory_ = size_;
  size_ += directory(std::vector<uint32_t>(storages.size())).size();
}

void TorchLayout::add(const std::string& name, uint64_t bytes, std::string contents) {
  Member member{.name = root_ + "/" + name,
                .contents = std::move(contents),
                .header = size_,
                .begin = 0,
                .bytes = bytes,
                .crc = 0};
  member.crc = crc32(0, member.contents.data(), member.contents.size());
  member.begin = member.header + header_of(member, 0).size();
  size_ = member.begin + bytes;
  members_.push_back(std::move(member));
}

std::string TorchLayout::header_of(const Member& member, uint32_t crc) {
  const bool zip64 = member.bytes >= kFull32;
  Record extra;
  if (zip64) extra.u16(kZip64Id).u16(16).u64(member.bytes).u64(member.bytes);
  constexpr uint64_t kFixed = 30, kPaddingHead = 4;
  const uint64_t begin = member.header + kFixed + member.name.size() + extra.bytes().size() + kPaddingHead;
  const uint64_t padding = (kAlignment - begin % kAlignment) % kAlignment;
  extra.u16(kPaddingId).u16(padding).text(std::string(padding, 'Z'));
  Record header;
  shared_fields(header.u32(0x04034B50), member.bytes, crc, version_for(zip64));
  header.u16(member.name.size()).u16(extra.bytes().size()).text(member.name).text(extra.bytes());
  return header.bytes();
}

uint32_t TorchLayout::crc_of(size_t member, std::span<const uint32_t> crcs) const {
  const bool storage = member >= kBefore && member < kBefore + crcs.size();
  return storage ? crcs[member - kBefore] : members_[member].crc;
}

std::string TorchLayout::directory(std::span<const uint32_t> crcs) const {
  Record out;
  for (size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    const bool large = member.bytes >= kFull32, far = member.header >= kFull32;
    Record extra;
    if (large || far) extra.u16(kZip64Id).u16((large ? 16 : 0) + (far ? 8 : 0));
    if (large) extra.u64(member.bytes).u64(member.bytes);
    if (far) extra.u64(member.header);
    shared_fields(out.u32(0x02014B50).u16(version_for(true)), member.bytes, crc_of(i, crcs),
                  version_for(large || far));
    out.u16(member.name.size()).u16(extra.bytes().size()).u16(0).u16(0).u16(0).u32(0);
    out.u32(at_most_32(member.header)).text(member.name).text(extra.bytes());
  }
  const uint64_t bytes = out.bytes().size(), end = directory_ + bytes, count = members_.size();
  if (end >= kFull32 || count >= kFull16) {
    out.u32(0x06064B50).u64(44).u16(version_for(true)).u16(version_for(true)).u32(0).u32(0);
    out.u64(count).u64(count).u64(bytes).u64(directory_);
    out.u32(0x07064B50).u32(0).u64(end).u32(1);
  }
  const uint64_t short_count = std::min<uint64_t>(count, kFull16);
  out.u32(0x06054B50).u16(0).u16(0).u16(short_count).u16(short_count);
  out.u32(at_most_32(bytes)).u32(at_most_32(directory_)).u16(0);
  return out.bytes();
}

std::vector<FilePart> TorchLayout::parts(std::span<const uint32_t> crcs) const {
  std::vector<FilePart> out;
  for (size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    out.push_back({member.header, header_of(member, crc_of(i, crcs)) + member.contents});
  }
  out.push_back({directory_, directory(crcs)});
  return out;
}

}  // namespace megalith
