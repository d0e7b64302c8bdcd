#include "libcore/convert/targets/megalith.h"

#include <filesystem>
#include <system_error>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/checkpoint/native/writer.h"
#include "libcore/convert/output/output_check.h"
#include "libcore/convert/sources/tokenizer_folder.h"
#include "libcore/io/stop_signal.h"

namespace megalith {

OutputPlan plan_checkpoint(const Conversion& conversion) {
  OutputFile file{.name = iteration_folder(kRelease) + "/data_00000.safetensors"};
  for (const StoredTensor& tensor : conversion.file().tensors()) {
    if (tensor.name.starts_with(kOptimizerPrefix)) continue;
    const Shape shape = tensor.shape();
    file.tensors.push_back({tensor.name, storage_of(conversion.dtype_of(tensor)), shape,
                            copy_recipe(tensor.name, {shape, shape.rank == 1})});
  }
  return {std::move(file)};
}

namespace {

void write_checkpoint(const Conversion& conversion, const std::string& root) {
  const ModelSource& source = conversion.source;
  const std::string& tokenizer_folder = conversion.tokenizer_folder;
  OutputCheck check(conversion);
  CheckpointWriter writer(root, kRelease);
  Progress progress("writing", static_cast<int64_t>(bytes_of(plan_checkpoint(conversion))), "B");
  int64_t done = 0;
  for (const StoredTensor& tensor : conversion.file().tensors()) {
    if (tensor.name.starts_with(kOptimizerPrefix)) continue;
    writer.put(Box::whole(tensor.name, tensor.shape()), conversion.dtype_of(tensor), tensor.shape(),
               [&](const Box& part, View out) {
                 stop_if_asked();
                 conversion.file().read(part, out);
                 progress.advance_to(done += static_cast<int64_t>(out.bytes()));
               });
  }
  Json args = to_json(source.config());
  if (!tokenizer_folder.empty()) {
    for (const auto& [name, contents] : tokenizer_files_of(tokenizer_folder))
      writer.put_text(concat(kTokenizerFolder, "/", name), contents);
    args.set("tokenizer_type", tokenizer_in(tokenizer_folder, source.tokenizer().type).type);
  }
  writer.put_json(kArgsFile, args);
  writer.put_json(kStateFile, Json::Object{{"iteration", 0},
                                           {"consumed_train_samples", 0},
                                           {"consumed_valid_samples", 0},
                                           {"schedule_samples", 0},
                                           {"skipped_iterations", 0}});
  writer.commit([&](const std::string& folder) {
    if (!check.wanted()) return;
    const ModelSource written(folder);
    check.compare(written.view(), conversion.rounds());
  });
}

}  // namespace

void export_checkpoint(const Conversion& conversion, const std::string& root) {
  if (latest_checkpoint(root))
    fail(ErrorKind::kUsage, "--output ", root, " holds checkpoints already; give a new folder");
  try {
    write_checkpoint(conversion, root);
  } catch (...) {  // training leaves what it began to its next save; here there is none
    std::error_code ignored;
    std::filesystem::remove_all(concat(root, "/.", iteration_folder(kRelease), ".tmp"), ignored);
    throw;
  }
}

}  // namespace megalith
