#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/json/json.h"
#include "libcore/json/json_fields.h"
#include "libcore/tensor/view.h"
#include "libcore/text/saved_tokenizer.h"

/// The format of a checkpoint folder: docs/formats/checkpoint.md.
namespace megalith {

inline constexpr const char* kTrackerFile = "latest_checkpointed_iteration.txt";
inline constexpr const char* kArgsFile = "args.json";      // every option of the run
inline constexpr const char* kStateFile = "state.json";    // the state of training
inline constexpr const char* kOptimizerPrefix = "optim.";  // begins the names of the optimizer's tensors
// The iteration of weights that do not belong to an iteration; Megatron calls them "release".
inline constexpr int64_t kRelease = -1;

/// "iter_0000100"; "release" for kRelease.
std::string iteration_folder(int64_t iteration);
/// The name of the file with the tensors that a rank has written: "data_00000.safetensors".
std::string data_file(int rank);

/// A shape as it is saved: a list of 1 to Shape::kMaxRank integers, each at least `least`.
struct SavedShape {
  Shape& shape;
  int64_t least;
  Json to_json() const;
  void take(const Json&);  // kData
};
/// An element type as it is saved: "fp32".
struct SavedDType {
  DType& dtype;
  Json to_json() const;
  void take(const Json&);  // kData
};

/// A block of a tensor and the bytes that hold it.
struct StoredBlock {
  Shape offset, extent;
  std::string file;  // name in the checkpoint folder
  uint64_t begin = 0, end = 0;
  uint64_t checksum = 0;  // xxh64

  template <class V>
  void fields(V&& v) {  // see json/json_fields.h
    v("offset", SavedShape{offset, 0});
    v("shape", SavedShape{extent, 1});
    v("file", file);
    v("begin", begin);
    v("end", end);
    v("xxh64", Hex64{checksum});
  }
};
struct IndexedTensor {
  std::string name;
  DType dtype{};
  Shape shape;
  std::vector<StoredBlock> blocks;  // they cover the tensor without overlap

  template <class V>
  void fields(V&& v) {
    v("name", name);
    v("dtype", SavedDType{dtype});
    v("shape", SavedShape{shape, 1});
    v("pieces", blocks);
  }
};
struct Index {
  int64_t iteration = 0;
  std::vector<IndexedTensor> tensors;  // sorted by name
  std::vector<IndexedFile> files;

  /// nullptr if there is no tensor of this name.
  const IndexedTensor* find(std::string_view name) const;

  template <class V>
  void fields(V&& v) {
    v("iteration", iteration);
    v("files", files);
    v("tensors", tensors);
  }
};

/// Throws an error of kind `kind` unless the blocks cover the tensor exactly once. `where` begins the
/// message.
void check_cover(const IndexedTensor& tensor, ErrorKind kind, const std::string& where);

/// The text of index.json. It ends with a checksum of everything before it, so that a changed byte is
/// detected.
std::string dump_index(const Index& index);
/// Parses the text of index.json and checks everything that can be checked without the data: checksum, types,
/// plain file names, and that the blocks are within their tensor, are as long as their extents say and cover
/// it exactly once. `name` begins every message (kData).
Index parse_index(std::string_view text, const std::string& name);
/// As parse_index(), for the part of an index that one rank writes while a checkpoint is being saved. The
/// blocks of a part need not cover their tensors.
Index parse_index_part(std::string_view text, const std::string& name);

}  // namespace megalith
