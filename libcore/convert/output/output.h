#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "libcore/base/log.h"
#include "libcore/checkpoint/safetensors/safetensors.h"
#include "libcore/convert/output/recipe.h"
#include "libcore/io/files/placed_files.h"
#include "libcore/tensor/view.h"

namespace megalith {

/// How the elements of a written tensor are stored. Q8_0 is GGUF's: blocks of 32 with one fp16 scale.
enum class Storage : uint8_t { kF32, kBf16, kF16, kQ8 };
Storage storage_of(DType dtype);
DType plain_type(Storage storage);  // Q8_0: fp32, from which it is made
std::string_view name_of(Storage storage);
/// Bytes of `elements` elements; those of Q8_0 are a multiple of 32.
uint64_t stored_bytes(Storage storage, int64_t elements);

/// One tensor of an output.
struct OutputTensor {
  std::string name;
  Storage storage;
  Shape shape;
  Recipe recipe;
  // place in the order in which a model's run meets the tensors of all files, so that the check can follow
  // the writing
  size_t depth = 0;

  uint64_t bytes() const { return stored_bytes(storage, shape.elements()); }
};
/// One file of an output and its tensors, in the order in which they stand there.
struct OutputFile {
  std::string name;  // below the output folder
  std::vector<OutputTensor> tensors = {};
};
using OutputPlan = std::vector<OutputFile>;
uint64_t bytes_of(const OutputPlan& plan);
int64_t elements_of(const OutputPlan& plan);

/// How much memory the files of a plan may be written with: half of the largest tensor, but a block must
/// fit, and disks want large ones.
size_t memory_for(const OutputPlan& plan);
/// A file of a plan, already created: its number, and where each of its tensors begins.
struct PlacedFile {
  size_t number;
  std::vector<uint64_t> offsets;  // beside OutputFile::tensors
};
/// Gets each tensor's bytes in order as they are written, for a checksum; `file` and `tensor` are indices of
/// the plan.
using SeeBytes = std::function<void(size_t file, size_t tensor, std::span<const std::byte>)>;
/// The one way in which tensors are written, whatever the format, so that all formats stop, show progress and
/// are checked alike: reads all tensors of a plan, those of the smallest depth first, converts them, and
/// hands them over to be written where `placed` (beside the plan) says. Returns when all are in the files,
/// after a warning when some of their numbers are not finite.
void write_tensors(const TensorFile& source, const OutputPlan& plan, const std::vector<PlacedFile>& placed,
                   PlacedFiles& files, const SeeBytes& see = {});

/// The tensors as a safetensors writer takes them.
std::vector<TensorSpec> specs_of(const OutputFile& file);
/// Brings a file's tensors into the order in which a .safetensors file holds them.
void put_in_safetensors_order(OutputFile& file);
/// Creates the files of a plan, below `folder`, as safetensors, all but their tensors, which stand in that
/// format's order.
std::vector<PlacedFile> create_safetensors(const OutputPlan& plan, const std::string& folder,
                                           PlacedFiles& files);

/// kUsage when an output folder exists and holds anything.
void refuse_used(const std::string& output);
/// The output's own name ("out/" is "out").
std::string title_of(const std::string& output);

}  // namespace megalith
