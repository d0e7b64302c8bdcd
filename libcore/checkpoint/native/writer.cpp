#include "libcore/checkpoint/native/writer.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/checkpoint/native/retention.h"
#include "libcore/checkpoint/safetensors/safetensors.h"
#include "libcore/hash/xxh64.h"
#include "libcore/io/files/file.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kStagingBytes = int64_t{4} << 20;

std::string part_name(int rank) {
  return concat("part_", rank, ".json");
}

// The name of a block in the data file. A whole tensor keeps its own name, under which other tools find it.
std::string block_name(const Box& box, const Shape& extent) {
  if (extent == box.global) return box.name;
  std::string name = box.name + "@";
  for (int axis = 0; axis < box.offset.rank; ++axis)
    name += (axis ? "," : "") + std::to_string(box.offset[axis]);
  return name;
}

// Removes the files that killed processes have left.
void remove_leftovers(const fs::path& root) {
  for (const auto& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    const bool folder = name.starts_with(".iter_") || name.starts_with(".release");
    const bool tracker = name.starts_with(concat('.', kTrackerFile, kTemporaryEnd, '-'));
    std::error_code ignored;
    if ((folder && name.ends_with(kTemporaryEnd)) || tracker) fs::remove_all(entry.path(), ignored);
  }
}

void write_tracker(const std::string& root, const std::string& word) {
  write_file(root + "/" + kTrackerFile, word);
}

// Calls take(data, bytes) for a value, a few MiB at a time and in order, so that no second copy of the value
// is needed. Values on a device go through host memory.
template <class Take>
void each_part(ConstView value, std::optional<Stream> stream, const Take& take) {
  const int64_t elements = value.elements(),
                step = kStagingBytes / static_cast<int64_t>(size_of(value.dtype));
  std::vector<std::byte> staging(stream ? std::min<size_t>(kStagingBytes, value.bytes()) : 0);
  for (int64_t at = 0; at < elements; at += step) {
    const ConstView part = value.as_shape({elements}).rows(at, std::min(at + step, elements));
    if (stream) stream->to_host(staging.data(), part);
    take(stream ? staging.data() : part.data, part.bytes());
  }
}

using Tensors = std::map<std::string, IndexedTensor>;

void add_blocks(Tensors& tensors, Index part) {
  for (IndexedTensor& tensor : part.tensors) {
    IndexedTensor& known =
        tensors.try_emplace(tensor.name, IndexedTensor{tensor.name, tensor.dtype, tensor.shape, {}})
            .first->second;
    if (known.dtype != tensor.dtype || known.shape != tensor.shape)
      fail(ErrorKind::kInternal, "checkpoint tensor ", quote(tensor.name), " is put as ",
           name_of(known.dtype), known.shape, " and as ", name_of(tensor.dtype), tensor.shape);
    std::move(tensor.blocks.begin(), tensor.blocks.end(), std::back_inserter(known.blocks));
  }
}

std::vector<IndexedTensor> in_order(const Tensors& tensors) {
  std::vector<IndexedTensor> out;
  for (const auto& [name, tensor] : tensors) out.push_back(tensor);
  return out;
}

}  // namespace

CheckpointWriter::CheckpointWriter(std::string root, int64_t iteration, std::optional<Stream> stream)
    : root_(std::move(root)), iteration_(iteration), stream_(stream) {}

std::string CheckpointWriter::folder() const {
  return concat(root_, "/.", iteration_folder(iteration_), kTemporaryEnd);
}

void CheckpointWriter::put(const Box& box, ConstView value) {
  if (value.elements() > 0) blocks_.push_back({box, value});
}

void CheckpointWriter::put_text(const std::string& name, std::string contents) {
  small_files_.push_back({name, std::move(contents)});
}

void CheckpointWriter::put_json(const std::string& name, const Json& value) {
  put_text(name, value.dump(1) + "\n");
}

size_t CheckpointWriter::bytes() const {
  size_t sum = 0;
  for (const Block& block : blocks_) sum += block.value.bytes();
  return sum;
}

void CheckpointWriter::take_copy(std::span<std::byte> memory, const CopyOut& copy) {
  if (memory.size() < bytes())
    fail(ErrorKind::kInternal, root_, ": ", memory.size(), " bytes for a copy of ", bytes());
  size_t at = 0;
  for (Block& block : blocks_) {
    std::byte* const place = memory.data() + at;
    copy(place, block.value);
    at += block.value.bytes();
    block.value.data = place;
  }
  stream_.reset();
}

void CheckpointWriter::commit() {
  commit_with([this](const std::string&) { return write_blocks(0, {}); }, {});
}
void CheckpointWriter::commit(const WriteTensors& write, const Look& look) {
  const auto write_and_sync = [&](const std::string& folder) {
    std::vector<IndexedTensor> tensors = write(folder);
    sync_file(folder + "/" + data_file(0));
    return tensors;
  };
  commit_with(write_and_sync, look);
}

void CheckpointWriter::commit_with(const WriteTensors& write, const Look& look) {
  try {
    begin();
    own_ = write(folder());
    publish(1, look);
  } catch (const fs::filesystem_error& error) {
    discard();
    fail(ErrorKind::kIo, error.what());
  } catch (...) {
    discard();
    throw;
  }
}

void CheckpointWriter::begin() {
  make_directories(root_);
  remove_leftovers(root_);
  make_directories(folder());
}

void CheckpointWriter::write(int rank, const Check& check) {
  own_ = write_blocks(rank, check);
  if (rank == 0) return;
  const Index index{.iteration = iteration_, .tensors = std::move(own_), .files = {}};
  write_file(folder() + "/" + part_name(rank), dump_index(index));
}

void CheckpointWriter::discard() noexcept {
  std::error_code ignored;
  fs::remove_all(folder(), ignored);
}

std::vector<IndexedTensor> CheckpointWriter::write_blocks(int rank, const Check& check) const {
  if (blocks_.empty()) return {};
  std::map<std::string, const Block*> by_name;
  std::vector<TensorSpec> specs;
  for (const Block& block : blocks_) {
    const Shape& extent = block.value.shape;
    const std::string name = block_name(block.box, extent);
    if (!fits(block.box.global, block.box.offset, extent) || !by_name.emplace(name, &block).second)
      fail(ErrorKind::kInternal, "checkpoint block ", quote(name), " ", extent, " of ", block.box.global,
           " is put twice, or does not lie in its tensor");
    specs.push_back({name, block.value.dtype, extent});
  }
  SafetensorsWriter file(folder() + "/" + data_file(rank), specs);
  Tensors tensors;
  for (size_t i = 0; i < file.order().size(); ++i) {
    const TensorSpec& spec = file.order()[i];
    const auto& [box, value] = *by_name.at(spec.name);
    Xxh64 hash;
    each_part(value, stream_, [&](const void* data, size_t bytes) {
      if (check) check();
      hash.update(data, bytes);
      file.write(spec.name, data, bytes);
    });
    const StoredBlock block{.offset = box.offset,
                            .extent = value.shape,
                            .file = data_file(rank),
                            .begin = file.offset(i),
                            .end = file.offset(i) + spec.bytes(),
                            .checksum = hash.digest()};
    add_blocks(tensors, {.tensors = {{box.name, value.dtype, box.global, {block}}}, .files = {}});
  }
  file.finish();
  return in_order(tensors);
}

void CheckpointWriter::publish(int ranks, const Look& look) {
  Tensors tensors;
  add_blocks(tensors, {.iteration = iteration_, .tensors = std::move(own_), .files = {}});
  const std::string folder = this->folder();
  for (int rank = 1; rank < ranks; ++rank) {
    const std::string part = folder + "/" + part_name(rank);
    add_blocks(tensors, parse_index_part(read_file(part), part));
    fs::remove(part);
  }
  Index index{.iteration = iteration_, .tensors = in_order(tensors), .files = {}};
  for (const IndexedTensor& tensor : index.tensors)
    check_cover(tensor, ErrorKind::kInternal, concat("checkpoint tensor ", quote(tensor.name)));
  for (const SmallFile& file : small_files_) {
    make_directories(fs::path(folder + "/" + file.name).parent_path());
    write_file(folder + "/" + file.name, file.contents);
    index.files.push_back({file.name, file.contents.size(), xxh64(file.contents)});
  }
  write_file(folder + "/" + kIndexFile, dump_index(index));  // also syncs the folder
  if (look) look(folder);
  rename_directory(folder, root_ + "/" + iteration_folder(iteration_));
  write_tracker(root_, iteration_ == kRelease ? "release" : std::to_string(iteration_));
}

void end_killed_save(const std::string& root) {
  if (!file_exists(root)) return;
  remove_leftovers(root);
  if (file_exists(root + "/" + kTrackerFile)) return;
  if (const auto only = latest_checkpoint(root))
    write_tracker(root, std::to_string(CheckpointReader(*only).iteration()));
}

}  // namespace megalith
