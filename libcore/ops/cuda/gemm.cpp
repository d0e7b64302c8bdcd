#include "libcore/ops/cuda/gemm.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <type_traits>
#include <utility>

#include <cublasLt.h>

#include "libcore/ops/backend/cuda_workspaces.h"
#include "libcore/ops/cuda/kernels.h"
#include "libcore/ops/cuda/op_fields.h"

namespace megalith::cuda {
namespace {

/// cuBLAS is column-major, so it is asked for the transposed product, c^T [n, m] = op(b)^T op(a)^T, in which
/// every row-major matrix is used unchanged.

/// If the device itself has failed, the runtime knows better than cuBLASLt what happened.
void require_cublas(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  require_success(cudaGetLastError(), what);
  fail(ErrorKind::kDevice, "cublasLt: ", what, ": ", cublasLtGetStatusString(status),
       "; see nvidia-smi: the device may have no memory left, or a library of another version is loaded");
}

template <auto kDestroy>
struct Destroy {
  template <class T>
  void operator()(T* handle) const {
    kDestroy(handle);
  }
};
template <class Handle, auto kDestroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<kDestroy>>;
using Context = Owned<cublasLtHandle_t, cublasLtDestroy>;
using Product = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Layout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

cudaDataType_t cuda_type(DType dtype) {
  return dtype == DType::kBf16 ? CUDA_R_16BF : dtype == DType::kF16 ? CUDA_R_16F : CUDA_R_32F;
}

/// The largest power of two, up to 256, that divides the address.
uint32_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data) | 256;
  return static_cast<uint32_t>(address & (~address + 1));
}

/// The properties of a product that determine its layouts and algorithm.
struct Signature {
  ProductKind kind;
  uint32_t a_alignment, b_alignment, c_alignment;
  uint32_t vector_alignment, matrix_alignment;  // of EpilogueTensors
  auto operator<=>(const Signature&) const = default;

  uint32_t d_alignment() const { return std::min({c_alignment, vector_alignment, matrix_alignment}); }
  bool is_aligned() const { return std::min({a_alignment, b_alignment, d_alignment()}) >= kVector; }
  /// That of the products for which an algorithm is chosen.
  static Signature aligned(const ProductKind& kind) {
    return {kind, kVector, kVector, kVector, kVector, kVector};
  }

  static constexpr uint32_t kVector = 16;
};

struct Plan {
  Product product;
  Layout a, b, c;                                      // layouts of the op's a, b and c
  std::optional<cublasLtMatmulAlgo_t> algorithm = {};  // none: cuBLASLt has no way to run the epilogue
};

/// What a product reads and writes beside its matrices, as cuBLASLt takes it. Null: nothing.
struct EpilogueTensors {
  const void* vector = nullptr;  // the bias, or the sums of bias_grad
  const void* matrix = nullptr;  // before_gelu or gelu_grad_at
};

Layout make_layout(DType dtype, int64_t rows, int64_t columns) {
  cublasLtMatrixLayout_t layout = nullptr;
  require_cublas(cublasLtMatrixLayoutCreate(&layout, cuda_type(dtype), static_cast<uint64_t>(rows),
                                            static_cast<uint64_t>(columns), rows),
                 "matrix layout");
  return Layout(layout);
}

template <class T>
void set(const Product& product, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  require_cublas(cublasLtMatmulDescSetAttribute(product.get(), attribute, &value, sizeof value),
                 "product attribute");
}

cublasLtEpilogue_t native(Epilogue epilogue, bool bias) {
  switch (epilogue) {
    case Epilogue::kGelu:
      return bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::kGeluGrad:
      return CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::kBiasGrad:
      return CUBLASLT_EPILOGUE_BGRADB;
    case Epilogue::kNone:
      break;
  }
  return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

void set_beside(const Product& product, const EpilogueTensors& beside) {
  if (beside.vector != nullptr) set(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, beside.vector);
  if (beside.matrix != nullptr) set(product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, beside.matrix);
}

/// `beside` is used only to find an algorithm; each run sets its own.
Product make_product(const ProductKind& kind, const EpilogueTensors& beside) {
  cublasLtMatmulDesc_t description = nullptr;
  require_cublas(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F), "product");
  Product product(description);
  const auto operation = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(product, CUBLASLT_MATMUL_DESC_TRANSA, operation(kind.trans_b));
  set(product, CUBLASLT_MATMUL_DESC_TRANSB, operation(kind.trans_a));
  set(product, CUBLASLT_MATMUL_DESC_EPILOGUE, native(kind.epilogue, kind.bias));
  if (beside.vector != nullptr) set(product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, cuda_type(kind.out));
  if (beside.matrix != nullptr) set(product, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, kind.n);
  set_beside(product, beside);
  return product;
}

Preference make_preference(const Signature& s) {
  cublasLtMatmulPreference_t created = nullptr;
  require_cublas(cublasLtMatmulPreferenceCreate(&created), "preference");
  Preference preference(created);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    require_cublas(cublasLtMatmulPreferenceSetAttribute(created, attribute, &value, sizeof value),
                   "preference attribute");
  };
  const uint64_t workspace = kProductWorkspace;
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
  // Split sums are added in fp32, so that a result of 16 bits is rounded only once.
  const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, s.b_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, s.a_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, s.c_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, s.d_alignment());
  return preference;
}

bool has_matrix(Epilogue epilogue) {
  return epilogue == Epilogue::kGelu || epilogue == Epilogue::kGeluGrad;
}

/// For products that are only asked about: what cuBLASLt makes of no address is not documented. It is never
/// read, but cuBLASLt takes its alignment for that of the addresses to come: of 16 bytes, and not of 32.
EpilogueTensors any_beside(const ProductKind& kind) {
  alignas(2 * Signature::kVector) static constexpr std::byte kMemory[Signature::kVector + 1] = {};
  const std::byte* const any = &kMemory[Signature::kVector];
  return {.vector = kind.bias || kind.epilogue == Epilogue::kBiasGrad ? any : nullptr,
          .matrix = has_matrix(kind.epilogue) ? any : nullptr};
}

/// A plan without its algorithm.
Plan make_layouts(const ProductKind& kind, const EpilogueTensors& beside) {
  const auto [m, n, k] = std::tuple(kind.m, kind.n, kind.k);
  return {.product = make_product(kind, beside),
          .a = kind.trans_a ? make_layout(kind.in, m, k) : make_layout(kind.in, k, m),
          .b = kind.trans_b ? make_layout(kind.in, k, n) : make_layout(kind.in, n, k),
          .c = make_layout(kind.out, n, m)};
}

/// The algorithms that cuBLASLt suggests, up to `most`, the best first. None if it has no way to run the
/// product's epilogue.
std::vector<cublasLtMatmulAlgo_t> suggested(cublasLtHandle_t context, const Plan& plan, const Signature& s,
                                            int most) {
  const Preference preference = make_preference(s);
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(most));
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(context, plan.product.get(), plan.b.get(), plan.a.get(), plan.c.get(),
                                     plan.c.get(), preference.get(), most, results.data(), &found);
  results.resize(static_cast<size_t>(status == CUBLAS_STATUS_SUCCESS ? found : 0));
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (const cublasLtMatmulHeuristicResult_t& result : results)
    if (result.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(result.algo);
  const ProductKind& kind = s.kind;
  if (algorithms.empty() && kind.epilogue == Epilogue::kNone)
    fail(ErrorKind::kDevice, "cublasLt: no way to multiply ", kind.m, "x", kind.k, " by ", kind.k, "x",
         kind.n, " in ", name_of(kind.in), " into ", name_of(kind.out), ": ",
         cublasLtGetStatusString(status));
  return algorithms;
}

static_assert(sizeof(ProductAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
cublasLtMatmulAlgo_t native(const ProductAlgorithm& algorithm) {
  return std::bit_cast<cublasLtMatmulAlgo_t>(algorithm);
}

Signature signature_of(const Gemm& op, const EpilogueTensors& beside) {
  return {.kind = product_kind(op),
          .a_alignment = alignment_of(op.a.data),
          .b_alignment = alignment_of(op.b.data),
          .c_alignment = alignment_of(op.c.data),
          .vector_alignment = alignment_of(beside.vector),
          .matrix_alignment = alignment_of(beside.matrix)};
}

/// The bias that cuBLASLt itself adds; null: none.
const void* fused_bias(const Gemm& op) {
  return product_kind(op).bias ? op.bias.data : nullptr;
}

/// The epilogue's matrix; null: it has none.
const void* matrix_beside(const Gemm& op) {
  return op.before_gelu ? op.before_gelu.data : op.gelu_grad_at.data;
}

/// Whether cuBLASLt says that it does not compute this: so not an error of the device.
bool is_refusal(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE;
}

/// Where cuBLASLt's scratch memory ends, and the sums of bias_grad are before they are added to it.
float* sums_in(void* workspace) {
  return reinterpret_cast<float*>(static_cast<std::byte*>(workspace) + kProductWorkspace);
}

}  // namespace

size_t cublas_version() {
  return cublasLtGetVersion();
}

struct GemmRunner::Cache {
  Context context;
  std::mutex mutex;  // guards the rest and, while a product is enqueued, the addresses in its description
  std::map<Signature, Plan> plans;
  std::map<ProductKind, cublasLtMatmulAlgo_t> chosen;
  std::set<ProductKind> by_parts;  // for which kByParts was chosen

  Cache() {
    cublasLtHandle_t created = nullptr;
    require_cublas(cublasLtCreate(&created), "start");
    context.reset(created);
  }

  Plan& find(const Signature& signature, const EpilogueTensors& beside) {
    const auto found = plans.find(signature);
    if (found != plans.end()) return found->second;
    Plan plan = make_layouts(signature.kind, beside);
    const auto choice = chosen.find(signature.kind);
    if (signature.is_aligned() && choice != chosen.end())
      plan.algorithm = choice->second;
    else if (const auto first = suggested(context.get(), plan, signature, 1); !first.empty())
      plan.algorithm = first.front();
    return plans.emplace(signature, std::move(plan)).first->second;
  }

  /// Enqueues the product by its plan's algorithm, or by `algorithm`. Sums of bias_grad are stored in `sums`.
  cublasStatus_t multiply(Queue& queue, const Gemm& op, void* sums,
                          const cublasLtMatmulAlgo_t* algorithm = nullptr) {
    const EpilogueTensors beside{.vector = op.bias_grad ? sums : fused_bias(op), .matrix = matrix_beside(op)};
    void* const workspace = queue.workspace(workspace_of(op));
    const std::lock_guard lock(mutex);
    if (algorithm == nullptr && by_parts.contains(product_kind(op))) return CUBLAS_STATUS_NOT_SUPPORTED;
    Plan& plan = find(signature_of(op, beside), beside);
    if (algorithm == nullptr && !plan.algorithm) return CUBLAS_STATUS_NOT_SUPPORTED;
    set_beside(plan.product, beside);
    const float one = 1, beta = op.accumulate ? 1.0f : 0.0f;
    return cublasLtMatmul(context.get(), plan.product.get(), &one, op.b.data, plan.b.get(), op.a.data,
                          plan.a.get(), &beta, op.c.data, plan.c.get(), op.c.data, plan.c.get(),
                          algorithm != nullptr ? algorithm : &*plan.algorithm, workspace, kProductWorkspace,
                          queue.stream());
  }
};

GemmRunner::GemmRunner() : cache_(std::make_unique<Cache>()) {}
GemmRunner::~GemmRunner() = default;

bool GemmRunner::run(Queue& queue, const Gemm& op) {
  const Epilogue epilogue = op.epilogue();
  if (product_kind(op).epilogue != epilogue) return false;
  float* const sums = op.bias_grad ? sums_in(queue.workspace(workspace_of(op))) : nullptr;
  const cublasStatus_t status = cache_->multiply(queue, op, sums);
  if (epilogue != Epilogue::kNone && is_refusal(status)) return false;
  require_cublas(status, "matrix product");
  if (op.bias_grad)  // cuBLASLt stores the sums
    launch_add(queue.stream(), op.bias_grad.data, Storage::kF32, sums, Storage::kF32, op.m());
  if (op.bias && fused_bias(op) == nullptr) launch_row_bias(queue.stream(), row_bias(op, true));
  return true;
}

std::vector<ProductAlgorithm> GemmRunner::candidates(const ProductKind& kind, int most) {
  const std::lock_guard lock(cache_->mutex);
  std::vector<ProductAlgorithm> algorithms;
  for (const cublasLtMatmulAlgo_t& algorithm :
       suggested(cache_->context.get(), make_layouts(kind, any_beside(kind)), Signature::aligned(kind), most))
    algorithms.push_back(std::bit_cast<ProductAlgorithm>(algorithm));
  return algorithms;
}

bool GemmRunner::run_by(Queue& queue, const Gemm& op, const ProductAlgorithm& algorithm) {
  const cublasLtMatmulAlgo_t by = native(algorithm);
  if (cache_->multiply(queue, op, op.bias_grad.data, &by) == CUBLAS_STATUS_SUCCESS) return true;
  require_success(cudaGetLastError(), "time a matrix product");
  return false;
}

bool GemmRunner::use(const ChosenProduct& product) {
  const std::lock_guard lock(cache_->mutex);
  if (product.algorithm == kByParts) {
    if (product.kind.epilogue != Epilogue::kNone) cache_->by_parts.insert(product.kind);
    return product.kind.epilogue != Epilogue::kNone;
  }
  const cublasLtMatmulAlgo_t algorithm = native(product.algorithm);
  const Plan plan = make_layouts(product.kind, any_beside(product.kind));
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status =
      cublasLtMatmulAlgoCheck(cache_->context.get(), plan.product.get(), plan.b.get(), plan.a.get(),
                              plan.c.get(), plan.c.get(), &algorithm, &result);
  if (status != CUBLAS_STATUS_SUCCESS || result.workspaceSize > kProductWorkspace) return false;
  cache_->chosen[product.kind] = algorithm;
  cache_->by_parts.erase(product.kind);
  std::erase_if(cache_->plans, [&](const auto& cached) { return cached.first.kind == product.kind; });
  return true;
}

}  // namespace megalith::cuda
