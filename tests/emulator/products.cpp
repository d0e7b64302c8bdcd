#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>
#include <string>
#include <vector>

#include <cublasLt.h>

#include "libcore/ops/cuda/element_maths.h"
#include "tests/emulator/controls.h"
#include "tests/emulator/fault.h"
#include "tests/emulator/memory.h"
#include "tests/emulator/report.h"
#include "tests/emulator/streams.h"

// NOLINTBEGIN: names and signatures are cuBLASLt's
struct EmulatedProducts {};
struct EmulatedProduct {
  cublasOperation_t transposed_a = CUBLAS_OP_N, transposed_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  cudaDataType_t bias_type = CUDA_R_32F;
  const void* aux = nullptr;  // of the epilogue
  int64_t aux_leading = 0;

  bool adds_bias() const {
    return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  }
  bool sums_b() const { return epilogue == CUBLASLT_EPILOGUE_BGRADB; }
  bool is_gelu() const {
    return epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  }
  bool is_gelu_grad() const { return epilogue == CUBLASLT_EPILOGUE_DGELU; }
};
struct EmulatedLayout {
  cudaDataType_t type;
  uint64_t rows, columns;
  int64_t leading;
};
struct EmulatedPreference {
  uint64_t workspace = 0;
  uint32_t alignments[4] = {256, 256, 256, 256};  // of a, b, c and d
};
/// What cublasLtMatmulAlgo_t holds.
struct EmulatedAlgorithm {
  uint64_t alignments[4];  // of a, b, c and d
  uint64_t number;
  uint64_t version;    // of the library that made it
  uint64_t beside[2];  // alignments of the epilogue's vector and matrix
};

namespace megalith::emulator {
namespace {

size_t bytes_of(cudaDataType_t type) {
  return type == CUDA_R_32F ? sizeof(float) : sizeof(uint16_t);
}
/// Whether some columns do not begin at a multiple of 16 bytes, as fast algorithms need.
bool is_unaligned(const EmulatedLayout& layout) {
  constexpr size_t kVector = 16;
  return static_cast<size_t>(layout.leading) * bytes_of(layout.type) % kVector != 0;
}
size_t bytes_of(const EmulatedLayout& layout) {
  return ((layout.columns - 1) * static_cast<uint64_t>(layout.leading) + layout.rows) * bytes_of(layout.type);
}

float element(const void* data, cudaDataType_t type, uint64_t i) {
  if (type == CUDA_R_32F) return static_cast<const float*>(data)[i];
  const uint16_t bits = static_cast<const uint16_t*>(data)[i];
  return type == CUDA_R_16F ? cuda::widen(cuda::Half{bits}) : cuda::widen(cuda::Bf16{bits});
}

/// Rounds to nearest even.
void set_element(void* data, cudaDataType_t type, uint64_t i, float value) {
  if (type == CUDA_R_32F)
    static_cast<float*>(data)[i] = value;
  else
    static_cast<uint16_t*>(data)[i] =
        type == CUDA_R_16F ? cuda::narrow<cuda::Half>(value).bits : cuda::narrow<cuda::Bf16>(value).bits;
}

/// A matrix in device memory.
struct Operand {
  const void* data;
  EmulatedLayout layout;
  float at(uint64_t row, uint64_t column) const {
    return element(data, layout.type, row + column * static_cast<uint64_t>(layout.leading));
  }
  /// Its rows, or with `columns` its columns, one after the other.
  std::vector<float> lines(bool columns) const {
    const uint64_t count = columns ? layout.columns : layout.rows,
                   length = columns ? layout.rows : layout.columns;
    std::vector<float> all(count * length);
    for (uint64_t i = 0; i < count; ++i)
      for (uint64_t j = 0; j < length; ++j) all[i * length + j] = columns ? at(j, i) : at(i, j);
    return all;
  }
};

/// The inner product in fp32, in parts that the compiler can make vectors of.
template <uint64_t kParts>
float inner_product(const float* x, const float* y, uint64_t n) {
  float parts[kParts] = {}, sum = 0;
  uint64_t i = 0;
  for (; i + kParts <= n; i += kParts)
    for (uint64_t part = 0; part < kParts; ++part) parts[part] += x[i + part] * y[i + part];
  for (; i < n; ++i) sum += x[i] * y[i];
  for (const float part : parts) sum += part;
  return sum;
}

/// The algorithms, in the order in which they are suggested.
enum Algorithm : uint64_t { kEightParts, kFourParts, kLeavesLast, kRefused, kReversed, kAlgorithms };

/// What a product takes, in units of work: the first algorithm takes one, as all other work does.
double time_of(uint64_t number) {
  constexpr double kFast = 0.5, kWrong = 0.25, kSlow = 2;
  if (number == kLeavesLast || number == kReversed) return kWrong;
  if (number == kEightParts) return 1;
  return controls().fastest == number ? kFast : kSlow;
}

/// GELU by the definition of its tanh form, and its derivative.
double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}
double gelu_slope(double x) {
  const double root = std::sqrt(2 / std::numbers::pi), t = std::tanh(root * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x);
}

/// d = alpha op(a) op(b) + beta c (+ bias down each column), and what the epilogue makes of it.
struct Multiplication {
  EmulatedProduct product;
  float alpha, beta;
  Operand a, b, c;
  void* d;
  EmulatedLayout d_layout;
  uint64_t algorithm;

  uint64_t depth() const { return product.transposed_a ? a.layout.rows : a.layout.columns; }
  void run() const {
    const std::vector<float> rows = a.lines(product.transposed_a != CUBLAS_OP_N),
                             columns = b.lines(product.transposed_b == CUBLAS_OP_N);
    constexpr uint64_t kMany = 8, kFew = 4;
    const auto inner = algorithm == kFourParts ? inner_product<kFew> : inner_product<kMany>;
    const uint64_t written = algorithm == kLeavesLast ? d_layout.columns - 1 : d_layout.columns;
    for (uint64_t j = 0; j < written; ++j)
      for (uint64_t i = 0; i < d_layout.rows; ++i) {
        float value = alpha * inner(&rows[i * depth()], &columns[j * depth()], depth());
        if (beta != 0) value += beta * c.at(i, j);
        if (product.adds_bias()) value += element(product.bias, product.bias_type, i);
        set_element(d, d_layout.type, place(i, j), finished(value, i, j));
      }
    if (product.sums_b()) sum_b(columns);
  }

 private:
  /// What is stored for `value`, the element with its bias.
  float finished(float value, uint64_t row, uint64_t column) const {
    const uint64_t at = row + column * static_cast<uint64_t>(product.aux_leading);
    if (product.is_gelu()) {
      set_element(const_cast<void*>(product.aux), d_layout.type, at, value);
      return static_cast<float>(gelu(value));
    }
    if (product.is_gelu_grad())
      return static_cast<float>(value * gelu_slope(element(product.aux, d_layout.type, at)));
    return value;
  }
  /// Stores the sums over the inner axis of op(b), whose columns are given one after the other.
  void sum_b(const std::vector<float>& columns) const {
    for (uint64_t j = 0; j < d_layout.columns; ++j) {
      float sum = 0;
      for (uint64_t i = 0; i < depth(); ++i) sum += columns[j * depth() + i];
      set_element(const_cast<void*>(product.bias), product.bias_type, j, sum);
    }
  }
  uint64_t place(uint64_t row, uint64_t column) const {
    if (algorithm != kReversed) return row + column * static_cast<uint64_t>(d_layout.leading);
    return d_layout.rows - 1 - row +
           (d_layout.columns - 1 - column) * static_cast<uint64_t>(d_layout.leading);
  }
};

/// Whether cuBLASLt multiplies matrices of these shapes and types.
bool is_product(const EmulatedProduct& product, const EmulatedLayout& a, const EmulatedLayout& b,
                const EmulatedLayout& c, const EmulatedLayout& d) {
  const auto rows = [](const EmulatedLayout& x, bool transposed) { return transposed ? x.columns : x.rows; };
  const bool ta = product.transposed_a != CUBLAS_OP_N, tb = product.transposed_b != CUBLAS_OP_N;
  const bool types = a.type == b.type && c.type == d.type && (c.type == a.type || c.type == CUDA_R_32F);
  return types && rows(a, !ta) == rows(b, tb) && d.rows == rows(a, ta) && d.columns == rows(b, !tb) &&
         c.rows == d.rows && c.columns == d.columns;
}

/// Whether cuBLASLt has the epilogue for a product of these types.
bool has_epilogue(const EmulatedProduct& product, const EmulatedLayout& a, const EmulatedLayout& d) {
  constexpr int64_t kElements = 8;
  if (product.sums_b()) return product.bias_type == d.type;
  if (!product.is_gelu() && !product.is_gelu_grad()) return true;
  return d.type == a.type && product.aux_leading % kElements == 0 &&
         product.aux_leading >= static_cast<int64_t>(d.rows);
}

/// The largest power of two, up to 256, that divides the address; 0: there is no address.
uint64_t alignment_of(const void* address) {
  const uintptr_t number = reinterpret_cast<uintptr_t>(address) | 256;
  return address == nullptr ? 0 : number & (~number + 1);
}

void require_alignment(const void* address, uint64_t alignment, const char* what) {
  if (alignment != 0 && reinterpret_cast<uintptr_t>(address) % alignment != 0)
    end_with(std::string(what) + ": less aligned than the algorithm was told");
}

void require_operands(const Multiplication& m, const EmulatedAlgorithm& algorithm, int device) {
  const DeviceMemory& memory = DeviceMemory::get();
  memory.require_block(m.a.data, bytes_of(m.a.layout), {device, "product: a"});
  memory.require_block(m.b.data, bytes_of(m.b.layout), {device, "product: b"});
  memory.require_block(m.c.data, bytes_of(m.c.layout), {device, "product: c"});
  memory.require_block(m.d, bytes_of(m.d_layout), {device, "product: d"});
  if (m.product.adds_bias())
    memory.require_block(m.product.bias, m.d_layout.rows * bytes_of(m.product.bias_type),
                         {device, "product: bias"});
  if (m.product.sums_b())
    memory.require_block(m.product.bias, m.d_layout.columns * bytes_of(m.product.bias_type),
                         {device, "product: sums of b"});
  if (m.product.is_gelu() || m.product.is_gelu_grad())
    memory.require_block(
        m.product.aux,
        bytes_of({m.d_layout.type, m.d_layout.rows, m.d_layout.columns, m.product.aux_leading}),
        {device, "product: the epilogue's matrix"});
  require_alignment(m.a.data, algorithm.alignments[0], "product: a");
  require_alignment(m.b.data, algorithm.alignments[1], "product: b");
  require_alignment(m.c.data, algorithm.alignments[2], "product: c");
  require_alignment(m.d, algorithm.alignments[3], "product: d");
  require_alignment(m.product.bias, algorithm.beside[0], "product: the epilogue's vector");
  require_alignment(m.product.aux, algorithm.beside[1], "product: the epilogue's matrix");
}

static_assert(sizeof(EmulatedAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
EmulatedAlgorithm unpacked(const cublasLtMatmulAlgo_t& algorithm) {
  return std::bit_cast<EmulatedAlgorithm>(algorithm);
}
/// Whether the epilogue's vector or matrix is not there. Nobody says what the real library then answers.
bool lacks_tensor(const EmulatedProduct& product) {
  return ((product.adds_bias() || product.sums_b()) && product.bias == nullptr) ||
         ((product.is_gelu() || product.is_gelu_grad()) && product.aux == nullptr);
}
/// Whether this version knows the algorithm.
bool is_known(const EmulatedAlgorithm& algorithm) {
  return algorithm.version == controls().cublas && algorithm.number < kAlgorithms;
}

/// Whether this version refuses to run the algorithm, although it suggests it.
bool is_refused(const EmulatedAlgorithm& algorithm) {
  if (algorithm.number == kRefused) return true;
  if (algorithm.number != kFourParts || controls().refused_after < 0) return false;
  if (controls().refused_after == 0) return true;
  --controls().refused_after;
  return false;
}

/// Copies an attribute of exactly this size.
template <class T>
cublasStatus_t take(T& to, const void* value, size_t bytes) {
  if (bytes != sizeof to) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, value, sizeof to);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace
}  // namespace megalith::emulator

using namespace megalith::emulator;

const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "success" : "refused by the emulator";
}
size_t cublasLtGetVersion() {
  return controls().cublas;
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new EmulatedProducts;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t, cudaDataType_t) {
  *product = new EmulatedProduct;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
  delete product;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return take(product->transposed_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return take(product->transposed_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return take(product->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return take(product->bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return take(product->aux, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return take(product->aux_leading, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return take(product->bias_type, value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  if (leading < static_cast<int64_t>(rows)) return CUBLAS_STATUS_INVALID_VALUE;
  *layout = new EmulatedLayout{type, rows, columns, leading};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new EmulatedPreference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return take(preference->workspace, value, bytes);
  if (attribute >= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES)
    return take(preference->alignments[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value, bytes);
  uint32_t schemes = 0;  // sums are never split here
  return take(schemes, value, bytes);
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  if (!is_product(*product, *a, *b, *c, *d) || !has_epilogue(*product, *a, *d) || lacks_tensor(*product))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const int most = std::min<int>(kAlgorithms, static_cast<int>(controls().algorithms));
  for (*found = 0; *found < std::min(wanted, most); ++*found) {
    EmulatedAlgorithm algorithm{.alignments = {},
                                .number = static_cast<uint64_t>(*found),
                                .version = controls().cublas,
                                .beside = {alignment_of(product->bias), alignment_of(product->aux)}};
    std::copy(std::begin(preference->alignments), std::end(preference->alignments), algorithm.alignments);
    results[*found] = {.algo = std::bit_cast<cublasLtMatmulAlgo_t>(algorithm),
                       .workspaceSize = preference->workspace,
                       .state = CUBLAS_STATUS_SUCCESS,
                       .wavesCount = 1,
                       .reserved = {}};
  }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t product,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algorithm,
                                       cublasLtMatmulHeuristicResult_t* result) {
  if (!is_product(*product, *a, *b, *c, *d) || !has_epilogue(*product, *a, *d) || lacks_tensor(*product))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  *result = {.algo = *algorithm,
             .workspaceSize = 0,
             .state = CUBLAS_STATUS_SUCCESS,
             .wavesCount = 1,
             .reserved = {}};
  return is_known(unpacked(*algorithm)) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t workspace_bytes,
                              cudaStream_t stream) {
  if (health() != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED;
  if (!is_product(*product, *a_layout, *b_layout, *c_layout, *d_layout) ||
      !has_epilogue(*product, *a_layout, *d_layout))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool has_more = product->is_gelu() || product->is_gelu_grad() || product->sums_b();
  if (has_more && controls().refuses_epilogues != 0)
    return static_cast<cublasStatus_t>(controls().refuses_epilogues);
  const EmulatedAlgorithm by = unpacked(*algorithm);
  if (!is_known(by)) end_with("product: an algorithm of another version of cuBLASLt");
  const bool has_one_place = d_layout->rows * d_layout->columns == 1;  // so that kReversed would be right
  if (is_refused(by) || (by.number == kReversed && has_one_place)) return CUBLAS_STATUS_NOT_SUPPORTED;
  Streams::get().require_chosen(stream);
  const int device = Streams::get().device_of(stream);
  ++controls().counts.products;
  if (is_unaligned(*a_layout) || is_unaligned(*b_layout) || is_unaligned(*c_layout) ||
      is_unaligned(*d_layout))
    ++controls().counts.unaligned_products;
  DeviceMemory::get().require_host(alpha, "product: alpha");
  DeviceMemory::get().require_host(beta, "product: beta");
  DeviceMemory::get().require_block(workspace, workspace_bytes, {device, "product: workspace"});
  const Multiplication multiplication{.product = *product,
                                      .alpha = *static_cast<const float*>(alpha),
                                      .beta = *static_cast<const float*>(beta),
                                      .a = {a, *a_layout},
                                      .b = {b, *b_layout},
                                      .c = {c, *c_layout},
                                      .d = d,
                                      .d_layout = *d_layout,
                                      .algorithm = by.number};
  require_operands(multiplication, by, device);
  const auto work = [=] {
    std::memset(workspace, 0xff, std::min<size_t>(workspace_bytes, 4096));  // whose former contents are gone
    multiplication.run();
  };
  Streams::get().enqueue(stream, work, time_of(by.number) + (has_more ? controls().epilogue_time : 0));
  return CUBLAS_STATUS_SUCCESS;
}
// NOLINTEND
