#include "libcore/ops/cuda/cudnn/graph.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "libcore/base/error.h"

namespace megalith::cuda::cudnn {
namespace {

constexpr int64_t kAlignment = 16;  // bytes

}  // namespace

// ---- descriptors

Descriptor::Descriptor(const Library& library, DescriptorType type) : library_(library) {
  library_.require(library_.make(type, &raw_), "make a descriptor");
}

Descriptor::~Descriptor() {
  if (raw_ != nullptr) library_.release(raw_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : library_(other.library_), raw_(std::exchange(other.raw_, nullptr)) {}

void Descriptor::set(Attribute attribute, AttributeType type, int64_t count, const void* values) {
  library_.require(library_.set(raw_, attribute, type, count, values), "describe attention");
}

RawDescriptor Descriptor::finalize() {
  library_.require(library_.finalize(raw_), "finish a description of attention");
  return raw_;
}

bool Descriptor::try_finalize() {
  return library_.finalize(raw_) == 0;
}

// ---- operations

Graph::Graph(const Library& library, Handle handle) : library_(library), handle_(handle) {}

Descriptor& Graph::add(DescriptorType type) {
  return parts_.emplace_back(library_, type);
}

RawDescriptor Graph::make_tensor(int64_t id, const TensorForm& form, bool is_virtual, bool by_value) {
  Descriptor& tensor = add(kTensor);
  tensor.set(kTensorId, kOfInt64, id);
  tensor.set(kTensorType, kOfDataType, static_cast<int>(form.type));
  tensor.set(kTensorDimensions, kOfInt64, std::span<const int64_t>(form.sizes));
  tensor.set(kTensorStrides, kOfInt64, std::span<const int64_t>(form.strides));
  tensor.set(kTensorAlignment, kOfInt64, kAlignment);
  tensor.set(kTensorIsVirtual, kOfBoolean, is_virtual);
  if (by_value) tensor.set(kTensorIsByValue, kOfBoolean, true);
  return tensor.finalize();
}

RawDescriptor Graph::tensor(int64_t id, const TensorForm& form, bool by_value) {
  return make_tensor(id, form, false, by_value);
}

void Graph::add_operation(DescriptorType type, const std::vector<Part>& parts) {
  Descriptor& operation = add(type);
  for (const auto& [attribute, part] : parts) operation.set(attribute, kOfDescriptor, part);
  operations_.push_back(operation.finalize());
}

/// The operands are x, b and t, of which the last two may be missing.
void Graph::add_pointwise(RawDescriptor y, Descriptor& mode, std::initializer_list<RawDescriptor> operands) {
  constexpr Attribute kPlaces[] = {kPointwiseX, kPointwiseB, kPointwiseT};
  std::vector<Part> parts{{kPointwiseOpOf, mode.finalize()}, {kPointwiseY, y}};
  for (size_t place = 0; const RawDescriptor operand : operands)
    parts.emplace_back(kPlaces[place++], operand);
  add_operation(kPointwiseOp, parts);
}

void Graph::pointwise_to(RawDescriptor y, PointwiseMode mode, std::initializer_list<RawDescriptor> operands,
                         DataType precision) {
  Descriptor& described = add(kPointwise);
  described.set(kPointwiseMode, kOfPointwiseMode, static_cast<int>(mode));
  described.set(kPointwisePrecision, kOfDataType, static_cast<int>(precision));
  add_pointwise(y, described, operands);
}

RawDescriptor Graph::pointwise(PointwiseMode mode, std::initializer_list<RawDescriptor> operands,
                               const TensorForm& form) {
  const RawDescriptor y = result(form);
  pointwise_to(y, mode, operands, form.type == kBoolean ? kBoolean : kFloat);
  return y;
}

RawDescriptor Graph::index(RawDescriptor like, int64_t axis, TensorForm form) {
  form.type = kInt32;
  const RawDescriptor y = result(form);
  Descriptor& described = add(kPointwise);
  described.set(kPointwiseMode, kOfPointwiseMode, static_cast<int>(kGenIndex));
  described.set(kPointwisePrecision, kOfDataType, static_cast<int>(kInt32));
  described.set(kPointwiseAxis, kOfInt64, axis);
  add_pointwise(y, described, {like});
  return y;
}

void Graph::reduce_to(RawDescriptor y, ReductionMode mode, RawDescriptor x) {
  Descriptor& described = add(kReduction);
  described.set(kReductionOperator, kOfReduction, static_cast<int>(mode));
  described.set(kReductionPrecision, kOfDataType, static_cast<int>(kFloat));
  add_operation(kReductionOp, {{kReductionX, x}, {kReductionY, y}, {kReductionOf, described.finalize()}});
}

RawDescriptor Graph::reduce(ReductionMode mode, RawDescriptor x, const TensorForm& form) {
  const RawDescriptor y = result(form);
  reduce_to(y, mode, x);
  return y;
}

void Graph::multiply_to(RawDescriptor c, RawDescriptor a, RawDescriptor b) {
  Descriptor& described = add(kMatmul);
  described.set(kMatmulPrecision, kOfDataType, static_cast<int>(kFloat));
  add_operation(kMatmulOp, {{kMatmulA, a}, {kMatmulB, b}, {kMatmulC, c}, {kMatmulOf, described.finalize()}});
}

RawDescriptor Graph::multiply(RawDescriptor a, RawDescriptor b, const TensorForm& form) {
  const RawDescriptor c = result(form);
  multiply_to(c, a, b);
  return c;
}

RawDescriptor Graph::reshape(RawDescriptor x, const TensorForm& form) {
  const RawDescriptor y = result(form);
  add_operation(kReshapeOp, {{kReshapeX, x}, {kReshapeY, y}});
  return y;
}

// ---- plans

/// How cuDNN would run the graph, the fastest first by its own estimate.
std::vector<Descriptor> Graph::proposals() {
  Descriptor& graph = add(kGraph);
  graph.set(kGraphHandle, kOfHandle, handle_);
  graph.set(kGraphOps, kOfDescriptor, std::span<const RawDescriptor>(operations_));
  Descriptor& heuristics = add(kHeuristics);
  heuristics.set(kHeuristicsGraph, kOfDescriptor, graph.finalize());
  heuristics.set(kHeuristicsMode, kOfHeuristicsMode, static_cast<int>(kModeA));
  const RawDescriptor asked = heuristics.finalize();
  int64_t count = 0;
  library_.require(library_.get(asked, kHeuristicsResults, kOfDescriptor, 0, &count, nullptr),
                   "ask for plans of attention");
  std::vector<Descriptor> configs;
  std::vector<RawDescriptor> raw;
  for (int64_t i = 0; i < count; ++i) raw.push_back(configs.emplace_back(library_, kEngineConfig).raw());
  library_.require(library_.get(asked, kHeuristicsResults, kOfDescriptor, count, &count, raw.data()),
                   "ask for plans of attention");
  while (static_cast<int64_t>(configs.size()) > count) configs.pop_back();
  return configs;
}

bool Graph::is_deterministic(const Descriptor& config) const {
  Descriptor engine(library_, kEngine);
  RawDescriptor raw = engine.raw();
  int64_t count = 0;
  library_.require(library_.get(config.raw(), kConfigEngine, kOfDescriptor, 1, &count, &raw),
                   "ask for an engine of attention");
  std::array<int, 16> notes{};
  library_.require(library_.get(raw, kEngineNotes, kOfNote, notes.size(), &count, notes.data()),
                   "ask for an engine of attention");
  return std::find(notes.begin(), notes.begin() + count, static_cast<int>(kNondeterministic)) ==
         notes.begin() + count;
}

void Graph::plan(size_t most_workspace) {
  for (Descriptor& config : proposals()) {
    if (!is_deterministic(config)) continue;
    Descriptor plan(library_, kPlan);
    plan.set(kPlanHandle, kOfHandle, handle_);
    plan.set(kPlanConfig, config);
    if (!plan.try_finalize()) continue;
    int64_t bytes = 0, count = 0;
    library_.require(library_.get(plan.raw(), kPlanWorkspace, kOfInt64, 1, &count, &bytes),
                     "ask for a plan's scratch memory");
    if (static_cast<size_t>(bytes) > most_workspace) continue;
    plan_ = plan.raw();
    parts_.push_back(std::move(config));
    parts_.push_back(std::move(plan));
    return;
  }
  const std::string words = library_.last_words();
  fail(ErrorKind::kDevice, "cuDNN ", library_.version(), " has no plan of at most ", most_workspace, " bytes",
       words.empty() ? "" : ": ", words);
}

void Graph::run(std::span<const int64_t> ids, std::span<void* const> pointers, void* workspace) const {
  Descriptor pack(library_, kVariantPack);
  pack.set(kPackIds, kOfInt64, ids);
  pack.set(kPackPointers, kOfPointer, pointers);
  pack.set(kPackWorkspace, kOfPointer, workspace);
  pack.finalize();
  library_.require(library_.execute(handle_, plan_, pack.raw()), "run attention");
}

}  // namespace megalith::cuda::cudnn
