#include "libcore/ops/cuda/kernel_tools.h"

// Element-wise kernels: each makes one pass over the elements.

namespace megalith::cuda {
namespace {

// ---- maps: to[i] = f(from[i]...)

template <class... T>
constexpr size_t max_size() {
  size_t size = 1;
  ((size = sizeof(T) > size ? sizeof(T) : size), ...);
  return size;
}
/// Elements per vector: as many as fill 16 bytes in the widest type.
template <class... T>
constexpr int kElements = static_cast<int>(16 / max_size<T...>());

template <int kWide, class To, class F, class... From>
__device__ void map_vector(To* to, F f, const Vector<kWide, From>&... from) {
  Vector<kWide, To> result;
  MEGALITH_UNROLL for (int j = 0; j < kWide; ++j) result.at[j] = narrow<To>(f(widen(from.at[j])...));
  put_vector(to, result);
}

/// Threads process vectors of up to 16 bytes. They process single elements at the end of the tensors and, if
/// a tensor is not aligned, everywhere. `to` may be one of `from`.
template <class F, class To, class... From>
__global__ void map_elements(int64_t n, bool aligned, F f, To* to, const From*... from) {
  constexpr int kWide = kElements<To, From...>;
  const int64_t stride = int64_t{kWide} * blockDim.x * gridDim.x;
  for (int64_t i = kWide * (int64_t{blockIdx.x} * blockDim.x + threadIdx.x); i < n; i += stride) {
    if (aligned && i + kWide <= n) {
      map_vector<kWide, To, F, From...>(to + i, f, vector_at<kWide>(from + i)...);
      continue;
    }
    for (int64_t j = i; j < i + kWide && j < n; ++j) to[j] = narrow<To>(f(widen(from[j])...));
  }
}

template <class F, class To, class... From>
void map(cudaStream_t stream, int64_t n, F f, To* to, const From*... from) {
  constexpr int64_t kMaxBlocks = 1 << 20;
  constexpr int kWide = kElements<To, From...>;
  const auto fits = [](const auto* place) {
    return reinterpret_cast<uintptr_t>(place) % (kWide * sizeof *place) == 0;
  };
  const bool aligned = fits(to) && (fits(from) && ...);
  const int64_t blocks = blocks_for(n, int64_t{kWide} * kThreads);
  launch(stream, blocks < kMaxBlocks ? blocks : kMaxBlocks, 0, map_elements<F, To, From...>, n, aligned, f,
         to, from...);
}

struct Same {
  __device__ float operator()(float x) const { return x; }
};
struct Sum {
  __device__ float operator()(float x, float y) const { return x + y; }
};
struct Times {
  float factor;
  __device__ float operator()(float x) const { return x * factor; }
};
struct GeluTanhOf {
  __device__ static float value(float x) { return gelu_tanh(x); }
  __device__ static float slope(float x) { return gelu_tanh_slope(x); }
};
struct GeluOf {
  __device__ static float value(float x) { return gelu_erf(x); }
  __device__ static float slope(float x) { return gelu_erf_slope(x); }
};
struct QuickGeluOf {
  __device__ static float value(float x) { return quick_gelu(x); }
  __device__ static float slope(float x) { return quick_gelu_slope(x); }
};
struct SiluOf {
  __device__ static float value(float x) { return silu(x); }
  __device__ static float slope(float x) { return silu_slope(x); }
};
struct ReluOf {
  __device__ static float value(float x) { return relu(x); }
  __device__ static float slope(float x) { return relu_slope(x); }
};
struct SquaredReluOf {
  __device__ static float value(float x) { return squared_relu(x); }
  __device__ static float slope(float x) { return squared_relu_slope(x); }
};

template <class Of>
struct ValueOf {
  __device__ float operator()(float x) const { return Of::value(x); }
};
template <class Of>
struct SlopeTimes {
  __device__ float operator()(float dy, float x) const { return dy * Of::slope(x); }
};

/// Calls f(activation) with the struct of the function.
template <class F>
void with_function(ActivationFunction function, F f) {
  switch (function) {
    case ActivationFunction::kGeluTanh:
      return f(GeluTanhOf{});
    case ActivationFunction::kGelu:
      return f(GeluOf{});
    case ActivationFunction::kQuickGelu:
      return f(QuickGeluOf{});
    case ActivationFunction::kSilu:
      return f(SiluOf{});
    case ActivationFunction::kRelu:
      return f(ReluOf{});
    case ActivationFunction::kSquaredRelu:
      return f(SquaredReluOf{});
  }
}

// ---- others

template <class Bits>
__global__ void fill_bits(int64_t n, Bits* to, Bits bits) {
  const int64_t stride = int64_t{blockDim.x} * gridDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride) to[i] = bits;
}

template <class Bits>
void fill(cudaStream_t stream, void* to, uint64_t bits, int64_t n) {
  constexpr int64_t kMaxBlocks = 1 << 16;
  const int64_t blocks = blocks_for(n, kThreads);
  launch(stream, blocks < kMaxBlocks ? blocks : kMaxBlocks, 0, fill_bits<Bits>, n, static_cast<Bits*>(to),
         static_cast<Bits>(bits));
}

template <class To, class From>
__global__ void row_bias(To* c, const From* bias, int64_t columns, bool add) {
  To* const row = c + int64_t{blockIdx.x} * columns;
  for (int64_t i = threadIdx.x; i < columns; i += blockDim.x)
    row[i] = narrow<To>((add ? widen(row[i]) : 0.0f) + widen(bias[i]));
}

/// T, M: of value and m.
template <class T, class M>
__global__ void adamw(AdamArgs a) {
  if (a.scalars[StepScalar::kSkip] != 0) return;
  __shared__ AdamRates shared_rates;  // computed once per block, since it takes fp64 divisions and roots
  if (threadIdx.x == 0) shared_rates = adam_rates(a.scalars, a.constants);
  __syncthreads();
  const AdamRates rates = shared_rates;
  const int64_t stride = int64_t{blockDim.x} * gridDim.x;
  T* const value = static_cast<T*>(a.value);
  M* const m = static_cast<M*>(a.m);
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < a.n; i += stride) {
    const AdamElement next = adam_step(rates, {a.master[i], widen(m[i]), a.v[i]}, a.grad[i]);
    a.master[i] = next.master;
    m[i] = narrow<M>(next.m);
    a.v[i] = next.v;
    if (value != nullptr) value[i] = narrow<T>(next.master);
  }
}

__global__ void decide(double* scalars, double max_norm) {
  if (threadIdx.x == 0) decide_step(scalars, max_norm);
}

}  // namespace

void launch_copy(cudaStream_t stream, void* to, Storage to_storage, const void* from, Storage from_storage,
                 int64_t n) {
  with_storage(to_storage, [&](auto out) {
    with_storage(from_storage, [&](auto in) {
      map(stream, n, Same{}, static_cast<decltype(out)*>(to), static_cast<const decltype(in)*>(from));
    });
  });
}

void launch_add(cudaStream_t stream, void* to, Storage to_storage, const void* from, Storage from_storage,
                int64_t n) {
  with_storage(to_storage, [&](auto out) {
    with_storage(from_storage, [&](auto in) {
      auto* const sum = static_cast<decltype(out)*>(to);
      map(stream, n, Sum{}, sum, static_cast<const decltype(out)*>(sum),
          static_cast<const decltype(in)*>(from));
    });
  });
}

void launch_fill(cudaStream_t stream, void* to, size_t size, uint64_t bits, int64_t n) {
  switch (size) {
    case 1:
      return fill<uint8_t>(stream, to, bits, n);
    case 2:
      return fill<uint16_t>(stream, to, bits, n);
    case 4:
      return fill<uint32_t>(stream, to, bits, n);
    default:
      return fill<uint64_t>(stream, to, bits, n);
  }
}

void launch_row_bias(cudaStream_t stream, const RowBias& a) {
  with_storage(a.c_storage, [&](auto out) {
    with_storage(a.bias_storage, [&](auto in) {
      using To = decltype(out);
      using From = decltype(in);
      launch(stream, a.rows, 0, row_bias<To, From>, static_cast<To*>(a.c), static_cast<const From*>(a.bias),
             a.columns, a.add);
    });
  });
}

void launch_activate(cudaStream_t stream, Storage storage, ActivationFunction function, void* y,
                     const void* x, int64_t n) {
  with_storage(storage, [&](auto element) {
    auto* const out = static_cast<decltype(element)*>(y);
    const auto* const in = static_cast<const decltype(element)*>(x);
    with_function(function, [&](auto of) { map(stream, n, ValueOf<decltype(of)>{}, out, in); });
  });
}

// NOLINTNEXTLINE(readability-function-size): as its kernel has them
void launch_activate_grad(cudaStream_t stream, Storage storage, ActivationFunction function, void* dx,
                          const void* dy, const void* x, int64_t n) {
  with_storage(storage, [&](auto element) {
    auto* const out = static_cast<decltype(element)*>(dx);
    const auto* const up = static_cast<const decltype(element)*>(dy);
    const auto* const in = static_cast<const decltype(element)*>(x);
    with_function(function, [&](auto of) { map(stream, n, SlopeTimes<decltype(of)>{}, out, up, in); });
  });
}

void launch_scale(cudaStream_t stream, Storage storage, void* x, float factor, int64_t n) {
  with_storage(storage, [&](auto element) {
    auto* const data = static_cast<decltype(element)*>(x);
    map(stream, n, Times{factor}, data, static_cast<const decltype(element)*>(data));
  });
}

void launch_adamw(cudaStream_t stream, const AdamArgs& args) {
  constexpr int64_t kMaxBlocks = 1 << 16;
  const int64_t blocks = blocks_for(args.n, kThreads);
  with_storage(args.value_storage, [&](auto element) {
    const auto start = [&](auto* kernel) {
      launch(stream, blocks < kMaxBlocks ? blocks : kMaxBlocks, 0, kernel, args);
    };
    if (args.m_storage == Storage::kBf16) return start(adamw<decltype(element), Bf16>);
    start(adamw<decltype(element), float>);
  });
}

void launch_decide_step(cudaStream_t stream, double* scalars, double max_norm) {
  launch(stream, 1, 0, decide, scalars, max_norm);
}

}  // namespace megalith::cuda
