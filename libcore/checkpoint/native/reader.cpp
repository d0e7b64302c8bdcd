#include "libcore/checkpoint/native/reader.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/elements.h"
#include "libcore/hash/xxh64.h"

namespace megalith {
namespace {

constexpr uint64_t kHashedAtOnce = uint64_t{1} << 18;

std::string checkpoint_folder(const std::string& path) {
  if (file_exists(path + "/" + kIndexFile)) return path;
  if (const auto latest = latest_checkpoint(path)) {
    if (!file_exists(*latest + "/" + kIndexFile))
      fail(ErrorKind::kData, path, "/", kTrackerFile, ": names ", quote(*latest),
           ", which holds no checkpoint of Megalith");
    return *latest;
  }
  fail(ErrorKind::kNoInput, path, ": holds no checkpoint (neither ", kIndexFile, " nor ", kTrackerFile, ")");
}

std::optional<std::string> only_checkpoint(const std::string& root) {
  std::optional<std::string> only;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root, error)) {
    const bool is_one = entry.path().filename().string().starts_with("iter_") &&
                        file_exists(entry.path().string() + "/" + kIndexFile);
    if (!is_one) continue;
    if (only) return std::nullopt;
    only = root + "/" + entry.path().filename().string();
  }
  return only;
}

}  // namespace

std::optional<std::string> latest_checkpoint(const std::string& root) {
  const std::string tracker = root + "/" + kTrackerFile;
  if (root.empty()) return {};
  if (!file_exists(tracker)) return only_checkpoint(root);
  const std::string contents = read_own_file(tracker);
  const std::string_view word = trim(contents);
  const auto iteration = parse_int(word);
  if (word != "release" && (!iteration || *iteration < 0))
    fail(ErrorKind::kData, tracker, ": holds ", quote(word), ", wanted an iteration or \"release\"");
  return root + "/" + iteration_folder(iteration.value_or(kRelease));
}

// An open file of the checkpoint, and which of its blocks, identified by their first byte, have been checked.
// So each block is hashed only once.
struct CheckpointReader::DataFile {
  DataFile(std::string n, std::string path) : name(std::move(n)), file(std::move(path)) {}
  std::string name;
  ReadableFile file;
  std::vector<uint64_t> checked = {};
};

CheckpointReader::CheckpointReader(const std::string& path)
    : folder_(checkpoint_folder(path)),
      use_(folder_),
      index_(parse_index(read_own_file(folder_ + "/" + kIndexFile), folder_ + "/" + kIndexFile)) {
  for (const IndexedTensor& tensor : index_.tensors) {
    StoredTensor stored{.name = tensor.name,
                        .dtype_name = std::string(name_of(tensor.dtype)),
                        .dtype = tensor.dtype,
                        .extents = {}};
    stored.extents.assign(tensor.shape.dim.begin(), tensor.shape.dim.begin() + tensor.shape.rank);
    tensors_.push_back(std::move(stored));
    for (const StoredBlock& block : tensor.blocks)
      if (const ReadableFile& file = data_file(block.file).file; file.size() < block.end)
        fail(ErrorKind::kData, file.path(), ": has ", file.size(), " bytes, but tensor ", quote(tensor.name),
             " ends at ", block.end,
             "; it was probably truncated: use another checkpoint, or restore the file");
  }
  for (const IndexedFile& file : index_.files) {
    const std::string full = folder_ + "/" + file.name;
    if (const uint64_t bytes = file_size(full); bytes != file.bytes)
      fail(ErrorKind::kData, full, ": has ", bytes, " bytes, wanted ", file.bytes);
  }
}

CheckpointReader::~CheckpointReader() = default;

CheckpointReader::DataFile& CheckpointReader::data_file(const std::string& name) const {
  const auto it =
      std::find_if(files_.begin(), files_.end(), [&](const DataFile& f) { return f.name == name; });
  if (it != files_.end()) return *it;
  return files_.emplace_back(name, folder_ + "/" + name);
}

void CheckpointReader::check_block(const IndexedTensor& tensor, const StoredBlock& block) const {
  DataFile& data = data_file(block.file);
  const std::scoped_lock lock(checking_);
  if (std::find(data.checked.begin(), data.checked.end(), block.begin) != data.checked.end()) return;
  Xxh64 hash;
  std::vector<std::byte> buffer(std::min(kHashedAtOnce, block.end - block.begin));
  for (uint64_t at = block.begin; at < block.end; at += kHashedAtOnce) {
    const uint64_t bytes = std::min(kHashedAtOnce, block.end - at);
    data.file.read_at(at, buffer.data(), bytes);
    hash.update(buffer.data(), bytes);
  }
  if (hash.digest() != block.checksum)
    fail(ErrorKind::kData, data.file.path(), ": bytes ", block.begin, " to ", block.end, " of tensor ",
         quote(tensor.name),
         " do not match their checksum; the file is damaged: use another checkpoint, or restore the file");
  data.checked.push_back(block.begin);
}

void CheckpointReader::read(const Box& box, View out) const {
  const auto at = static_cast<size_t>(&checked(box, out) - tensors_.data());
  const IndexedTensor& tensor = index_.tensors[at];
  for (const StoredBlock& block : tensor.blocks) {
    const Overlap common = overlap(block.offset, block.extent, box.offset, out.shape);
    if (common.extent.elements() == 0) continue;
    check_block(tensor, block);
    const ReadableFile& file = data_file(block.file).file;
    Shape from = common.offset, to = common.offset;
    for (int axis = 0; axis < from.rank; ++axis) {
      from[axis] -= block.offset[axis];
      to[axis] -= box.offset[axis];
    }
    read_block({file, block.begin, tensor.dtype, block.extent}, from, out, to, common.extent);
  }
}

bool CheckpointReader::has_file(const std::string& name) const {
  return std::any_of(index_.files.begin(), index_.files.end(),
                     [&](const IndexedFile& f) { return f.name == name; });
}

std::string CheckpointReader::text(const std::string& name) const {
  const auto it = std::find_if(index_.files.begin(), index_.files.end(),
                               [&](const IndexedFile& f) { return f.name == name; });
  if (it == index_.files.end()) fail(ErrorKind::kData, folder_, ": the checkpoint has no ", name);
  std::string contents = read_own_file(folder_ + "/" + name);
  if (contents.size() != it->bytes || xxh64(contents) != it->checksum)
    fail(ErrorKind::kData, folder_, "/", name,
         ": does not match its checksum; the file is damaged or was changed");
  return contents;
}

Json CheckpointReader::json(const std::string& name) const {
  return Json::parse(text(name), folder_ + "/" + name);
}

void CheckpointReader::verify() const {
  for (const IndexedTensor& tensor : index_.tensors)
    for (const StoredBlock& block : tensor.blocks) check_block(tensor, block);
  for (const IndexedFile& file : index_.files) text(file.name);
}

}  // namespace megalith
