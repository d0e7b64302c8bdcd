#include "libcore/checkpoint/native/writer.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/safetensors/safetensors.h"
#include "libcore/hash/xxh64.h"
#include "libcore/io/file.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kStagingBytes = int64_t{4} << 20;
constexpr std::string_view kTemporaryEnd = ".tmp";

std::string numbered(const char* stem, int rank, const char* end) {
  std::string digits = std::to_string(rank);
  return stem + std::string(5 - std::min<size_t>(5, digits.size()), '0') + digits + end;
}
std::string data_name(int rank) {
  return numbered("data_", rank, ".safetensors");
}
std::string part_name(int rank) {
  return numbered("part_", rank, ".json");
}

// The data file's name of a block: the tensor's own for a whole tensor, so that other tools find it.
std::string block_name(const Box& box, const Shape& extent) {
  if (extent == box.global) return box.name;
  std::string name = box.name + "@";
  for (int axis = 0; axis < box.offset.rank; ++axis)
    name += (axis ? "," : "") + std::to_string(box.offset[axis]);
  return name;
}

// Its own name must be on the disk too, or a lost supply takes all checkpoints in it.
void make_root(const std::string& root) {
  if (file_exists(root)) return;
  make_directories(root);
  sync_directory((fs::absolute(root) / "").parent_path().parent_path());
}

// What earlier, killed processes left.
void remove_leftovers(const fs::path& root) {
  for (const auto& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    std::error_code ignored;
    if ((name.starts_with(".iter_") || name.starts_with(".release")) && name.ends_with(kTemporaryEnd))
      fs::remove_all(entry.path(), ignored);
  }
}

// Cuts a block into parts of at most `greatest` elements (but at least one step of the last axis that has to
// be cut), in the order of its elements.
template <class Take>
void for_each_part(const Shape& block, int64_t greatest, const Take& take) {
  int axis = 0;  // the outermost of which one step is small enough
  int64_t step = block.elements() / block[0];
  while (axis < block.rank - 1 && step > greatest) step /= block[++axis];
  Shape at = Box::whole({}, block).offset, extent = block;
  for (int outer = 0; outer < axis; ++outer) extent[outer] = 1;
  for (;;) {
    for (at[axis] = 0; at[axis] < block[axis]; at[axis] += extent[axis]) {
      extent[axis] = std::min(std::max<int64_t>(1, greatest / step), block[axis] - at[axis]);
      take(at, extent);
    }
    int outer = axis - 1;
    while (outer >= 0 && ++at[outer] == block[outer]) at[outer--] = 0;
    if (outer < 0) return;
  }
}

/// The ranks of one commit: work is done by one or by all, and fails on all when it fails on one.
class Team {
 public:
  Team(Communicator* comm, Stream* stream) : comm_(comm), stream_(stream) {}
  int rank() const { return comm_ ? comm_->rank() : 0; }
  int size() const { return comm_ ? comm_->size() : 1; }

  template <class Work>
  void all(const Work& work) {
    std::optional<Error> error;
    try {
      work();
    } catch (const Error& e) {
      error = e;
    } catch (const fs::filesystem_error& e) {
      error = Error(ErrorKind::kIo, e.what());
    }
    const bool failed = agree(error.has_value());
    if (error) throw Error(*error);
    if (failed)
      fail(ErrorKind::kIo, "another rank could not write its part of the checkpoint; see its message");
  }
  template <class Work>
  void first(const Work& work) {
    all([&] {
      if (rank() == 0) work();
    });
  }

 private:
  bool agree(bool failed) {
    if (size() == 1) return failed;
    float flag = failed ? 1 : 0;
    comm_->all_reduce(*stream_, View{&flag, DType::kF32, {1}}, Reduce::kMax);
    stream_->synchronize();
    return flag > 0;
  }
  Communicator* comm_;
  Stream* stream_;
};

using Tensors = std::map<std::string, IndexedTensor>;

void add_pieces(Tensors& tensors, Index part) {
  for (IndexedTensor& tensor : part.tensors) {
    IndexedTensor& known =
        tensors.try_emplace(tensor.name, IndexedTensor{tensor.name, tensor.dtype, tensor.shape, {}})
            .first->second;
    if (known.dtype != tensor.dtype || known.shape != tensor.shape)
      fail(ErrorKind::kInternal, "checkpoint tensor ", quote(tensor.name), " is put as ",
           name_of(known.dtype), known.shape, " and as ", name_of(tensor.dtype), tensor.shape);
    std::move(tensor.pieces.begin(), tensor.pieces.end(), std::back_inserter(known.pieces));
  }
}

std::vector<IndexedTensor> in_order(const Tensors& tensors) {
  std::vector<IndexedTensor> out;
  for (const auto& [name, tensor] : tensors) out.push_back(tensor);
  return out;
}

}  // namespace

CheckpointWriter::CheckpointWriter(std::string root, int64_t iteration)
    : root_(std::move(root)), iteration_(iteration) {}

void CheckpointWriter::put(const Box& box, ConstView value) {
  if (value.elements() > 0)
    blocks_.push_back({.box = box, .dtype = value.dtype, .extent = value.shape, .value = value});
}

void CheckpointWriter::put(const Box& box, DType dtype, const Shape& extent, FillPart fill) {
  if (extent.elements() > 0)
    blocks_.push_back({.box = box, .dtype = dtype, .extent = extent, .fill = std::move(fill)});
}

void CheckpointWriter::put_text(const std::string& name, std::string contents) {
  small_files_.push_back({name, std::move(contents)});
}

void CheckpointWriter::put_json(const std::string& name, const Json& value) {
  put_text(name, value.dump(1) + "\n");
}

void CheckpointWriter::commit(Communicator& comm, Stream& stream) {
  commit_with(&comm, &stream, {});
}
void CheckpointWriter::commit(const Look& look) {
  commit_with(nullptr, nullptr, look);
}

void CheckpointWriter::commit_with(Communicator* comm, Stream* stream, const Look& look) {
  Team team(comm, stream);
  const std::string folder = concat(root_, "/.", iteration_folder(iteration_), kTemporaryEnd);
  Index own;
  try {
    team.first([&] {
      make_root(root_);
      remove_leftovers(root_);
      make_directories(folder);
    });
    team.all([&] {
      own = write_blocks(folder, team.rank(), stream);
      if (team.rank() > 0) write_file(folder + "/" + part_name(team.rank()), dump_index(own));
    });
    team.first([&] { publish(folder, team.size(), std::move(own), look); });
  } catch (const Error&) {
    std::error_code ignored;
    if (team.rank() == 0) fs::remove_all(folder, ignored);
    throw;
  }
}

// Writes a block's bytes in order; returns their checksum.
uint64_t CheckpointWriter::write_block(const Block& block,
                                       const std::function<void(const void*, size_t)>& write,
                                       Stream* stream) const {
  const int64_t elements = block.extent.elements(), width = static_cast<int64_t>(size_of(block.dtype));
  Xxh64 hash;
  const auto take = [&](const void* bytes, size_t n) {
    hash.update(bytes, n);
    write(bytes, n);
  };
  std::vector<std::byte> staging;
  if (block.fill) {
    for_each_part(block.extent, kStagingBytes / width, [&](const Shape& at, const Shape& extent) {
      staging.resize(static_cast<size_t>(extent.elements() * width));
      Box part = block.box;
      for (int axis = 0; axis < at.rank; ++axis) part.offset[axis] += at[axis];
      block.fill(part, {staging.data(), block.dtype, extent});
      take(staging.data(), staging.size());
    });
    return hash.digest();
  }
  const int64_t step = kStagingBytes / width;
  if (stream) staging.resize(static_cast<size_t>(std::min(step, elements) * width));
  for (int64_t at = 0; at < elements; at += step) {
    const ConstView part = block.value.as_shape({elements}).rows(at, std::min(at + step, elements));
    if (stream) stream->to_host(staging.data(), part);
    take(stream ? staging.data() : part.data, part.bytes());
  }
  return hash.digest();
}

Index CheckpointWriter::write_blocks(const std::string& folder, int rank, Stream* stream) const {
  if (blocks_.empty()) return {};
  std::map<std::string, const Block*> by_name;
  std::vector<TensorSpec> specs;
  for (const Block& block : blocks_) {
    const std::string name = block_name(block.box, block.extent);
    if (!fits(block.box.global, block.box.offset, block.extent) || !by_name.emplace(name, &block).second)
      fail(ErrorKind::kInternal, "checkpoint block ", quote(name), " ", block.extent, " of ",
           block.box.global, " is put twice, or does not lie in its tensor");
    specs.push_back({name, block.dtype, block.extent});
  }
  SafetensorsWriter file(folder + "/" + data_name(rank), specs);
  Tensors tensors;
  for (size_t i = 0; i < file.order().size(); ++i) {
    const TensorSpec& spec = file.order()[i];
    const Block& block = *by_name.at(spec.name);
    const auto write = [&](const void* data, size_t bytes) { file.write(spec.name, data, bytes); };
    const Piece piece{.offset = block.box.offset,
                      .extent = block.extent,
                      .file = data_name(rank),
                      .begin = file.offset(i),
                      .end = file.offset(i) + spec.bytes(),
                      .checksum = write_block(block, write, stream)};
    add_pieces(tensors, {.tensors = {{block.box.name, block.dtype, block.box.global, {piece}}}, .files = {}});
  }
  file.finish();
  return {.iteration = iteration_, .tensors = in_order(tensors), .files = {}};
}

void CheckpointWriter::publish(const std::string& folder, int ranks, Index own, const Look& look) const {
  Tensors tensors;
  add_pieces(tensors, std::move(own));
  for (int rank = 1; rank < ranks; ++rank) {
    const std::string part = folder + "/" + part_name(rank);
    add_pieces(tensors, parse_index_part(read_file(part), part));
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
  write_file(folder + "/" + kIndexFile, dump_index(index));  // syncs the folder too
  if (look) look(folder);
  rename_directory(folder, root_ + "/" + iteration_folder(iteration_));
  write_file(root_ + "/" + kTrackerFile, iteration_ == kRelease ? "release" : std::to_string(iteration_));
}

}  // namespace megalith
