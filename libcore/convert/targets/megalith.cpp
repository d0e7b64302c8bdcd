#include "libcore/convert/targets/megalith.h"

#include <span>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/writer.h"
#include "libcore/convert/output/output_check.h"
#include "libcore/convert/sources/tokenizer_folder.h"
#include "libcore/hash/xxh64.h"
#include "libcore/io/files/file.h"
#include "libcore/text/tokenizer_files.h"

namespace megalith {

OutputPlan plan_checkpoint(const Conversion& conversion) {
  OutputFile file{.name = concat(iteration_folder(kRelease), "/", data_file(0))};
  for (const StoredTensor& tensor : conversion.file().tensors()) {
    if (tensor.name.starts_with(kOptimizerPrefix)) continue;
    const Shape shape = tensor.shape();
    file.tensors.push_back({tensor.name, storage_of(conversion.dtype_of(tensor)), shape,
                            copy_recipe(tensor.name, {shape, shape.rank == 1})});
  }
  return {std::move(file)};
}

namespace {

// Writes the parameters into the checkpoint's data file. Returns their index entries, sorted by name.
std::vector<IndexedTensor> write_data(const Conversion& conversion, const std::string& folder) {
  OutputPlan plan = plan_checkpoint(conversion);
  OutputFile& file = plan.front();
  file.name = data_file(0);
  std::erase_if(file.tensors, [](const OutputTensor& tensor) { return tensor.bytes() == 0; });
  put_in_safetensors_order(file);
  PlacedFiles files(memory_for(plan));
  const std::vector<PlacedFile> placed = create_safetensors(plan, folder, files);
  std::vector<Xxh64> sums(file.tensors.size());
  write_tensors(conversion.file(), plan, placed, files,
                [&](size_t, size_t tensor, std::span<const std::byte> bytes) {
                  sums[tensor].update(bytes.data(), bytes.size());
                });
  std::vector<IndexedTensor> tensors;
  for (size_t i = 0; i < file.tensors.size(); ++i) {
    const OutputTensor& tensor = file.tensors[i];
    const uint64_t begin = placed.front().offsets[i];
    tensors.push_back({.name = tensor.name,
                       .dtype = plain_type(tensor.storage),
                       .shape = tensor.shape,
                       .blocks = {{.offset = Box::whole({}, tensor.shape).offset,
                                   .extent = tensor.shape,
                                   .file = file.name,
                                   .begin = begin,
                                   .end = begin + tensor.bytes(),
                                   .checksum = sums[i].digest()}}});
  }
  return tensors;
}

}  // namespace

void export_checkpoint(const Conversion& conversion, const std::string& output) {
  refuse_used(output, conversion.overwrite);
  const ModelSource& source = conversion.source;
  const TokenizerFolder& tokenizer_folder = conversion.tokenizer_folder;
  OutputCheck check(conversion);
  AtomicDirectory root(output);
  CheckpointWriter writer(root.path().string(), kRelease);
  Json args = to_json(source.config());
  if (!tokenizer_folder.empty()) {
    for (const auto& [name, contents] : tokenizer_files_of(tokenizer_folder, source.config().vocab_size))
      writer.put_text(concat(kTokenizerFolder, "/", name), contents);
    const auto found = find_tokenizer(tokenizer_folder, source.tokenizer().type);
    args.set("tokenizer_type", found ? found->type : std::string());
    if (const std::string& end = conversion.end_token(); !end.empty()) args.set("eod_token", end);
  }
  writer.put_json(kArgsFile, args);
  writer.put_json(kStateFile, Json::Object{{"iteration", 0},
                                           {"consumed_train_samples", 0},
                                           {"consumed_valid_samples", 0},
                                           {"schedule_samples", 0},
                                           {"skipped_iterations", 0}});
  writer.commit([&](const std::string& folder) { return write_data(conversion, folder); },
                [&](const std::string& folder) {
                  if (!check.wanted()) return;
                  const ModelSource written(folder);
                  check.compare(written.view(), conversion.rounds());
                });
  root.commit();
}

}  // namespace megalith
