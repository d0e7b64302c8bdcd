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
DType plain_type(Storage storage);  // for Q8_0: fp32, the type that is quantized
std::string_view name_of(Storage storage);
/// The number of bytes of `elements` elements. For Q8_0, `elements` is a multiple of 32.
uint64_t stored_bytes(Storage storage, int64_t elements);

/// One tensor of an output.
struct OutputTensor {
  std::string name;
  Storage storage;
  Shape shape;
  Recipe recipe;
  // The tensor's place in the order in which running the model needs the tensors of all files. Tensors are
  // written in this order, so that the check can run while they are written.
  size_t depth = 0;

  uint64_t bytes() const { return stored_bytes(storage, shape.elements()); }
};
/// One file of an output and its tensors, in the order of the file.
struct OutputFile {
  std::string name;  // path below the output folder
  std::vector<OutputTensor> tensors = {};
};
using OutputPlan = std::vector<OutputFile>;
uint64_t bytes_of(const OutputPlan& plan);
int64_t elements_of(const OutputPlan& plan);

/// The number of bytes of memory that may be used to write the files of a plan. It is half of the largest
/// tensor, within 24 to 96 MiB (disks prefer large blocks), but at least three of the longest rows.
size_t memory_for(const OutputPlan& plan);
/// A file of a plan that has been created: its number, and where each of its tensors begins.
struct PlacedFile {
  size_t number;
  std::vector<uint64_t> offsets;  // parallel to OutputFile::tensors
};
/// Receives the bytes of each tensor, in order, as they are written: for a checksum. `file` and `tensor` are
/// indices in the plan.
using SeeBytes = std::function<void(size_t file, size_t tensor, std::span<const std::byte>)>;
/// Writes the tensors of a plan, in any format. Reads the tensors in ascending order of OutputTensor::depth,
/// converts them, and passes them on to be written to their places in `placed` (parallel to the plan). All
/// formats use this function, so stopping, checking and showing progress work alike. Returns once all tensors
/// are in the files. Warns if some of their numbers are not finite.
void write_tensors(const TensorFile& source, const OutputPlan& plan, const std::vector<PlacedFile>& placed,
                   PlacedFiles& files, const SeeBytes& see = {});

/// A file's tensors in the form that SafetensorsLayout expects.
std::vector<TensorSpec> specs_of(const OutputFile& file);
/// Sorts a file's tensors into the order of a .safetensors file.
void put_in_safetensors_order(OutputFile& file);
/// Creates the files of a plan below `folder` as .safetensors files, without the tensors' bytes. The tensors
/// of each file must be in the order of that format (see put_in_safetensors_order()).
std::vector<PlacedFile> create_safetensors(const OutputPlan& plan, const std::string& folder,
                                           PlacedFiles& files);

/// Throws kUsage if `output` exists and is not an empty folder. With `overwrite`, throws only if it is a file
/// or holds something that no conversion writes.
void refuse_used(const std::string& output, bool overwrite);
/// The last component of the output's path ("out" for "out/").
std::string title_of(const std::string& output);

}  // namespace megalith
