#include <algorithm>
#include <array>
#include <cctype>

#include "libcore/base/error.h"
#include "libcore/checkpoint/torch/pickle.h"

namespace megalith {
namespace {

struct Storage {
  std::string_view name;
  TorchType type;
};
constexpr std::array kStorages = {Storage{"FloatStorage", {"F32", 4, DType::kF32}},
                                  Storage{"DoubleStorage", {"F64", 8, DType::kF64}},
                                  Storage{"HalfStorage", {"F16", 2, DType::kF16}},
                                  Storage{"BFloat16Storage", {"BF16", 2, DType::kBf16}},
                                  Storage{"LongStorage", {"I64", 8, DType::kI64}},
                                  Storage{"IntStorage", {"I32", 4, DType::kI32}},
                                  Storage{"ShortStorage", {"I16", 2}},
                                  Storage{"CharStorage", {"I8", 1}},
                                  Storage{"ByteStorage", {"U8", 1, DType::kU8}},
                                  Storage{"BoolStorage", {"BOOL", 1}},
                                  Storage{"UntypedStorage", {"U8", 1, DType::kU8}}};

// The names of a dtype and of the storage class for it.
struct NamedType {
  std::string_view name, storage;
};
constexpr std::array kDTypes = {
    NamedType{"float32", "FloatStorage"},     NamedType{"float", "FloatStorage"},
    NamedType{"float64", "DoubleStorage"},    NamedType{"double", "DoubleStorage"},
    NamedType{"float16", "HalfStorage"},      NamedType{"half", "HalfStorage"},
    NamedType{"bfloat16", "BFloat16Storage"}, NamedType{"int64", "LongStorage"},
    NamedType{"long", "LongStorage"},         NamedType{"int32", "IntStorage"},
    NamedType{"int16", "ShortStorage"},       NamedType{"int8", "CharStorage"},
    NamedType{"uint8", "ByteStorage"},        NamedType{"bool", "BoolStorage"}};

const TorchType* storage_type(std::string_view name) {
  for (const Storage& storage : kStorages)
    if (storage.name == name) return &storage.type;
  return nullptr;
}

struct Named {
  std::string_view module, name;
  PickleRole role;
};
using enum PickleRole;
constexpr std::array kNamed = {
    Named{"collections", "OrderedDict", kOrderedDict},
    Named{"collections", "defaultdict", kDefaultDict},
    Named{"argparse", "Namespace", kNamespace},
    Named{"types", "SimpleNamespace", kNamespace},
    Named{"torch", "Size", kSize},
    Named{"torch._utils", "_rebuild_tensor", kRebuildTensor},
    Named{"torch._utils", "_rebuild_tensor_v2", kRebuildTensor},
    Named{"torch._utils", "_rebuild_parameter", kRebuildParameter},
    Named{"builtins", "set", kSet},
    Named{"builtins", "frozenset", kSet},
    Named{"__builtin__", "set", kSet},
    Named{"__builtin__", "frozenset", kSet},
    Named{"builtins", "dict", kFactory},
    Named{"builtins", "list", kFactory},
    Named{"builtins", "int", kFactory},
    Named{"__builtin__", "dict", kFactory},
    Named{"__builtin__", "list", kFactory},
    Named{"__builtin__", "int", kFactory},
    Named{"_codecs", "encode", kRecord},
    Named{"_io", "BytesIO", kRecord},
    Named{"datetime", "timedelta", kRecord},
    Named{"signal", "Signals", kRecord},
    Named{"pathlib", "PosixPath", kRecord},
    Named{"pathlib", "PurePosixPath", kRecord},
    Named{"pathlib", "Path", kRecord},
    Named{"pathlib._local", "PosixPath", kRecord},
    Named{"numpy", "dtype", kRecord},
    Named{"numpy", "ndarray", kRecord},
    Named{"numpy.core.multiarray", "_reconstruct", kRecord},
    Named{"numpy.core.multiarray", "scalar", kRecord},
    Named{"numpy._core.multiarray", "_reconstruct", kRecord},
    Named{"numpy._core.multiarray", "scalar", kRecord},
    // in the file .metadata of torch.distributed.checkpoint
    Named{"torch.serialization", "_get_layout", kRecord},
    Named{"torch.distributed.checkpoint.metadata", "Metadata", kRecord},
    Named{"torch.distributed.checkpoint.metadata", "TensorStorageMetadata", kRecord},
    Named{"torch.distributed.checkpoint.metadata", "BytesStorageMetadata", kRecord},
    Named{"torch.distributed.checkpoint.metadata", "TensorProperties", kRecord},
    Named{"torch.distributed.checkpoint.metadata", "ChunkStorageMetadata", kRecord},
    Named{"torch.distributed.checkpoint.metadata", "MetadataIndex", kRecord},
    Named{"torch.distributed.checkpoint.metadata", "_MEM_FORMAT_ENCODING", kRecord},
    Named{"torch.distributed.checkpoint.metadata", "StorageMeta", kRecord},
    Named{"torch.distributed.checkpoint.planner", "SavePlan", kRecord},
    Named{"torch.distributed.checkpoint.planner", "WriteItem", kRecord},
    Named{"torch.distributed.checkpoint.planner", "WriteItemType", kRecord},
    Named{"torch.distributed.checkpoint.planner", "TensorWriteData", kRecord},
    Named{"torch.distributed.checkpoint.filesystem", "_StorageInfo", kRecord},
};

// Whether this is a class of the training code itself. Functions of that code are not allowed, since they
// could do anything.
bool is_trainers_class(std::string_view module, std::string_view name) {
  constexpr std::array<std::string_view, 3> kPackages = {"megatron", "transformer_engine", "modelopt"};
  const size_t first = name.find_first_not_of('_');
  const bool capital = first != std::string_view::npos && name[first] >= 'A' && name[first] <= 'Z';
  return capital && std::any_of(kPackages.begin(), kPackages.end(), [&](std::string_view package) {
           return module == package || (module.starts_with(package) && module[package.size()] == '.');
         });
}

}  // namespace

std::optional<PickleClass> pickle_class(std::string_view module, std::string_view name) {
  const std::string full = concat(module, '.', name);
  // A name with dots would reach into other modules: module "megatron.x" with name "os.system".
  if (name.find('.') != std::string_view::npos) return {};
  if (is_trainers_class(module, name)) return PickleClass{full, kRecord};
  for (const Named& known : kNamed)
    if (known.module == module && known.name == name) return PickleClass{full, known.role};
  for (const NamedType& type : kDTypes)
    if (module == "torch" && type.name == name) return PickleClass{full, kDType, storage_type(type.storage)};
  if (module == "torch" || module == "torch.storage")
    if (const TorchType* const type = storage_type(name)) return PickleClass{full, kStorage, type};
  return {};
}

}  // namespace megalith
