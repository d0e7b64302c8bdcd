// As much of cuDNN as attention and tests/gpu_check/gpu_probe.cpp need, which the emulated plugin exports:
// the build's libcudnn.so.9 is a link to it. MEGALITH_EMULATOR_CUDNN says what it is: "right", "unmasked" (it
// forgets the causal mask), "unfinished" (it leaves a gradient unwritten), "refuses" (it has no plan),
// "fails" (its plans do not run); unset: a version that is too old. MEGALITH_EMULATOR_CUDNN_VERSION is its
// version; unset: 91900. Names and numbers are cuDNN's.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/emulator/controls.h"
#include "tests/emulator/cudnn/graph_maths.h"
#include "tests/emulator/memory.h"
#include "tests/emulator/report.h"
#include "tests/emulator/streams.h"

struct cudnnContext {  // NOLINT(readability-identifier-naming): cuDNN's name
  EmulatedStream* stream = nullptr;
};

namespace megalith::emulator {
namespace {

constexpr int kSuccess = 0, kBadParam = 2000, kNotSupported = 3000, kNotInitialized = 1001;

enum Type {
  kPointwise = 0,
  kEngine = 2,
  kConfig = 3,
  kHeuristics = 4,
  kPlan = 5,
  kPointwiseOp = 13,
  kGraph = 15,
  kPack = 16,
  kTensor = 17,
  kMatmul = 18,
  kMatmulOp = 19,
  kReduction = 21,
  kReductionOp = 22,
  kReshapeOp = 31,
  kProperties = 38  // of a device
};
constexpr char kPropertiesText[] = "{\"deviceVer\": 900}";

/// What a graph's plan runs.
struct FakePlan {
  std::vector<GraphOperation> operations;
  size_t workspace = 0;
};

struct FakeDescriptor {
  int type;
  bool is_final = false;
  struct Values {
    int type;
    int64_t count;
    std::vector<std::byte> bytes;
  };
  std::map<int, Values> values = {};
  int engine = -1;                            // of a config and its engine
  std::shared_ptr<const FakePlan> plan = {};  // of what follows from a graph

  bool has(int name) const { return values.count(name) > 0; }
  const Values& of(int name) const {
    const auto found = values.find(name);
    if (found == values.end()) end_with("cudnn: a descriptor lacks attribute " + std::to_string(name));
    return found->second;
  }
  template <class T>
  std::vector<T> all(int name) const {
    std::vector<T> out(static_cast<size_t>(of(name).count));
    std::memcpy(out.data(), of(name).bytes.data(), out.size() * sizeof(T));
    return out;
  }
  template <class T>
  T one(int name) const {
    T out;
    std::memcpy(&out, of(name).bytes.data(), sizeof(T));
    return out;
  }
  const FakeDescriptor& other(int name) const { return *one<FakeDescriptor*>(name); }
};

size_t bytes_of(int attribute_type) {
  switch (attribute_type) {
    case 2:
      return sizeof(bool);
    case 0:
    case 3:
    case 5:
    case 6:
    case 15:
      return 8;
    default:
      return 4;
  }
}

std::string mode() {
  const char* const word = std::getenv("MEGALITH_EMULATOR_CUDNN");
  return word == nullptr ? "" : word;
}

thread_local std::string last_error;
int refuse(const char* why) {
  last_error = why;
  return kNotSupported;
}

GraphTensor tensor_of(const FakeDescriptor& tensor) {
  if (tensor.type != kTensor || !tensor.is_final) end_with("cudnn: an operand is no finished tensor");
  GraphTensor made{.id = tensor.one<int64_t>(906), .type = tensor.one<int>(901)};
  const auto sizes = tensor.all<int64_t>(902), strides = tensor.all<int64_t>(903);
  if (sizes.size() != 4 || strides.size() != 4) end_with("cudnn: a tensor of attention has four axes");
  std::copy(sizes.begin(), sizes.end(), made.sizes.begin());
  std::copy(strides.begin(), strides.end(), made.strides.begin());
  made.is_virtual = tensor.has(907) && tensor.one<bool>(907);
  made.is_by_value = tensor.has(908) && tensor.one<bool>(908);
  return made;
}

GraphOperation operation_of(const FakeDescriptor& op) {
  const auto in = [&](std::initializer_list<int> names) {
    std::vector<GraphTensor> tensors;
    for (const int name : names)
      if (op.has(name)) tensors.push_back(tensor_of(op.other(name)));
    return tensors;
  };
  switch (op.type) {
    case kPointwiseOp: {
      const FakeDescriptor& pointwise = op.other(750);
      return {.kind = GraphOperation::kPointwise,
              .mode = pointwise.one<int>(0),
              .axis = pointwise.has(9) ? pointwise.one<int64_t>(9) : 0,
              .in = in({751, 752, 758}),
              .out = tensor_of(op.other(753))};
    }
    case kMatmulOp:
      return {.kind = GraphOperation::kMultiply, .in = in({1520, 1521}), .out = tensor_of(op.other(1522))};
    case kReductionOp:
      return {.kind = GraphOperation::kReduce,
              .mode = op.other(1612).one<int>(1600),
              .in = in({1610}),
              .out = tensor_of(op.other(1611))};
    case kReshapeOp:
      return {.kind = GraphOperation::kReshape, .in = in({2200}), .out = tensor_of(op.other(2201))};
    default:
      end_with("cudnn: the emulator has no operation of type " + std::to_string(op.type));
  }
}

/// What cuDNN's engines of attention refuse, of what our graphs could ask for; empty if nothing.
const char* refusal_of(const FakePlan& plan) {
  constexpr int64_t kVector = 8, kWidest = 128;
  if (mode() == "refuses") return "no engine for this device";
  long products = 0;
  for (const GraphOperation& op : plan.operations) {
    if (op.kind != GraphOperation::kMultiply) continue;
    ++products;
    for (const GraphTensor& tensor : op.in)
      if (!tensor.is_virtual) {
        const int64_t head = tensor.strides[3] == 1 ? tensor.sizes[3] : tensor.sizes[2];
        if (tensor.strides[3] != 1 && tensor.strides[2] != 1) return "no axis of a tensor has stride 1";
        if (head % kVector != 0 || head > kWidest) return "heads are no multiple of 8 up to 128";
      }
  }
  return products == 2 || products == 5 ? "" : "the graph is no attention";
}

int finalize_graph(FakeDescriptor& graph) {
  if (!graph.has(800)) return kBadParam;
  auto plan = std::make_shared<FakePlan>();
  for (FakeDescriptor* const op : graph.all<FakeDescriptor*>(801)) {
    if (!op->is_final) return kBadParam;
    plan->operations.push_back(operation_of(*op));
    // The gradient keeps those of all scores.
    const GraphOperation& made = plan->operations.back();
    if (made.kind == GraphOperation::kReshape && made.out.is_virtual && !made.in[0].is_virtual)
      plan->workspace = static_cast<size_t>(made.in[0].extent());
  }
  plan->workspace = std::max<size_t>(plan->workspace, 256);
  graph.plan = std::move(plan);
  return kSuccess;
}

int finalize(FakeDescriptor& it) {
  switch (it.type) {
    case kGraph:
      return finalize_graph(it);
    case kHeuristics:
      if (!it.has(200) || !it.has(201) || !it.other(201).is_final) return kBadParam;
      it.plan = it.other(201).plan;
      return kSuccess;
    case kPlan:
      if (!it.has(400) || !it.has(401)) return kBadParam;
      it.plan = it.other(401).plan;
      // The second of the engines that are proposed cannot be compiled.
      return it.other(401).engine == 1 ? refuse("NVRTC fails") : kSuccess;
    case kProperties:
      return it.has(2700) && it.one<int32_t>(2700) == 0 ? kSuccess : kBadParam;
    case kTensor:
      for (const int name : {900, 901, 902, 903, 906})
        if (!it.has(name)) return kBadParam;
      return kSuccess;
    default:
      return kSuccess;
  }
}

/// Proposals: an engine that gives other bits in each run, one that fails, and one that is right.
constexpr int kEngines = 3;

int give_results(const FakeDescriptor& heuristics, int64_t wanted, int64_t* count, void* out) {
  if (const char* const why = refusal_of(*heuristics.plan); *why != '\0') {
    *count = 0;
    refuse(why);
    return kSuccess;
  }
  *count = out == nullptr ? kEngines : std::min<int64_t>(wanted, kEngines);
  for (int i = 0; out != nullptr && i < *count; ++i) {
    FakeDescriptor& config = *static_cast<FakeDescriptor**>(out)[i];
    if (config.type != kConfig) return kBadParam;
    config.engine = i;
    config.plan = heuristics.plan;
    config.is_final = true;
  }
  return kSuccess;
}

void run_plan(const FakePlan& plan, const std::map<int64_t, void*>& memory, void* workspace) {
  std::memset(workspace, 0xff, plan.workspace);
  auto operations = plan.operations;
  constexpr int64_t kDk = 11;
  if (mode() == "unfinished")
    std::erase_if(operations, [](const GraphOperation& op) { return op.out.id == kDk; });
  compute_graph(operations, memory, mode() == "unmasked");
}

int execute(cudnnContext& handle, const FakeDescriptor& plan, const FakeDescriptor& pack) {
  if (plan.type != kPlan || !plan.is_final || pack.type != kPack || !pack.is_final) return kBadParam;
  if (mode() == "fails") return refuse("the plan cannot be launched");
  Streams::get().require_chosen(handle.stream);
  const int device = Streams::get().device_of(handle.stream);
  const auto ids = pack.all<int64_t>(1000);
  const auto pointers = pack.all<void*>(1001);
  if (ids.size() != pointers.size()) return kBadParam;
  std::map<int64_t, void*> memory;
  for (size_t i = 0; i < ids.size(); ++i) memory[ids[i]] = pointers[i];
  void* const workspace = pack.one<void*>(1003);
  DeviceMemory::get().require_block(workspace, plan.plan->workspace, {device, "cuDNN's plan"});
  auto numbers = std::make_shared<std::map<int64_t, float>>();  // that the host gives, which may change
  const auto check = [&](const GraphTensor& tensor) {
    if (tensor.is_virtual) return;
    void*& at = memory.at(tensor.id);
    if (tensor.is_by_value) {
      const auto [kept, is_new] = numbers->try_emplace(tensor.id, 0.0F);
      if (is_new) kept->second = *static_cast<const float*>(at);
      at = &kept->second;
      return;
    }
    DeviceMemory::get().require_block(at, static_cast<size_t>(tensor.extent()) * tensor.element_bytes(),
                                      {device, "cuDNN's plan"});
  };
  for (const GraphOperation& op : plan.plan->operations) {
    for (const GraphTensor& tensor : op.in) check(tensor);
    check(op.out);
  }
  ++controls().counts.attentions;
  Streams::get().enqueue(
      handle.stream, [kept = plan.plan, memory, numbers, workspace] { run_plan(*kept, memory, workspace); });
  return kSuccess;
}

FakeDescriptor& descriptor(void* raw) {
  return *static_cast<FakeDescriptor*>(raw);
}

}  // namespace
}  // namespace megalith::emulator

using namespace megalith::emulator;

// NOLINTBEGIN: names and signatures are cuDNN's
#define MEGALITH_CUDNN extern "C" __attribute__((visibility("default")))

MEGALITH_CUDNN size_t cudnnGetVersion() {
  const char* const version = std::getenv("MEGALITH_EMULATOR_CUDNN_VERSION");
  return mode().empty() ? 0 : version == nullptr ? 91900 : std::strtoul(version, nullptr, 10);
}
MEGALITH_CUDNN const char* cudnnGetErrorString(int status) {
  return status == kNotSupported ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_BAD_PARAM";
}
MEGALITH_CUDNN void cudnnGetLastErrorString(char* text, size_t size) {
  std::strncpy(text, last_error.c_str(), size);
}
MEGALITH_CUDNN int cudnnCreate(cudnnContext** handle) {
  *handle = new cudnnContext;
  return kSuccess;
}
MEGALITH_CUDNN int cudnnDestroy(cudnnContext* handle) {
  delete handle;
  return kSuccess;
}
MEGALITH_CUDNN int cudnnSetStream(cudnnContext* handle, EmulatedStream* stream) {
  handle->stream = stream;
  return kSuccess;
}
MEGALITH_CUDNN int cudnnBackendCreateDescriptor(int type, void** made) {
  *made = new FakeDescriptor{.type = type};
  return kSuccess;
}
MEGALITH_CUDNN int cudnnBackendDestroyDescriptor(void* raw) {
  delete static_cast<FakeDescriptor*>(raw);
  return kSuccess;
}
MEGALITH_CUDNN int cudnnBackendSetAttribute(void* raw, int name, int type, int64_t count,
                                            const void* values) {
  FakeDescriptor& it = descriptor(raw);
  if (it.is_final || count < 1) return kBadParam;
  const auto* const bytes = static_cast<const std::byte*>(values);
  it.values[name] = {type, count, {bytes, bytes + bytes_of(type) * static_cast<size_t>(count)}};
  return kSuccess;
}
MEGALITH_CUDNN int cudnnBackendFinalize(void* raw) {
  FakeDescriptor& it = descriptor(raw);
  const int status = finalize(it);
  it.is_final = status == kSuccess;
  return status;
}
MEGALITH_CUDNN int cudnnBackendGetAttribute(void* raw, int name, int, int64_t wanted, int64_t* count,
                                            void* out) {
  FakeDescriptor& it = descriptor(raw);
  if (!it.is_final && it.type != kEngine) return kNotInitialized;
  if (it.type == kHeuristics && name == 202) return give_results(it, wanted, count, out);
  if (it.type == kProperties && name == 2702) {
    *count = sizeof kPropertiesText;
    if (out != nullptr)
      std::memcpy(out, kPropertiesText, std::min(static_cast<size_t>(wanted), sizeof kPropertiesText));
    return kSuccess;
  }
  *count = 1;
  if (it.type == kConfig && name == 300) {
    (*static_cast<FakeDescriptor**>(out))->engine = it.engine;
    return kSuccess;
  }
  if (it.type == kEngine && name == 1303) {
    *static_cast<int*>(out) = it.engine == 0 ? 4 : 0;  // not deterministic; tensor cores
    return kSuccess;
  }
  if (it.type == kPlan && name == 402) {
    *static_cast<int64_t*>(out) = static_cast<int64_t>(it.plan->workspace);
    return kSuccess;
  }
  return kBadParam;
}
MEGALITH_CUDNN int cudnnBackendExecute(cudnnContext* handle, void* plan, void* pack) {
  return execute(*handle, descriptor(plan), descriptor(pack));
}
// NOLINTEND
