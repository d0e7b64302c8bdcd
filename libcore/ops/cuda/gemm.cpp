#include "libcore/ops/cuda/gemm.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <type_traits>

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
  int64_t m, n, k;
  DType in, out;
  bool bias, trans_a, trans_b, accumulate;
  uint32_t a_alignment, b_alignment, c_alignment, d_alignment;  // d: the smaller alignment of c and the bias
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 reads it into the generated comparison
  auto operator<=>(const Signature&) const = default;
};

struct Plan {
  Product product;
  Layout a, b, c;  // layouts of the op's a, b and c
  cublasLtMatmulAlgo_t algorithm{};
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

/// `bias` is used only to find an algorithm; each run sets its own bias.
Product make_product(const Signature& s, const void* bias) {
  cublasLtMatmulDesc_t description = nullptr;
  require_cublas(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F), "product");
  Product product(description);
  const auto operation = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(product, CUBLASLT_MATMUL_DESC_TRANSA, operation(s.trans_b));
  set(product, CUBLASLT_MATMUL_DESC_TRANSB, operation(s.trans_a));
  if (s.bias) {
    set(product, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(product, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, cuda_type(s.out));
    set(product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  }
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
  const uint64_t workspace = kMinWorkspace;
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
  // Split sums are added in fp32, so that a result of 16 bits is rounded only once.
  const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, s.b_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, s.a_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, s.c_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, s.d_alignment);
  return preference;
}

Plan make_plan(cublasLtHandle_t context, const Signature& s, const void* bias) {
  Plan plan{.product = make_product(s, bias),
            .a = s.trans_a ? make_layout(s.in, s.m, s.k) : make_layout(s.in, s.k, s.m),
            .b = s.trans_b ? make_layout(s.in, s.k, s.n) : make_layout(s.in, s.n, s.k),
            .c = make_layout(s.out, s.n, s.m)};
  const Preference preference = make_preference(s);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(context, plan.product.get(), plan.b.get(), plan.a.get(), plan.c.get(),
                                     plan.c.get(), preference.get(), 1, &best, &found);
  if (status != CUBLAS_STATUS_SUCCESS || found == 0)
    fail(ErrorKind::kDevice, "cublasLt: no way to multiply ", s.m, "x", s.k, " by ", s.k, "x", s.n, " in ",
         name_of(s.in), " into ", name_of(s.out), ": ", cublasLtGetStatusString(status));
  plan.algorithm = best.algo;
  return plan;
}

}  // namespace

size_t cublas_version() {
  return cublasLtGetVersion();
}

struct GemmRunner::Cache {
  Context context;
  std::mutex mutex;  // guards plans and, while a product is enqueued, the bias address in its description
  std::map<Signature, Plan> plans;

  Cache() {
    cublasLtHandle_t created = nullptr;
    require_cublas(cublasLtCreate(&created), "start");
    context.reset(created);
  }

  Plan& find(const Signature& signature, const void* bias) {
    auto found = plans.find(signature);
    if (found == plans.end())
      found = plans.emplace(signature, make_plan(context.get(), signature, bias)).first;
    return found->second;
  }
};

GemmRunner::GemmRunner() : cache_(std::make_unique<Cache>()) {}
GemmRunner::~GemmRunner() = default;

void GemmRunner::run(Queue& queue, const Gemm& op) {
  const bool fused_bias = op.bias && op.bias.dtype == op.c.dtype;  // cuBLASLt requires equal types
  const void* const bias = fused_bias ? op.bias.data : nullptr;
  const Signature signature{.m = op.m(),
                            .n = op.n(),
                            .k = op.k(),
                            .in = op.a.dtype,
                            .out = op.c.dtype,
                            .bias = fused_bias,
                            .trans_a = op.trans_a,
                            .trans_b = op.trans_b,
                            .accumulate = op.accumulate,
                            .a_alignment = alignment_of(op.a.data),
                            .b_alignment = alignment_of(op.b.data),
                            .c_alignment = alignment_of(op.c.data),
                            .d_alignment = std::min(alignment_of(op.c.data), alignment_of(bias))};
  void* const workspace = queue.workspace(workspace_of(op));
  {
    const std::lock_guard lock(cache_->mutex);
    Plan& plan = cache_->find(signature, bias);
    if (fused_bias) set(plan.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    const float one = 1, beta = op.accumulate ? 1.0f : 0.0f;
    require_cublas(cublasLtMatmul(cache_->context.get(), plan.product.get(), &one, op.b.data, plan.b.get(),
                                  op.a.data, plan.a.get(), &beta, op.c.data, plan.c.get(), op.c.data,
                                  plan.c.get(), &plan.algorithm, workspace, kMinWorkspace, queue.stream()),
                   "matrix product");
  }
  if (op.bias && !fused_bias)
    launch_row_bias(queue.stream(), {.c = op.c.data,
                                     .c_storage = storage_of(op.c.dtype),
                                     .bias = op.bias.data,
                                     .bias_storage = storage_of(op.bias.dtype),
                                     .rows = op.m(),
                                     .columns = op.n(),
                                     .add = true});
}

}  // namespace megalith::cuda
