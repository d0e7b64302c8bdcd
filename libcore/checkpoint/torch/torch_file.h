#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/checkpoint/tensor_file.h"
#include "libcore/checkpoint/torch/pickle.h"
#include "libcore/io/files/file.h"

namespace megalith {

/// Whether the bytes of zip members are compared with their CRC when they are first read. torch itself never
/// compares them, so damage is often noticed here for the first time.
enum class CrcCheck : bool { kNo, kYes };

/// A file that holds tensors, and the result of the checks of its parts so far.
struct TorchBytes {
  TorchBytes(const std::string& path, CrcCheck crc, PendingFiles* writing = nullptr)
      : file(path, MappedPages::kSmall), bytes(path, writing), check(crc) {}
  MappedFile file;     // used for parsing the tree
  ReadableFile bytes;  // used for reading tensors
  CrcCheck check;
  std::map<uint64_t, bool> sound = {};  // the storages whose CRC was right, by the offset of their first byte
  std::mutex checking = {};             // held while `sound` is read or changed
};

/// A tensor in a torch file.
struct TorchTensor {
  std::shared_ptr<TorchBytes> bytes;
  const TorchType* type = nullptr;
  std::vector<int64_t> extents, strides;  // outermost axis first; strides in elements
  uint64_t first = 0;                     // offset of element 0 in the file
  uint64_t begin = 0, end = 0;            // where its storage begins and ends in the file
  std::optional<uint32_t> crc;            // CRC of the storage; a legacy file has none

  /// The extents as a Shape; a scalar is [1]. kData if there are more axes than a Shape holds.
  Shape shape() const;
};

/// Copies the block of shape `extent` from `from_at` in the tensor to `to_at` in `to` (host memory),
/// converting between floating-point types. The caller has checked that the block fits. When a storage is
/// first read, its CRC is compared; if it differs, throws kData, naming the file.
void copy_tensor(const TorchTensor& tensor, const Shape& from_at, View to, const Shape& to_at,
                 const Shape& extent);

/// The contents of a file that torch.save wrote: a tree of values, and its tensors.
struct TorchFile {
  std::shared_ptr<TorchBytes> bytes;  // the tree points into them
  PickleTree tree;
  std::vector<TorchTensor> tensors;  // parallel to tree.tensors()

  const std::string& path() const { return bytes->file.path(); }
  /// The tensor that a value of kind kTensor stands for.
  const TorchTensor& tensor(PickleRef ref) const { return tensors[static_cast<size_t>(tree[ref].whole())]; }
};

/// Opens a file that torch.save wrote: a zip archive, or the stream that torch wrote before 1.6. Reads and
/// checks everything except the tensors' bytes (see ZipArchive and parse_pickle()). Each storage must exist
/// and have as many bytes as the pickle says. All tensors together may have at most four times the bytes of
/// the file, so that a small file cannot fill all memory. kNoInput, kIo, kData; the message says if the file
/// is a tar archive (torch before 0.4), a git-lfs pointer or another known kind of file. `writing`: see
/// ReadableFile.
TorchFile open_torch(const std::string& path, CrcCheck check = CrcCheck::kYes,
                     PendingFiles* writing = nullptr);
/// Opens a torch file that consists of bytes [begin, end) of another file.
TorchFile open_torch(const std::shared_ptr<TorchBytes>& bytes, uint64_t begin, uint64_t end);

/// A leaf of the nested dicts and lists below a value. Its name consists of the keys on the way to it, joined
/// with dots.
struct TorchLeaf {
  std::string name;
  PickleRef value;
};
/// All leaves below `ref`. Throws kData (with `where` in front) if values are shared so often that the leaves
/// would far outnumber the tree's values, if a key is neither text nor an integer, or if two leaves have one
/// name.
std::vector<TorchLeaf> leaves_of(const PickleTree& tree, PickleRef ref, const std::string& where);

/// Named tensors of torch files.
class TorchTensorFile final : public TensorFile {
 public:
  /// All tensors of the file, named by their keys joined with dots.
  explicit TorchTensorFile(const TorchFile& file);
  TorchTensorFile(std::string path, std::vector<std::pair<std::string, TorchTensor>> tensors);

  const std::string& path() const override { return path_; }
  const std::vector<StoredTensor>& tensors() const override { return stored_; }
  void read(const Box& box, View out) const override;
  /// Compares the CRCs of all tensors now. Throws what read() throws.
  void verify() const;

 private:
  std::string path_;
  std::vector<StoredTensor> stored_;
  std::vector<TorchTensor> tensors_;  // parallel to stored_
};

}  // namespace megalith
